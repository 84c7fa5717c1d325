"""Watching a folder: one new version a save, whatever the editor; nothing lost and nothing removed by mistake."""

import hashlib
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.calls import list_sources
from tests.acceptance.installations import Installation, wait_until
from tests.acceptance.watches import fill, run_state, watching
from tests.conftest import MakeInstallation
from tests.samples import make_killing_pdf

MB = 1024**2

#: The file that is edited, and its bytes before and after.
NAME = "note.md"
OLD, NEW = b"The aardvark sleeps.\n", b"The bandicoot wakes, and stays awake.\n"


def _in_place(file: Path) -> None:
    with file.open("r+b") as opened:
        opened.write(NEW)


def _truncate(file: Path) -> None:
    file.write_bytes(NEW)


def _truncate_slowly(file: Path) -> None:
    with file.open("wb", buffering=0) as opened:
        for byte in NEW:
            opened.write(bytes([byte]))


def _temp_and_rename(file: Path) -> None:
    temp = file.with_name("note.md.tmp")
    temp.write_bytes(NEW)
    temp.replace(file)


def _dot_temp(file: Path) -> None:
    temp = file.with_name(".note.md.swp")
    temp.write_bytes(NEW)
    os.fsync(os.open(temp, os.O_RDONLY))
    temp.replace(file)


def _backup_and_rename(file: Path) -> None:
    backup = file.with_name("note.md~")
    file.rename(backup)
    file.write_bytes(NEW)
    backup.unlink()


def _delete_and_create(file: Path) -> None:
    file.unlink()
    file.write_bytes(NEW)


def _sed(file: Path) -> None:
    command = "s/.*/The bandicoot wakes, and stays awake./"
    subprocess.run(["sed", "-i", command, str(file)], check=True)


def _checkout(file: Path) -> None:
    _git(file.parent, "checkout", "-q", "new")


WAYS = (_in_place, _truncate, _truncate_slowly, _temp_and_rename, _dot_temp)
WAYS += (_backup_and_rename, _delete_and_create, _sed, _checkout)  # type: ignore[assignment]


@pytest.fixture
def folders(shared_installation: Installation, request: pytest.FixtureRequest) -> Iterator[Path]:
    folder = shared_installation.root / "".join(filter(str.isalnum, request.node.name))[-60:]
    yield fill(folder)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("save", WAYS, ids=[way.__name__.strip("_") for way in WAYS])
def test_each_way_to_save_is_one_new_version(
    shared_installation: Installation, folders: Path, save: Callable[[Path], None]
) -> None:
    bucket = f"way-{save.__name__.strip('_').replace('_', '-')}"
    file = folders / NAME
    file.write_bytes(OLD)
    if save is _checkout:
        _make_branches(folders)
    with watching(shared_installation, str(folders), "-b", bucket, "--prune", "delete") as watch:
        (before,) = _sources(shared_installation, bucket)
        save(file)
        watch.wait_for_item("updated", NAME)
        # A last file marks the time by which anything else would have been told: longer than a deletion waits.
        (folders / "z.md").write_text("the mark")
        watch.wait_for_item("created", "z.md")
        wait_until(lambda: run_state(shared_installation, folders.name)["pending"] == 0, "rest")
        flushed = shared_installation.svc("watch", "flush", folders.name, "--json")
        assert flushed.exit == 0
        assert watch.items() == [("created", NAME), ("updated", NAME), ("created", "z.md")]
        now = {source["title"]: source for source in _sources(shared_installation, bucket)}
        assert sorted(now) == [NAME, "z.md"]
        assert now[NAME]["sha256"] == hashlib.sha256(NEW).hexdigest()
        assert now[NAME]["id"] != before["id"]
        assert watch.end() == 0


def test_what_moves_is_renamed_and_not_sent(shared_installation: Installation, folders: Path) -> None:
    fill(folders / "sub", a="the ant", b="the bee")
    with watching(shared_installation, str(folders), "-b", "moves") as watch:
        before = {source["id"] for source in _sources(shared_installation, "moves")}
        (folders / "sub").rename(folders / "other")
        watch.wait_for_item("moved", "other/a.md")
        watch.wait_for_item("moved", "other/b.md")
        now = _sources(shared_installation, "moves")
        assert {source["title"] for source in now} == {"other/a.md", "other/b.md"}
        assert {source["id"] for source in now} == before


def test_what_is_deleted_leaves_only_where_that_was_asked_for(shared_installation: Installation, folders: Path) -> None:
    fill(folders, a="the ant", b="the bee", c="the cat")
    with watching(shared_installation, str(folders), "-b", "kept", "--name", "kept") as watch:
        (folders / "a.md").unlink()
        watch.wait_for_item("gone", "a.md")
        assert len(_sources(shared_installation, "kept")) == 3
        watch.end()
    with watching(shared_installation, str(folders), "-b", "pruned", "--name", "pruned", "--prune", "detach") as watch:
        (folders / "b.md").unlink()
        (folders / "c.md").unlink()
        (folders / "c.md").write_text("the cat came back\n")
        watch.wait_for_item("detached", "b.md")
        assert watch.items()[2:] == [("updated", "c.md"), ("detached", "b.md")]
        assert [source["title"] for source in _sources(shared_installation, "pruned")] == ["c.md"]


def test_new_rules_bring_in_what_they_let_through_and_remove_nothing(
    shared_installation: Installation, folders: Path
) -> None:
    (folders / ".svcignore").write_text("b.md\n")
    fill(folders, a="the ant", b="the bee")
    with watching(shared_installation, str(folders), "-b", "rules", "--prune", "delete") as watch:
        (folders / ".svcignore").write_text("a.md\n")
        watch.wait_for_item("created", "b.md")
        assert {source["title"] for source in _sources(shared_installation, "rules")} == {"a.md", "b.md"}


def test_a_root_that_was_replaced_is_listened_to_anew(shared_installation: Installation, folders: Path) -> None:
    root = fill(folders / "root", a="the ant")
    with watching(shared_installation, str(root), "-b", "replaced", "--prune", "delete") as watch:
        root.rename(folders / "away")
        watch.wait_for_state("missing")
        fill(root, a="the ant", b="the bee")
        watch.wait_for_item("created", "b.md")
        (root / "c.md").write_text("the cat\n")
        watch.wait_for_item("created", "c.md")
        (folders / "away" / "d.md").write_text("the dog\n")
        assert shared_installation.svc("watch", "flush", "root").exit == 0
        assert "d.md" not in {source["title"] for source in _sources(shared_installation, "replaced")}
        assert len(_sources(shared_installation, "replaced")) == 3
        assert {"armed", "replaced"} & run_state(shared_installation, "root")["syncs"].keys()


def test_an_emptied_root_takes_nothing_out(shared_installation: Installation, folders: Path) -> None:
    fill(folders, **{f"n{number}": f"note {number}" for number in range(12)})
    with watching(shared_installation, str(folders), "-b", "emptied", "--prune", "delete") as watch:
        for file in folders.iterdir():
            file.unlink()
        watch.wait_for_state("troubled")
        assert run_state(shared_installation, folders.name)["error"]["code"] == "svc_safety_stop"
        assert len(_sources(shared_installation, "emptied")) == 12


def test_a_burst_arrives_whole(shared_installation: Installation, folders: Path, large: bool) -> None:
    count = 60_000 if large else 1100
    (folders / "first.md").write_text("the first\n")
    with watching(shared_installation, str(folders), "-b", "burst") as watch:
        for number in range(count):
            file = folders / f"{number // 100:03}" / f"{number % 100:02}.md"
            file.parent.mkdir(exist_ok=True)
            file.write_text(f"note {number}\n")
        wait_until(lambda: "syncing" in watch.states[2:] or len(watch.items()) > 1, "the burst is noticed", 15)
        wait_until(lambda: len(watch.items()) > count, "all of it is searchable", 3600 if large else 120)
        assert len(_sources(shared_installation, "burst")) == count + 1
        assert len(set(watch.items())) == count + 1


def test_reports_that_the_system_dropped_are_made_good(shared_installation: Installation, folders: Path) -> None:
    fill(folders, a="the ant", b="the bee")
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    with watching(shared_installation, str(folders), "-b", "overflow") as watch:
        watch.process.send_signal(signal.SIGSTOP)
        for number in range(most // 3):  # two files in turn, so that the system can't make one report of many
            (folders / "a.md").write_text(f"ant {number}\n")
            (folders / "b.md").write_text(f"bee {number}\n")
        fill(folders / "sub", c="the cat")
        watch.process.send_signal(signal.SIGCONT)
        watch.wait_for_item("created", "sub/c.md")
        fill(folders / "sub", d="the dog")
        watch.wait_for_item("created", "sub/d.md")
        assert sorted(watch.items("a.md") + watch.items("b.md")) == [
            ("created", "a.md"),
            ("created", "b.md"),
            ("updated", "a.md"),
            ("updated", "b.md"),
        ]
        assert run_state(shared_installation, folders.name)["syncs"]["overflow"] >= 1


def test_too_few_watches_are_told_with_their_cure_and_the_folder_is_asked_instead(
    shared_installation: Installation, folders: Path
) -> None:
    for name in "pqrstu":
        fill(folders / name, a="the ant")
    limited = "echo 3 > /proc/sys/user/max_inotify_watches && exec "
    command = f"{limited} {sys.executable} -m svc_cli watch run {folders} -b limits --ndjson"
    if subprocess.run(["unshare", "-Ur", "sh", "-c", f"{limited} true"], capture_output=True, check=False).returncode:
        pytest.skip("no user namespaces here")
    with watching(shared_installation, program=["unshare", "-Ur", "sh", "-c", command]) as watch:
        fill(folders / "u", b="the bee")
        watch.wait_for_item("created", "u/b.md")
        notes = [line["message"] for line in watch.lines if line["type"] == "watch.note"]
        assert len(notes) == 1
        assert "needs 7" in notes[0]
        assert "sudo sysctl fs.inotify.max_user_watches=" in notes[0]
        assert run_state(shared_installation, folders.name)["polling"]


def test_a_state_folder_without_room_is_told_and_watched_on(shared_installation: Installation, folders: Path) -> None:
    fill(folders, a="the ant")
    with watching(shared_installation, str(folders), "-b", "no-room") as watch:
        # A limit on the size of files is what a full disk looks like.
        before = resource.prlimit(watch.process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        fill(folders, b="the bee")
        wait_until(lambda: [line for line in watch.lines if line["type"] == "watch.note"], "the trouble is told")
        resource.prlimit(watch.process.pid, resource.RLIMIT_FSIZE, before)
        watch.wait_for_item("created", "b.md")
        assert len(_sources(shared_installation, "no-room")) == 2


def test_one_that_was_killed_goes_on_where_it_was(shared_installation: Installation, folders: Path) -> None:
    fill(folders, a="the ant")
    with watching(shared_installation, str(folders), "-b", "killed") as watch:
        (folders / "b.md").write_text("the bee\n")
        watch.end(signal.SIGKILL)
    assert not run_state(shared_installation, folders.name)["running"]
    (folders / "c.md").write_text("the cat\n")
    with watching(shared_installation, str(folders), "-b", "killed"):
        titles = sorted(source["title"] for source in _sources(shared_installation, "killed"))
        assert titles == ["a.md", "b.md", "c.md"]


def test_a_source_that_somebody_deleted_is_made_again_by_the_next_save(
    shared_installation: Installation, folders: Path
) -> None:
    fill(folders, a="the ant")
    with watching(shared_installation, str(folders), "-b", "stolen") as watch:
        (stolen,) = _sources(shared_installation, "stolen")
        assert shared_installation.svc("source", "rm", "--force", stolen["id"]).exit == 0
        (folders / "a.md").write_text("the ant is back\n")
        (source,) = wait_until(lambda: _sources(shared_installation, "stolen"), f"it is there again; {watch.lines}")
        assert source["id"] != stolen["id"]
        assert source["sha256"] == hashlib.sha256(b"the ant is back\n").hexdigest()


def test_a_mapping_of_the_project_may_be_a_link(installation: Installation) -> None:
    fill(installation.root / "real", a="the ant")
    (installation.root / "docs").symlink_to("real")
    (installation.root / "svc.toml").write_text('[[map]]\ndir = "docs"\nbucket = "linked"\n')
    with watching(installation) as watch:
        (installation.root / "real" / "b.md").write_text("the bee\n")
        watch.wait_for_item("created", "b.md")
        assert {source["title"] for source in _sources(installation, "linked")} == {"a.md", "b.md"}


def test_one_watcher_is_enough(shared_installation: Installation, folders: Path) -> None:
    fill(folders, a="the ant")
    with watching(shared_installation, str(folders), "-b", "single"):
        second = shared_installation.svc("watch", "run", str(folders), "-b", "single", "--json")
        assert (second.exit, second.json["error"]["code"]) == (14, "svc_sync_running")
        assert shared_installation.svc("sync", str(folders), "-b", "single").exit == 0


def test_a_daemon_that_was_restarted_meanwhile_is_found_again(installation: Installation) -> None:
    folder = fill(installation.root / "docs", a="the ant")
    # One that may start a daemon would race for the folder with the one that is started here.
    with watching(installation, str(folder), "-b", "restarts", "--no-autostart") as watch:
        installation.stop()
        (folder / "b.md").write_text("the bee\n")
        installation.start()
        watch.wait_for_item("created", "b.md")
        (folder / "c.md").write_text("the cat\n")
        watch.wait_for_item("created", "c.md")
        assert len(_sources(installation, "restarts")) == 3


def test_a_document_that_takes_long_does_not_hold_up_the_next_save(make_installation: MakeInstallation) -> None:
    # A parser that dies each time is tried again and again, with pauses: this one is never done.
    installation = make_installation(SVC_LIMIT_TASK_ATTEMPTS="100", SVC_LIMIT_EXTRACT_MEMORY_BYTES=str(256 * MB))
    installation.start()
    folder = fill(installation.root / "docs", a="the ant")
    with watching(installation, str(folder), "-b", "slow") as watch:
        (folder / "poison.pdf").write_bytes(make_killing_pdf(300 * MB))
        watch.wait_for_item("created", "poison.pdf")
        (folder / "b.md").write_text("the bee\n")
        watch.wait_for_item("created", "b.md")
        (told,) = [line for line in watch.lines if line.get("path") == "poison.pdf"]
        assert (told["status"] not in ("active", "failed"), told["ready"]) == (True, False)


def test_an_idle_watcher_syncs_nothing(shared_installation: Installation, folders: Path) -> None:
    fill(folders, a="the ant")
    with watching(shared_installation, str(folders), "-b", "idle") as watch:
        (folders / "a.md").read_bytes()
        (folders / ".hidden.md").write_text("hidden")
        (folders / "a.md").touch()
        flushed = shared_installation.svc("watch", "flush", folders.name, "--json").json["mappings"][0]
        assert flushed["syncs"] == {"start": 1, "flush": 1}
        assert watch.items() == [("created", "a.md")]


def test_mappings_are_added_listed_and_removed_while_a_watcher_runs(installation: Installation) -> None:
    one, two = fill(installation.root / "one", a="the ant"), fill(installation.root / "two", b="the bee")
    assert installation.svc("watch", "run").exit == 2
    assert installation.svc("watch", "add", str(one), "-b", "first").exit == 0
    with watching(installation) as watch:
        assert installation.svc("watch", "add", str(two), "-b", "second", "--name", "zwei", "--tag", "x").exit == 0
        watch.wait_for_item("created", "b.md")
        listed = installation.svc("watch", "ls", "--json").json["mappings"]
        assert [(each["mapping"], each["bucket"], each["dir"]) for each in listed] == [
            ("one", "first", str(one)),
            ("zwei", "second", str(two)),
        ]
        wait_until(lambda: run_state(installation, "zwei")["running"], "the second is watched")
        assert [line["path"] for line in _log(installation, "zwei") if line["type"] == "watch.item"] == ["b.md"]
        assert installation.svc("watch", "rm", "zwei").exit == 0
        watch.wait_for_state("watching", times=2)
    assert [each["mapping"] for each in installation.svc("watch", "ls", "--json").json["mappings"]] == ["one"]
    assert installation.svc("watch", "rm", "zwei").exit == 5


def test_folders_one_inside_the_other_are_refused_for_one_bucket(installation: Installation) -> None:
    folder = fill(installation.root / "docs" / "deep", a="the ant")
    assert installation.svc("watch", "add", str(folder), "-b", "one").exit == 0
    refused = installation.svc("watch", "add", str(folder.parent), "-b", "one", "--name", "other", "--json")
    assert (refused.exit, "overlap" in refused.json["error"]["message"]) == (2, True)
    assert installation.svc("watch", "add", str(folder.parent), "-b", "two").exit == 0


def test_nobody_to_flush_is_told(installation: Installation) -> None:
    refused = installation.svc("watch", "flush", "--json")
    assert (refused.exit, refused.json["error"]["code"]) == (5, "svc_not_watched")


def test_ctrl_c_ends_it_with_one_value(shared_installation: Installation, folders: Path) -> None:
    fill(folders, a="the ant")
    with watching(shared_installation, str(folders), "-b", "ended") as watch:
        assert watch.end(signal.SIGINT) == 130
        assert (watch.lines[-1]["type"], watch.lines[-1]["exit_code"]) == ("watch.summary", 130)


def _sources(installation: Installation, bucket: str) -> list[dict[str, Any]]:
    with installation.client() as client:
        return list_sources(client, bucket)


def _log(installation: Installation, name: str) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = installation.svc("watch", "log", name, "--json").json["lines"]
    return lines


def _make_branches(folder: Path) -> None:
    """A repository with the old file on the branch that is out, and the new one on `new`."""
    _git(folder, "init", "-q", "-b", "old")
    _git(folder, "add", NAME)
    _git(folder, "commit", "-qm", "old")
    _git(folder, "checkout", "-qb", "new")
    (folder / NAME).write_bytes(NEW)
    _git(folder, "commit", "-qam", "new")
    _git(folder, "checkout", "-q", "old")


def _git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True)
