"""Tests the layout of packs."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_daemon.core.uploads import packs, sessions

#: For each item, its size, and the received bytes, which are limited to the size.
ITEMS = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=12)


def place(items: list[tuple[int, int]]) -> list[packs.PackItem]:
    return packs.place_items((str(number), size, min(held, size)) for number, (size, held) in enumerate(items))


@given(ITEMS, st.data())
def test_each_item_gets_its_missing_bytes_from_any_pieces(items: list[tuple[int, int]], data: st.DataObject) -> None:
    placed = place(items)
    whole = bytes(number for number, (size, _) in enumerate(items) for _ in range(size))
    first = packs.received_bytes(placed)
    assert all(item.held_bytes == item.size_bytes for item in placed if item.offset_bytes + item.size_bytes <= first)
    cuts = sorted({first, len(whole), *data.draw(st.lists(st.integers(first, len(whole)), max_size=6))})
    got = {item.session_id: item.held_bytes for item in placed}
    for begin, end in pairwise(cuts):
        for item, lacking in packs.split(placed, begin, memoryview(whole)[begin:end]):
            assert lacking
            assert set(lacking) == {int(item.session_id)}
            got[item.session_id] += len(lacking)
    assert [got[item.session_id] for item in placed] == [item.size_bytes for item in placed]


@pytest.mark.parametrize(
    ("items", "received"),
    [
        *(([(3, 0), (2, 2)], 0), ([(3, 2), (2, 2)], 2), ([(3, 3), (2, 0)], 3), ([(3, 3), (2, 2)], 5)),
        ([(3, 3), (2, 2), (4, 1), (2, 2)], 6),
    ],
)
def test_the_received_bytes_end_at_the_first_gap(items: list[tuple[int, int]], received: int) -> None:
    assert packs.received_bytes(place(items)) == received


def test_a_pack_is_open_while_one_of_its_sessions_is_open() -> None:
    for statuses, state, when_expired in [
        *(({"open"}, "uploading", "expired"), ({"open", "finalized", "canceled"}, "uploading", "expired")),
        *(({"finalized", "canceled", "expired"}, "finalized", "finalized"), ({"expired"}, "expired", "expired")),
        ({"canceled", "expired"}, "canceled", "canceled"),
        ({"failed", "expired"}, "canceled", "canceled"),
    ]:
        found = [packs.state_of(statuses, 1, 2, is_expired=is_expired) for is_expired in (False, True)]
        assert found == [state, when_expired], statuses
    assert packs.state_of({"open", "finalized"}, 2, 2, is_expired=False) == sessions.UPLOADED
