"""The batch's status from its items."""

import itertools

from svc_daemon.core.uploads.batches import (
    ACTIVE,
    DELETED,
    DETACHED,
    FAILED,
    GIVEN_UP,
    INDEXING,
    PENDING,
    QUEUED,
    roll_up,
)

READY = (ACTIVE, True)
SYNCING = (ACTIVE, False)
ENDED = [READY, (FAILED, False), (GIVEN_UP, False), (DELETED, False), (DETACHED, False)]
ON_THEIR_WAY = [(QUEUED, False), (INDEXING, False), SYNCING]


def test_the_status_is_rolled_up() -> None:
    for items, expired, status in [
        ([(PENDING, False)], False, "open"),
        ([(PENDING, False), (GIVEN_UP, False)], False, "open"),
        ([(PENDING, False), (QUEUED, False)], False, "partial"),
        ([(PENDING, False), READY], False, "partial"),
        ([(PENDING, False), (FAILED, False)], False, "partial"),
        ([(QUEUED, False), READY], False, "processing"),
        ([SYNCING], False, "processing"),
        ([(INDEXING, False), (FAILED, False)], False, "processing"),
        ([READY, READY], False, "completed"),
        ([READY, (FAILED, False)], False, "completed_with_failures"),
        ([READY, (GIVEN_UP, False)], True, "completed_with_failures"),
        ([READY, (DELETED, False)], False, "completed_with_failures"),
        ([READY, (DETACHED, False)], False, "completed_with_failures"),
        ([(FAILED, False)], False, "failed"),
        ([(GIVEN_UP, False)], False, "failed"),
        ([(GIVEN_UP, False)], True, "expired"),
        ([(GIVEN_UP, False), (FAILED, False)], True, "failed"),
    ]:
        assert roll_up(items, is_expired=expired).status == status


def test_no_status_is_terminal_while_an_item_is_outstanding() -> None:
    for items in itertools.combinations_with_replacement([*ENDED, *ON_THEIR_WAY, (PENDING, False)], 3):
        outstanding = any(item in ON_THEIR_WAY or item[0] == PENDING for item in items)
        rolled = roll_up(items, is_expired=False)
        assert rolled.terminal is not outstanding, items
        assert (rolled.status in {"open", "partial", "processing"}) is outstanding, items


def test_the_counters_add_up() -> None:
    for items in itertools.combinations_with_replacement([*ENDED, *ON_THEIR_WAY, (PENDING, False)], 3):
        counters = dict(roll_up(items, is_expired=False).counters)
        assert counters.pop("total") == 3
        assert sum(counters.values()) == 3, items


def test_a_batch_is_ready_when_every_item_is() -> None:
    assert roll_up([READY, READY], is_expired=False).ready
    assert not roll_up([READY, SYNCING], is_expired=False).ready
    assert not roll_up([READY, (FAILED, False)], is_expired=False).ready
