"""Tests the status of a batch, computed from its files."""

import itertools

import pytest

from svc_daemon.core.uploads import batches
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
