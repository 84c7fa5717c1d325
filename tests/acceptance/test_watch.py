"""`svc watch` uploads one new version per save by any editor, loses no change and removes nothing by mistake."""

import hashlib
import itertools
import os
import resource
import signal
import subprocess
import sys
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.calls import list_sources
from tests.acceptance.installations import Installation, wait_until
from tests.acceptance.sync_folders import write
from tests.acceptance.watches import Watch, fill, run_state, watching
from tests.conftest import MakeInstallation
from tests.samples import make_killing_pdf

MB = 1024**2
NUMBERS = itertools.count()

#: The file that is edited, and its bytes before and after.
NAME = "note.md"
OLD, NEW = b"The aardvark sleeps.\n", b"The bandicoot wakes, and stays awake.\n"


@dataclass(frozen=True)
class Place:
    """A folder, and the bucket and the mapping with its name."""

    installation: Installation
    path: Path

    def fill(self, **texts: str) -> None:
        fill(self.path, **texts)

    def watch(self, *words: str, **texts: str) -> AbstractContextManager[Watch]:
        """Write these files and watch the folder."""
        self.fill(**texts)
        return watching(self.installation, str(self.path), "-b", self.path.name, *words)

    def add(self, watch: Watch, **texts: str) -> None:
        """Write these files and wait until each is in the bucket."""
        self.fill(**texts)
        for name in texts:
            watch.wait_for_item("created", f"{name}.md")

    def sources(self) -> list[dict[str, Any]]:
        with self.installation.client() as client:
            return list_sources(client, self.path.name)

    def titles(self) -> list[str]:
        return sorted(source["title"] for source in self.sources())

    def state(self) -> dict[str, Any]:
        return run_state(self.installation, self.path.name)


@pytest.fixture
def place(shared_installation: Installation) -> Place:
    return Place(shared_installation, fill(shared_installation.root / f"place-{next(NUMBERS)}"))


@pytest.fixture
def own_place(installation: Installation) -> Place:
    """A folder with an installation that only this test uses."""
    return Place(installation, fill(installation.root / "docs"))


#: Shell commands that save the file in its folder, where $NEW is a file with the new bytes.
WAYS = {
    "in-place": "dd if=$NEW of=note.md conv=notrunc status=none",
    "truncate": "cat $NEW > note.md",
    "truncate-slowly": "exec 3> note.md; for byte in $(seq 38); do tail -c +$byte $NEW | head -c 1 >&3; done",
    "temp-and-rename": "cp $NEW note.md.tmp; mv note.md.tmp note.md",
    "dot-temp": "cp $NEW .note.md.swp; sync .note.md.swp; mv .note.md.swp note.md",
    "backup-and-rename": "mv note.md note.md~; cat $NEW > note.md; rm note.md~",
    "delete-and-create": "rm note.md; sleep 0.3; cat $NEW > note.md",
    "sed": "sed -i 's/.*/The bandicoot wakes, and stays awake./' note.md",
    "checkout": "git checkout -q new",
}
#: Creates a repository with the old file on the branch that is checked out, and the new one on `new`.
BRANCHES = """
git init -q -b old; git config user.name Ann; git config user.email ann@example.org
git add note.md; git commit -qm old; git checkout -qb new; cp $NEW note.md; git commit -qam new; git checkout -q old
"""


def test_each_way_to_save_a_file_creates_one_new_version(place: Place) -> None:
    new = place.path.with_suffix(".new")
    new.write_bytes(NEW)

    def run(commands: str, folder: Path) -> None:
        subprocess.run(["sh", "-euc", commands], cwd=folder, env={**os.environ, "NEW": str(new)}, check=True)

    names = {way: f"{way}/{NAME}" for way in WAYS}
    for name in names.values():
        write(place.path, name, OLD)
    run(BRANCHES, place.path / "checkout")
    with place.watch("--prune", "delete") as watch:
        before = {source["id"] for source in place.sources()}
        for way, commands in WAYS.items():
            run(commands, place.path / way)
            watch.wait_for_item("updated", names[way])
        # Once this last file is reported, all other changes have been too, even deletions, which are delayed.
        place.add(watch, z="the mark")
        wait_until(lambda: place.state()["pending"] == 0, "rest")
        assert place.installation.svc("watch", "flush", place.path.name, "--json").exit == 0
        done = [(action, name) for action in ("created", "updated") for name in names.values()]
        assert sorted(watch.items()) == sorted([*done, ("created", "z.md")])
        now = {source["title"]: source for source in place.sources()}
        assert now.keys() == {*names.values(), "z.md"}
        assert {now[name]["sha256"] for name in names.values()} == {hashlib.sha256(NEW).hexdigest()}
        assert not before & {source["id"] for source in now.values()}
        assert watch.end() == 0


def test_moved_files_keep_their_sources_which_are_renamed(place: Place) -> None:
    fill(place.path / "sub", a="the ant", b="the bee")
    with place.watch() as watch:
        before = {source["id"] for source in place.sources()}
        (place.path / "sub").rename(place.path / "other")
        for name in ("other/a.md", "other/b.md"):
            watch.wait_for_item("moved", name)
        assert (place.titles(), {source["id"] for source in place.sources()}) == (["other/a.md", "other/b.md"], before)


def test_deleted_files_are_detached_only_with_prune(place: Place) -> None:
    with place.watch(a="the ant", b="the bee", c="the cat") as watch:
        (place.path / "a.md").unlink()
        watch.wait_for_item("gone", "a.md")
        assert len(place.sources()) == 3
        watch.end(signal.SIGKILL)
    assert not place.state()["running"]
    with place.watch("--prune", "detach", d="the dog") as watch:
        watch.wait_for_item("detached", "a.md")
        assert watch.items() == [("created", "d.md"), ("detached", "a.md")]
        (place.path / "b.md").unlink()
        (place.path / "c.md").unlink()
        place.fill(c="the cat came back")
        watch.wait_for_item("detached", "b.md")
        assert (watch.items()[2:], place.titles()) == ([("updated", "c.md"), ("detached", "b.md")], ["c.md", "d.md"])


def test_replaced_folder_is_watched_again_and_an_emptied_one_removes_nothing(own_place: Place) -> None:
    away = own_place.path.with_name("away")
    with own_place.watch("--prune", "delete", a="the ant") as watch:
        own_place.path.rename(away)
        watch.wait_for_state("missing")
        own_place.fill(a="the ant", b="the bee")
        watch.wait_for_item("created", "b.md")
        own_place.add(watch, c="the cat")
        fill(away, d="the dog")
        assert own_place.installation.svc("watch", "flush", "docs").exit == 0
        assert own_place.titles() == ["a.md", "b.md", "c.md"]
        assert {"armed", "replaced"} & own_place.state()["syncs"].keys()
        for file in own_place.path.iterdir():
            file.unlink()
        watch.wait_for_state("troubled")
        assert own_place.state()["error"]["code"] == "svc_safety_stop"
        assert own_place.titles() == ["a.md", "b.md", "c.md"], "an emptied folder has removed sources"


def test_burst_of_new_files_is_uploaded_completely(place: Place, large: bool) -> None:
    # More files than the watcher compares one by one.
    count = 60_000 if large else 1050
    with place.watch(first="the first") as watch:
        for number in range(count):
            file = place.path / f"{number // 100:03}" / f"{number % 100:02}.md"
            file.parent.mkdir(exist_ok=True)
            file.write_text(f"note {number}\n")
        wait_until(lambda: "syncing" in watch.states[2:] or len(watch.items()) > 1, "the burst is noticed")
        wait_until(lambda: len(watch.items()) > count, "all of it is searchable", 3600 if large else 300)
        assert len(place.sources()) == len(set(watch.items())) == count + 1


def test_changes_whose_inotify_events_were_dropped_are_uploaded(place: Place) -> None:
    place.fill(a="the ant", b="the bee")
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    with place.watch() as watch:
        watch.process.send_signal(signal.SIGSTOP)
        for number in range(most // 3):  # two files in turn, so that the kernel can't merge the events
            place.fill(a=f"ant {number}", b=f"bee {number}")
        fill(place.path / "sub", c="the cat")
        watch.process.send_signal(signal.SIGCONT)
        watch.wait_for_item("created", "sub/c.md")
        fill(place.path / "sub", d="the dog")
        watch.wait_for_item("created", "sub/d.md")
        for name in ("a.md", "b.md"):
            assert watch.items(name) == [("created", name), ("updated", name)]
        assert place.state()["syncs"]["overflow"] >= 1


def test_too_few_inotify_watches_are_reported_with_the_fix_and_the_folder_is_polled(place: Place) -> None:
    for name in "pqrstu":
        fill(place.path / name, a="the ant")
    limited = "echo 3 > /proc/sys/user/max_inotify_watches && exec "
    command = f"{limited} {sys.executable} -m svc_cli watch run {place.path} -b limits --ndjson"
    if subprocess.run(["unshare", "-Ur", "sh", "-c", f"{limited} true"], capture_output=True, check=False).returncode:
        pytest.skip("no user namespaces here")
    with watching(place.installation, program=["unshare", "-Ur", "sh", "-c", command]) as watch:
        fill(place.path / "u", b="the bee")
        watch.wait_for_item("created", "u/b.md")
        (note,) = watch.notes
        assert ("for the 7 folders" in note, "sudo sysctl fs.inotify.max_user_watches=" in note) == (True, True), note
        assert place.state()["polling"]


def test_full_state_folder_is_reported_and_the_watcher_continues(place: Place) -> None:
    with place.watch(a="the ant") as watch:
        # A limit on the file size looks like a full disk.
        before = resource.prlimit(watch.process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        place.fill(b="the bee")
        wait_until(lambda: watch.notes, "the trouble is reported")
        resource.prlimit(watch.process.pid, resource.RLIMIT_FSIZE, before)
        watch.wait_for_item("created", "b.md")
        assert len(place.sources()) == 2


def test_next_save_recreates_a_source_that_was_deleted_by_another_command(place: Place) -> None:
    with place.watch(a="the ant") as watch:
        (deleted,) = place.sources()
        assert place.installation.svc("source", "rm", "--force", deleted["id"]).exit == 0
        place.fill(a="the ant is back")
        (source,) = wait_until(place.sources, f"it is there again; {watch.lines}")
        sha256 = hashlib.sha256(b"the ant is back\n").hexdigest()
        assert (source["id"] != deleted["id"], source["sha256"]) == (True, sha256)


def test_mapping_folder_in_the_configuration_may_be_a_symbolic_link(installation: Installation) -> None:
    real = Place(installation, fill(installation.root / "real", a="the ant"))
    (installation.root / "docs").symlink_to("real")
    (installation.root / "svc.toml").write_text('[[map]]\ndir = "docs"\nbucket = "real"\n')
    with watching(installation) as watch:
        real.fill(b="the bee")
        watch.wait_for_item("created", "b.md")
        assert real.titles() == ["a.md", "b.md"]


def test_second_watcher_is_refused_and_ctrl_c_prints_a_summary(place: Place) -> None:
    svc, words = place.installation.svc, (str(place.path), "-b", place.path.name)
    with place.watch(a="the ant") as watch:
        second = svc("watch", "run", *words, "--json")
        assert (second.exit, second.json["error"]["code"], svc("sync", *words).exit) == (14, "svc_sync_running", 0)
        assert watch.end(signal.SIGINT) == 130
        assert (watch.lines[-1]["type"], watch.lines[-1]["exit_code"]) == ("watch.summary", 130)


def test_each_skipped_file_is_reported(place: Place) -> None:
    names = {"blob.xyz", "zero\u200bwidth.md", "\u202ebidi.md"}
    for name in names:
        (place.path / name).write_bytes(b"\0\1")
    with place.watch(a="the ant") as watch:
        listed = [path for action, path in watch.items() if action == "skipped"]
        assert sorted(listed) == sorted(names)


def test_watcher_reconnects_to_a_restarted_daemon(own_place: Place) -> None:
    # With autostart, the watcher's daemon would compete with the test's for the data directory.
    with own_place.watch("--no-autostart", a="the ant") as watch:
        own_place.installation.stop()
        own_place.fill(b="the bee")
        own_place.installation.start()
        watch.wait_for_item("created", "b.md")
        own_place.add(watch, c="the cat")
        assert len(own_place.sources()) == 3


def test_slow_document_does_not_delay_the_next_save(make_installation: MakeInstallation) -> None:
    # Parsing this document always fails and is retried with pauses, so the document is not done during the test.
    installation = make_installation(SVC_LIMIT_TASK_ATTEMPTS="100", SVC_LIMIT_EXTRACT_MEMORY_BYTES=str(256 * MB))
    installation.start()
    slow = Place(installation, fill(installation.root / "docs", a="the ant"))
    with slow.watch() as watch:
        (slow.path / "poison.pdf").write_bytes(make_killing_pdf(300 * MB))
        watch.wait_for_item("created", "poison.pdf")
        slow.fill(b="the bee")
        watch.wait_for_item("created", "b.md")
        (line,) = [line for line in watch.lines if line.get("path") == "poison.pdf"]
        assert (line["status"] not in ("active", "failed"), line["ready"]) == (True, False)


def test_reads_touches_and_hidden_files_cause_no_sync(place: Place) -> None:
    with place.watch(a="the ant") as watch:
        (place.path / "a.md").read_bytes()
        (place.path / ".hidden.md").write_text("hidden")
        (place.path / "a.md").touch()
        flushed = place.installation.svc("watch", "flush", place.path.name, "--json").json["mappings"][0]
        assert (flushed["syncs"], watch.items()) == ({"start": 1, "flush": 1}, [("created", "a.md")])


def test_mappings_are_added_listed_and_removed_while_a_watcher_runs(installation: Installation) -> None:
    one, two = fill(installation.root / "one", a="the ant"), fill(installation.root / "two", b="the bee")

    def run(verb: str, *words: str) -> int:
        return installation.svc("watch", verb, *words).exit

    refused = installation.svc("watch", "flush", "--json")
    assert (refused.exit, refused.json["error"]["code"]) == (5, "svc_not_watched")
    assert (run("run"), run("add", str(one), "-b", "first")) == (2, 0)
    with watching(installation) as watch:
        assert run("add", str(two), "-b", "second", "--name", "zwei", "--tag", "x") == 0
        watch.wait_for_item("created", "b.md")
        listed = installation.svc("watch", "ls", "--json").json["mappings"]
        mappings = [(each["mapping"], each["bucket"], each["dir"]) for each in listed]
        assert mappings == [("one", "first", str(one)), ("zwei", "second", str(two))]
        wait_until(lambda: run_state(installation, "zwei")["running"], "the second is watched")
        lines = installation.svc("watch", "log", "zwei", "--json").json["lines"]
        assert ([line["path"] for line in lines if line["type"] == "watch.item"], run("rm", "zwei")) == (["b.md"], 0)
        watch.wait_for_state("watching", times=2)
    assert [each["mapping"] for each in installation.svc("watch", "ls", "--json").json["mappings"]] == ["one"]
    assert run("rm", "zwei") == 5
    # A bucket rejects a second mapping whose folder contains the first one's.
    assert run("add", str(fill(two / "deep", a="the ant")), "-b", "both") == 0
    overlap = installation.svc("watch", "add", str(two), "-b", "both", "--name", "other", "--json")
    assert (overlap.exit, "overlap" in overlap.json["error"]["message"]) == (2, True)
    assert run("add", str(two), "-b", "third") == 0
