"""Which files go together, and by which door."""

from pathlib import Path

import pytest

from svc_cli.client.uploads import Description
from svc_cli.uploads.deliveries import Parcel
from svc_cli.uploads.readings import FileContent, Reading
from svc_cli.uploads.selections import Candidate
from svc_cli.uploads.shipments import BATCH_BYTES, LARGE_BYTES, Mode, Packer
from svc_cli.uploads.summaries import Item

MB = 1024 * 1024


def _parcel(size_bytes: int) -> Parcel:
    candidate = Candidate(Path("a.md"), "a.md", is_named=True)
    content = FileContent(candidate, Reading("0" * 64, size_bytes, None))
    return Parcel(Item(path="a.md", action="created"), content, Description(filename="a.md", title="a.md"))


def _pack(mode: Mode, *sizes: int) -> list[tuple[str, int]]:
    """Kind and number of files of each shipment."""
    packer = Packer(mode)
    shipments = [shipment for size in sizes for shipment in packer.add(_parcel(size))]
    return [(each.kind, len(each.parcels)) for each in [*shipments, *packer.rest()]]


@pytest.mark.parametrize(
    ("mode", "sizes", "shipments"),
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
def test_files_are_packed(mode: Mode, sizes: list[int], shipments: list[tuple[str, int]]) -> None:
    assert _pack(mode, *sizes) == shipments


def test_small_files_come_first_in_their_group_and_in_no_other() -> None:
    packer = Packer("auto")
    parcels = [_parcel(size) for size in [3 * MB, 5, 9, 5, *[1] * 96, 2, 1]]
    (first,) = [shipment for parcel in parcels for shipment in packer.add(parcel)]
    assert [each.size_bytes for each in first.parcels] == [*[1] * 96, 5, 5, 9, 3 * MB]
    assert [each for each in first.parcels if each.size_bytes == 5] == [parcels[1], parcels[3]], (
        "else as they were given"
    )
    assert [each.size_bytes for each in next(packer.rest()).parcels] == [1, 2]


def test_what_is_left_of_a_run_makes_the_same_groups() -> None:
    sizes = [3 * MB + number for number in range(300)]
    groups = _pack("auto", *sizes)
    done = groups[0][1]
    assert sizes[0] * done <= BATCH_BYTES
    assert _pack("auto", *sizes[done:]) == groups[1:]
