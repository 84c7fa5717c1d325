"""Watching a folder: file system events, when changed paths settle (timed changes are replayed), and full syncs."""

import os
from pathlib import Path
from typing import Any

import pytest
from watchdog.events import FileMovedEvent

from svc_cli.sync.watch.observers import (
    EVERYTHING,
    Event,
    Handler,
    Hint,
    Kind,
    count_folders,
    hints_of,
    hints_through,
    kind_of,
)
from svc_cli.sync.watch.settling import BUSY_S, MANY, PERIOD_S, Agenda, Facts, Naps, Settler

#: A change: the second, the path and the kind of the hint, and the file's size from then on (None if it is deleted).
Step = tuple[float, str, Kind, int | None]
TICK_S = 0.05


class Folder:
    """A simulated folder that replays changes on a clock that advances in ticks."""

    def __init__(self, *steps: Step) -> None:
        self.steps, self.sizes = list(steps), dict[str, int | None]()
        self.settler = Settler()
        self.settled: list[tuple[float, str]] = []

    def run(self, until_s: float) -> list[tuple[float, str]]:
        """Replay the changes up to this second, and return the time at which each path settled."""
        for tick in range(int(until_s / TICK_S) + 1):
            now_s = round(tick * TICK_S, 3)
            while self.steps and self.steps[0][0] <= now_s:
                _, path, kind, size = self.steps.pop(0)
                self.sizes[path] = size
                self.settler.add(Hint(path, kind), now_s, self.look)
            self.settled += [(now_s, path) for path in sorted(self.settler.take(now_s, self.look))]
        return self.settled

    def look(self, path: str) -> Facts:
        size = self.sizes.get(path)
        return None if size is None else (size, size, 1)


W, C, G, M = Kind.WRITTEN, Kind.CLOSED, Kind.GONE, Kind.MOVED


#: The changes of each case, and the second at which each path settles.
SETTLING: dict[str, tuple[list[Step], list[tuple[float, str]]]] = {
    "closed": ([(0, "a", C, 1)], [(0.15, "a")]),
    "written and left open": ([(0, "a", W, 1)], [(0.5, "a")]),
    "truncated, then written": ([(0, "a", W, 0), (0.1, "a", W, 5), (0.1, "a", C, 5)], [(0.25, "a")]),
    "written on and on": ([(0, "a", W, 1), (0.4, "a", W, 2), (0.8, "a", W, 3)], [(1.3, "a")]),
    "deleted": ([(0, "a", G, None)], [(5.0, "a")]),
    "deleted and back": ([(0, "a", G, None), (1, "a", W, 2), (1, "a", C, 2)], [(1.15, "a")]),
    "renamed over": ([(0, "t", W, 2), (0, "t", G, None), (0, "a", C, 2)], [(0.15, "a"), (5.0, "t")]),
    "moved: both ends together": ([(0, "a", G, None), (0, "b", M, 1)], [(5.0, "a"), (5.0, "b")]),
    "backup renamed, written again, backup deleted": (
        [(0, "a", G, None), (0, "a~", M, 1), (0.1, "a", C, 2), (0.2, "a~", G, None)],
        [(0.25, "a"), (5.2, "a~")],
    ),
}


def test_paths_settle_after_the_delay_for_their_last_change() -> None:
    for case, (steps, settled) in SETTLING.items():
        assert Folder(*steps).run(7) == settled, case


@pytest.mark.parametrize(
    ("size", "looks"), ((2, {0.15: set(), 0.3: {"a"}}), (None, {0.15: set(), 5.0: set(), 5.15: {"a"}}))
)
def test_file_changed_or_deleted_without_a_hint_settles_after_another_delay(
    size: int | None, looks: dict[Any, Any]
) -> None:
    folder = Folder((0, "a", C, 1))
    folder.run(0.1)
    folder.sizes["a"] = size
    assert {now_s: folder.settler.take(now_s, folder.look) for now_s in looks} == looks


def test_folder_does_not_settle_while_a_file_in_it_is_being_written() -> None:
    steps: list[Step] = [(0, "d", W, 1)] + [(each / 10, "d/f", W, each) for each in range(20)]
    settled = Folder(*steps).run(5)
    assert sorted(path for _, path in settled) == ["d", "d/f"]
    assert min(at for at, _ in settled) >= 2.4


def test_file_written_for_a_long_time_is_listed_as_busy_and_settles_after_the_last_write() -> None:
    steps: list[Step] = [(each / 4, "a", W, each) for each in range(48)]
    folder = Folder(*steps)
    assert folder.run(11) == []
    assert [folder.settler.busy(longest_s) for longest_s in (BUSY_S - 0.1, BUSY_S)] == [[], ["a"]]
    assert Folder(*steps).run(13) == [(12.25, "a")]


def test_many_changed_paths_settle_as_the_whole_folder() -> None:
    steps: list[Step] = [(0, f"f{number}", W, 1) for number in range(MANY + 500)]
    folder = Folder(*steps)
    assert folder.run(0.45) == []
    assert folder.settler.due_s() == 0.5
    assert folder.run(2) == [(0.5, EVERYTHING)]


def test_whole_folder_settles_during_an_endless_burst_of_changes() -> None:
    steps: list[Step] = [(each / 10, f"f{each}-{number}", W, 1) for each in range(60) for number in range(300)]
    (first_s, path), *_ = Folder(*steps).run(5.9)
    assert path == EVERYTHING
    assert 5 < first_s < 7


def test_folder_is_not_calm_until_five_seconds_after_a_deletion() -> None:
    folder = Folder((0, "a", G, None))
    assert folder.settler.is_calm(0)
    folder.run(1)
    assert [folder.settler.is_calm(now_s) for now_s in (4.9, 5)] == [False, True]


def test_next_check_is_due_when_the_first_path_may_settle() -> None:
    folder = Folder((0, "a", W, 1), (0, "b", C, 1))
    assert folder.settler.due_s() is None
    folder.run(0)
    assert folder.settler.due_s() == 0.15


def test_first_full_sync_is_due_at_once_and_the_next_after_the_period() -> None:
    agenda = Agenda()
    assert [agenda.take(100 + later_s) for later_s in (0, PERIOD_S - 1, PERIOD_S)] == ["start", None, "period"]
    assert agenda.counts == {"start": 1, "period": 1}


def test_several_requests_cause_one_sync_counted_for_the_earliest() -> None:
    agenda = Agenda()
    agenda.take(0)
    for call in (("calm", 10, 5), ("overflow", 10), ("flush", 11)):
        agenda.call(*call)
    assert [agenda.take(now_s) for now_s in (12, 20)] == ["overflow", None]
    assert agenda.counts == {"start": 1, "overflow": 1}


def test_pause_after_a_failed_sync_doubles_up_to_a_minute_and_is_reset_by_success() -> None:
    agenda = Agenda()
    agenda.take(0)
    pauses = []
    for _ in range(8):
        agenda.end_in_trouble(0)
        pauses.append(agenda.due_s)
        agenda.take(agenda.due_s)
        agenda.due_s = PERIOD_S
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
    agenda.end_well()
    agenda.end_in_trouble(0)
    assert agenda.due_s == 1


def test_sleep_is_detected_once_when_one_clock_jumps_ahead() -> None:
    naps = Naps()
    clocks = [(100, 5000), (101, 5001.5), (102, 8000), (103, 8001)]
    assert [naps.has_slept(*each) for each in clocks] == [False, False, True, False]


ROOT = "/users/ann/docs"


def hints(verb: str, path: str, target: str = "", *, is_folder: bool = False, fresh: str = "") -> list[Hint]:
    event = Event(verb, is_folder, f"{ROOT}/{path}", f"{ROOT}/{target}" if target else "")
    return list(hints_of(event, ROOT, lambda each: each == fresh))


def test_changes_of_a_file_are_hints_and_reading_it_is_not() -> None:
    for verb, kind in (("created", W), ("modified", W), ("closed", C), ("deleted", G)):
        assert hints(verb, "a/b.md") == [Hint("a/b.md", kind)]
    for verb in ("opened", "closed_no_write", "attrib"):
        assert hints(verb, "a.md") == []
    assert hints("created", "a", is_folder=True) == [Hint("a", W)]
    assert hints("modified", "a", is_folder=True) == [], "every new file modifies its folder"


def test_renaming_a_fresh_or_hidden_file_counts_as_writing_its_new_path() -> None:
    assert hints("moved", "a.md.tmp", "a.md", fresh="a.md.tmp") == [Hint("a.md.tmp", G), Hint("a.md", C)]
    assert hints("moved", ".a.md.swp", "a.md") == [Hint("a.md", C)]


@pytest.mark.parametrize("is_folder", (False, True))
def test_moving_a_settled_path_gives_hints_for_the_old_and_the_new_path(is_folder: bool) -> None:
    assert hints("moved", "a", "b", is_folder=is_folder) == [Hint("a", G), Hint("b", M)]


def test_hidden_paths_are_ignored_and_a_file_moved_to_one_is_gone() -> None:
    assert hints("moved", "a.md", ".trash/a.md") == [Hint("a.md", G)]
    for path in (".git/index", "a/.cache/b", ".hidden.md", ".git/.gitignore"):
        assert hints("closed", path) == []


def test_changed_ignore_file_is_a_hint_about_its_whole_folder() -> None:
    assert [*hints("closed", "a/.gitignore"), *hints("closed", ".svcignore")] == [Hint("a", W), Hint(EVERYTHING, W)]


def test_paths_of_windows_become_paths_with_slashes_also_through_links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sep", "\\")
    found: list[Event] = []
    Handler(found.append).dispatch(FileMovedEvent(r"C:\docs\new\a.md", r"C:\docs\sub\b.md"))
    assert found == [Event("moved", False, "C:/docs/new/a.md", "C:/docs/sub/b.md")]
    hinted = list(hints_through(found[0], "C:/docs", {"link": "sub"}, lambda _: False))
    assert hinted == [Hint("new/a.md", G), Hint("sub/b.md", M), Hint("link/b.md", C)]


@pytest.mark.parametrize("path", (ROOT, f"{ROOT}-old/a.md"))
def test_events_of_the_root_and_of_its_siblings_are_ignored(path: str) -> None:
    assert list(hints_of(Event("deleted", False, path), ROOT, lambda _: False)) == []


MOUNTS = [
    "/dev/sda1 / ext4 rw 0 0",
    "server:/users /users nfs4 rw 0 0",
    "/dev/sdb1 /users/ann/local xfs rw 0 0",
    "//server/share /mnt/two\\040words cifs rw 0 0",
    "tmpfs /over tmpfs rw 0 0",
    "me@host: /over fuse.sshfs rw 0 0",
    "broken",
]


def test_file_system_of_a_path_is_that_of_its_deepest_and_latest_mount() -> None:
    kinds = {"/etc": "ext4", "/": "ext4", "/users/ann": "nfs4", "/usersly": "ext4", "/users/ann/local/docs": "xfs"}
    kinds |= {"/mnt/two words/docs": "cifs", "/over": "fuse.sshfs"}
    assert {path: kind_of(path, MOUNTS) for path in kinds} == kinds


def test_count_of_folders_includes_the_root_and_no_files(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "c.md").touch()
    assert count_folders(tmp_path) == 3
