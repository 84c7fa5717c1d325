"""Tests the status of a batch, computed from its files, and the layout of packs."""

import itertools
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_daemon.core.uploads import batches, sessions
from svc_daemon.core.uploads.batches import roll_up

READY, SYNCING = (batches.ACTIVE, True), (batches.ACTIVE, False)
WAITING, INDEXED_NOW, UNSENT = ((status, False) for status in (batches.QUEUED, batches.INDEXING, batches.PENDING))
BROKEN, LEFT_OUT = (batches.FAILED, False), (batches.GIVEN_UP, False)
REMOVED, TAKEN_OUT = (batches.DELETED, False), (batches.DETACHED, False)
ENDED = [READY, BROKEN, LEFT_OUT, REMOVED, TAKEN_OUT]
ON_THEIR_WAY = [WAITING, INDEXED_NOW, SYNCING]
EVERY_THREE = list(itertools.combinations_with_replacement([*ENDED, *ON_THEIR_WAY, UNSENT], 3))


@pytest.mark.rule("batch.partial")
def test_the_status_of_a_batch_follows_from_its_items() -> None:
    for status, items in {
        "open": [[UNSENT], [UNSENT, LEFT_OUT]],
        "partial": [[UNSENT, WAITING], [UNSENT, READY], [UNSENT, BROKEN]],
        "processing": [[WAITING, READY], [SYNCING], [INDEXED_NOW, BROKEN]],
        "completed": [[READY, READY]],
        "completed_with_failures": [[READY, BROKEN], [READY, REMOVED], [READY, TAKEN_OUT]],
        "failed": [[BROKEN], [LEFT_OUT]],
    }.items():
        for some in items:
            assert roll_up(some, is_expired=False).status == status, some
    expired = [([READY, LEFT_OUT], "completed_with_failures"), ([LEFT_OUT], "expired"), ([LEFT_OUT, BROKEN], "failed")]
    for some, status in expired:
        assert roll_up(some, is_expired=True).status == status, some


@pytest.mark.rule("batch.terminal")
def test_a_batch_is_not_terminal_while_an_item_is_outstanding() -> None:
    for items in EVERY_THREE:
        outstanding = any(item in ON_THEIR_WAY or item == UNSENT for item in items)
        rolled = roll_up(items, is_expired=False)
        assert rolled.terminal is not outstanding, items
        assert (rolled.status in {"open", "partial", "processing"}) is outstanding, items
        assert rolled.ready is (set(items) == {READY}), items


@pytest.mark.rule("batch.counters")
def test_the_counters_add_up() -> None:
    for items in EVERY_THREE:
        counters = dict(roll_up(items, is_expired=False).counters)
        assert counters.pop("total") == sum(counters.values()) == 3, items


#: For each item, its size, and the received bytes, which are limited to the size.
ITEMS = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=12)


def place(items: list[tuple[int, int]]) -> list[batches.PackItem]:
    return batches.place_items((str(number), size, min(held, size)) for number, (size, held) in enumerate(items))


@given(ITEMS, st.data())
def test_each_item_gets_its_missing_bytes_from_any_pieces(items: list[tuple[int, int]], data: st.DataObject) -> None:
    placed = place(items)
    whole = bytes(number for number, (size, _) in enumerate(items) for _ in range(size))
    first = batches.received_bytes(placed)
    assert all(item.held_bytes == item.size_bytes for item in placed if item.offset_bytes + item.size_bytes <= first)
    cuts = sorted({first, len(whole), *data.draw(st.lists(st.integers(first, len(whole)), max_size=6))})
    got = {item.session_id: item.held_bytes for item in placed}
    for begin, end in pairwise(cuts):
        for item, lacking in batches.split(placed, begin, memoryview(whole)[begin:end]):
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
    assert batches.received_bytes(place(items)) == received


def test_a_pack_is_open_while_one_of_its_sessions_is_open() -> None:
    for statuses, state, when_expired in [
        *(({"open"}, "uploading", "expired"), ({"open", "finalized", "canceled"}, "uploading", "expired")),
        *(({"finalized", "canceled", "expired"}, "finalized", "finalized"), ({"expired"}, "expired", "expired")),
        ({"canceled", "expired"}, "canceled", "canceled"),
    ]:
        found = [batches.state_of(statuses, 1, 2, is_expired=is_expired) for is_expired in (False, True)]
        assert found == [state, when_expired], statuses
    assert batches.state_of({"open", "finalized"}, 2, 2, is_expired=False) == sessions.UPLOADED
