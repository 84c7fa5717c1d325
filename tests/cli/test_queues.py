"""Which files go together, and by which door."""

from pathlib import Path

import pytest

from svc_cli.client.uploads import Description
from svc_cli.uploads.contents import FileContent
from svc_cli.uploads.items import ReportItem
from svc_cli.uploads.queues import BATCH_BYTES, LARGE_BYTES, Mode, Packer
from svc_cli.uploads.transfers import Transfer

MB = 1024 * 1024


def _transfer(size_bytes: int) -> Transfer:
    content = FileContent(Path("a.md"), "0" * 64, size_bytes)
    return Transfer(ReportItem(path="a.md", action="created"), content, Description(filename="a.md", title="a.md"))


def _pack(mode: Mode, *sizes: int) -> list[tuple[str, int]]:
    """Kind and number of files of each group."""
    packer = Packer(mode)
    groups = [group for size in sizes for group in packer.add(_transfer(size))]
    return [(each.kind, len(each.transfers)) for each in [*groups, *packer.rest()]]


@pytest.mark.parametrize(
    ("mode", "sizes", "groups"),
    [
        ("auto", [1], [("one", 1)]),
        ("auto", [LARGE_BYTES], [("one", 1)]),
        ("auto", [LARGE_BYTES + 1], [("session", 1)]),
        ("auto", [1, 1], [("batch", 2)]),
        ("auto", [1, LARGE_BYTES + 1, 1], [("session", 1), ("batch", 2)]),
        ("auto", [1] * 100, [("batch", 100)]),
        ("auto", [1] * 101, [("batch", 100), ("one", 1)]),
        ("auto", [8 * MB] * 40, [("batch", 32), ("batch", 8)]),
        ("one", [1, LARGE_BYTES + 1], [("one", 1), ("one", 1)]),
        ("session", [1, 1], [("session", 1), ("session", 1)]),
        ("batch", [1], [("batch", 1)]),
        ("batch", [25 * MB] * 11, [("batch", 10), ("batch", 1)]),
        ("auto", [], []),
    ],
)
def test_files_are_packed(mode: Mode, sizes: list[int], groups: list[tuple[str, int]]) -> None:
    assert _pack(mode, *sizes) == groups


def test_small_files_come_first_in_their_group_and_in_no_other() -> None:
    packer = Packer("auto")
    transfers = [_transfer(size) for size in [3 * MB, 5, 9, 5, *[1] * 96, 2, 1]]
    (first,) = [group for transfer in transfers for group in packer.add(transfer)]
    assert [each.size_bytes for each in first.transfers] == [*[1] * 96, 5, 5, 9, 3 * MB]
    assert [each for each in first.transfers if each.size_bytes == 5] == [transfers[1], transfers[3]], (
        "else as they were given"
    )
    assert [each.size_bytes for each in next(packer.rest()).transfers] == [1, 2]


def test_what_is_left_of_a_run_makes_the_same_groups() -> None:
    sizes = [3 * MB + number for number in range(300)]
    groups = _pack("auto", *sizes)
    done = groups[0][1]
    assert sizes[0] * done <= BATCH_BYTES
    assert _pack("auto", *sizes[done:]) == groups[1:]
