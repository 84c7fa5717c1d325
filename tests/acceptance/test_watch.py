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
from tests.acceptance.installations import IMPATIENT, Installation, wait_until
from tests.acceptance.sync_folders import WITHOUT_ROOTS_RIGHTS, write
from tests.acceptance.watches import Watch, fill, run_state, watching

NUMBERS = itertools.count()

#: The file that is edited, and its bytes before and after.
NAME = "note.md"
OLD, NEW = b"The aardvark sleeps.\n", b"The bandicoot wakes, and stays awake.\n"


@dataclass(frozen=True)
class WatchedFolder:
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
def folder(shared_installation: Installation) -> WatchedFolder:
    return WatchedFolder(shared_installation, fill(shared_installation.root / f"place-{next(NUMBERS)}"))


@pytest.fixture
def own_folder(installation: Installation) -> WatchedFolder:
    """A folder with an installation that only this test uses."""
    return WatchedFolder(installation, fill(installation.root / "docs"))


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


def test_each_way_to_save_a_file_creates_one_new_version(folder: WatchedFolder) -> None:
    new = folder.path.with_suffix(".new")
    new.write_bytes(NEW)

    def run(commands: str, cwd: Path) -> None:
        subprocess.run(["sh", "-euc", commands], cwd=cwd, env={**os.environ, "NEW": str(new)}, check=True)

    names = {way: f"{way}/{NAME}" for way in WAYS}
    for name in names.values():
        write(folder.path, name, OLD)
    run(BRANCHES, folder.path / "checkout")
    with folder.watch("--prune", "delete") as watch:
        before = {source["id"] for source in folder.sources()}
        for way, commands in WAYS.items():
            run(commands, folder.path / way)
            watch.wait_for_item("updated", names[way])
        # Once this last file is reported, all other changes have been too, even deletions, which are delayed.
        folder.add(watch, z="the mark")
        wait_until(lambda: folder.state()["pending"] == 0, "no pending changes")
        assert folder.installation.svc("watch", "flush", folder.path.name, "--json").exit == 0
        done = [(action, name) for action in ("created", "updated") for name in names.values()]
        assert sorted(watch.items()) == sorted([*done, ("created", "z.md")])
        now = {source["title"]: source for source in folder.sources()}
        assert now.keys() == {*names.values(), "z.md"}
        assert {now[name]["sha256"] for name in names.values()} == {hashlib.sha256(NEW).hexdigest()}
        assert not before & {source["id"] for source in now.values()}
        assert watch.end() == 0


def test_the_service_knows_what_is_watched_and_what_is_wrong_with_it(folder: WatchedFolder) -> None:
    def reported() -> list[dict[str, Any]]:
        shown = folder.installation.svc("status", "--json").json["watchers"]
        return [each for watcher in shown for each in watcher["mappings"] if each["name"] == folder.path.name]

    with folder.watch(a="the ant"):
        wait_until(lambda: [each["state"] for each in reported()] == ["watching"], "a report")
        (mapping,) = reported()
        assert (mapping["bucket"], mapping["troubles"]) == (folder.path.name, [])
        assert mapping["last_look_at"] < "9"
        folder.path.rename(folder.path.with_suffix(".away"))
        wait_until(lambda: [each["state"] for each in reported()] == ["missing"], "a report of the trouble")
        shown = folder.installation.svc("status").stdout
        assert f"watched: {folder.path.name} into {folder.path.name}, missing" in shown


def test_deleted_files_are_detached_only_with_prune(folder: WatchedFolder) -> None:
    with folder.watch(a="the ant", b="the bee", c="the cat") as watch:
        (folder.path / "a.md").unlink()
        watch.wait_for_item("gone", "a.md")
        assert len(folder.sources()) == 3
        watch.end(signal.SIGKILL)
    assert not folder.state()["running"]
    with folder.watch("--prune", "detach", d="the dog") as watch:
        watch.wait_for_item("detached", "a.md")
        assert watch.items() == [("created", "d.md"), ("detached", "a.md")]
        (folder.path / "b.md").unlink()
        (folder.path / "c.md").unlink()
        folder.fill(c="the cat came back")
        watch.wait_for_item("detached", "b.md")
        assert (watch.items()[2:], folder.titles()) == ([("updated", "c.md"), ("detached", "b.md")], ["c.md", "d.md"])


def test_replaced_folder_is_watched_again_and_an_emptied_one_removes_nothing(own_folder: WatchedFolder) -> None:
    away = own_folder.path.with_name("away")
    with own_folder.watch("--prune", "delete", a="the ant") as watch:
        own_folder.path.rename(away)
        watch.wait_for_state("missing")
        own_folder.fill(a="the ant", b="the bee")
        watch.wait_for_item("created", "b.md")
        own_folder.add(watch, c="the cat")
        fill(away, d="the dog")
        assert own_folder.installation.svc("watch", "flush", "docs").exit == 0
        assert own_folder.titles() == ["a.md", "b.md", "c.md"]
        assert {"armed", "replaced"} & own_folder.state()["syncs"].keys()
        for file in own_folder.path.iterdir():
            file.unlink()
        watch.wait_for_state("troubled")
        assert own_folder.state()["error"]["code"] == "svc_safety_stop"
        assert own_folder.titles() == ["a.md", "b.md", "c.md"], "an emptied folder has removed sources"


def test_changes_whose_inotify_events_were_dropped_are_uploaded(folder: WatchedFolder) -> None:
    folder.fill(a="the ant", b="the bee")
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    with folder.watch() as watch:
        watch.process.send_signal(signal.SIGSTOP)
        for number in range(most // 3):  # two files in turn, so that the kernel can't merge the events
            folder.fill(a=f"ant {number}", b=f"bee {number}")
        fill(folder.path / "sub", c="the cat")
        watch.process.send_signal(signal.SIGCONT)
        watch.wait_for_item("created", "sub/c.md")
        fill(folder.path / "sub", d="the dog")
        watch.wait_for_item("created", "sub/d.md")
        for name in ("a.md", "b.md"):
            assert watch.items(name) == [("created", name), ("updated", name)]
        assert folder.state()["syncs"]["overflow"] >= 1


def test_too_few_inotify_watches_are_reported_with_the_fix_and_the_folder_is_polled(folder: WatchedFolder) -> None:
    for name in "pqrstu":
        fill(folder.path / name, a="the ant")
    limited = "echo 3 > /proc/sys/user/max_inotify_watches && exec "
    command = f"{limited} {sys.executable} -m {IMPATIENT} watch run {folder.path} -b limits --ndjson"
    if subprocess.run(["unshare", "-Ur", "sh", "-c", f"{limited} true"], capture_output=True, check=False).returncode:
        pytest.skip("no user namespaces here")
    with watching(folder.installation, program=["unshare", "-Ur", "sh", "-c", command]) as watch:
        fill(folder.path / "u", b="the bee")
        watch.wait_for_item("created", "u/b.md")
        (note,) = watch.notes
        assert ("for the 7 folders" in note, "sudo sysctl fs.inotify.max_user_watches=" in note) == (True, True), note
        assert folder.state()["polling"]


def test_full_state_folder_is_reported_and_the_watcher_continues(folder: WatchedFolder) -> None:
    with folder.watch(a="the ant") as watch:
        # A limit on the file size looks like a full disk.
        before = resource.prlimit(watch.process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        folder.fill(b="the bee")
        wait_until(lambda: watch.notes, "the error is reported")
        resource.prlimit(watch.process.pid, resource.RLIMIT_FSIZE, before)
        watch.wait_for_item("created", "b.md")
        assert len(folder.sources()) == 2


def test_second_watcher_is_refused_and_ctrl_c_prints_a_summary(folder: WatchedFolder) -> None:
    svc, words = folder.installation.svc, (str(folder.path), "-b", folder.path.name)
    with folder.watch(a="the ant") as watch:
        second = svc("watch", "run", *words, "--json")
        assert (second.exit, second.json["error"]["code"], svc("sync", *words).exit) == (14, "svc_sync_running", 0)
        assert watch.end(signal.SIGINT) == 130
        assert (watch.lines[-1]["type"], watch.lines[-1]["exit_code"]) == ("watch.summary", 130)


def test_watcher_reconnects_to_a_restarted_daemon(own_folder: WatchedFolder) -> None:
    # With autostart, the watcher's daemon would compete with the test's for the data directory.
    with own_folder.watch("--no-autostart", a="the ant") as watch:
        own_folder.installation.stop()
        own_folder.fill(b="the bee")
        own_folder.installation.start()
        watch.wait_for_item("created", "b.md")
        own_folder.add(watch, c="the cat")
        assert len(own_folder.sources()) == 3


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
        wait_until(lambda: run_state(installation, "zwei")["running"], "the second folder is watched")
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


def test_what_cannot_be_read_is_shown_and_watched_as_soon_as_it_can(folder: WatchedFolder) -> None:
    fill(folder.path, a="the ant", shut="closed words")
    fill(folder.path / "later", b="the bee").chmod(0)
    (folder.path / "shut.md").chmod(0)
    words = ("watch", "run", str(folder.path), "-b", folder.path.name, "--ndjson")
    program = [sys.executable, "-c", WITHOUT_ROOTS_RIGHTS.replace("svc_cli", IMPATIENT), *words]
    try:
        with watching(folder.installation, program=program) as watch:
            wait_until(lambda: folder.state()["unwatched"] == ["later", "shut.md"], "both are shown")
            assert any("not watched until it can be read: later, shut.md" in note for note in watch.notes)
            assert "later, shut.md" in folder.installation.svc("watch", "status", folder.path.name).stdout
            (folder.path / "appears").mkdir(0)
            wait_until(lambda: "appears" in folder.state()["unwatched"], "a new folder is shown")
            (folder.path / "later").chmod(0o755)
            watch.wait_for_item("created", "later/b.md")
            (folder.path / "shut.md").chmod(0o644)
            watch.wait_for_item("created", "shut.md")
            (folder.path / "appears").chmod(0o755)
            wait_until(lambda: folder.state()["unwatched"] == [], "nothing is left")
            fill(folder.path / "later", c="the cat")
            watch.wait_for_item("created", "later/c.md")
            fill(folder.path / "appears", d="the dog")
            watch.wait_for_item("created", "appears/d.md")
    finally:
        for name in ("later", "shut.md", "appears"):
            (folder.path / name).chmod(0o755)


def test_changes_of_what_followed_links_lead_to_are_synced(folder: WatchedFolder) -> None:
    fill(folder.path / ".store" / "v1", a="the ant")
    (folder.path / "linked").symlink_to(".store/v1")
    (folder.path / "one.md").symlink_to(".store/one.md")
    with folder.watch("--follow-links", z="the zebra") as watch:
        assert folder.titles() == ["linked/a.md", "z.md"]
        fill(folder.path / ".store" / "v1", a="another ant", b="the bee")
        watch.wait_for_item("updated", "linked/a.md")
        watch.wait_for_item("created", "linked/b.md")
        fill(folder.path / ".store", one="what did not exist")
        watch.wait_for_item("created", "one.md")


def test_watcher_says_what_has_no_effect_and_goes_on(folder: WatchedFolder) -> None:
    with folder.watch("--exclude", "nothing/") as watch:
        assert watch.notes == [
            "the pattern nothing/ matches nothing in the folder.",
            f"{folder.path}: there is nothing in it.",
        ]
        folder.add(watch, a="the ant")
