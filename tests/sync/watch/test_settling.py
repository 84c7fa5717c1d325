"""When changed paths settle: each test replays timed changes and checks the second at which each path settles."""

from typing import Any

import pytest

from svc_cli.sync.watch.observers import EVERYTHING, Hint, Kind
from svc_cli.sync.watch.settling import BUSY_S, MANY, Facts, Settler

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
