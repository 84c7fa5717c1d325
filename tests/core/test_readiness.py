"""Readiness: every status with every combination of memberships."""

from itertools import combinations_with_replacement, permutations, product

import pytest

from svc_daemon.core.readiness import ACTIVE, ARCHIVED, DELETING, is_ready, store_status, sync_status
from tests.rules.modules import modules

STATUSES = ("queued", "indexing", "active", "failed")
SYNCS = ("queued", "syncing", "active", "failed")
#: From the least advanced: what several memberships come to.
SLOWEST_FIRST = ("failed", "queued", "syncing", "active")
MEMBERSHIPS = [some for size in range(4) for some in combinations_with_replacement(SYNCS, size)]


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("memberships", MEMBERSHIPS)
def test_ready_is_active_and_all_memberships_active_and_at_least_one(status: str, memberships: tuple[str, ...]) -> None:
    expected = status == "active" and len(memberships) > 0 and set(memberships) == {"active"}
    assert is_ready(status, memberships) is expected


def test_the_sync_status_is_that_of_the_slowest_membership_in_any_order() -> None:
    for memberships in MEMBERSHIPS:
        expected = next((sync for sync in SLOWEST_FIRST if sync in memberships), "queued")
        assert {sync_status(order) for order in permutations(memberships)} == {expected}


STORE: dict[tuple[int, int, int], str] = {
    (0, 0, 0): "empty",
    (0, 0, 1): "degraded",
    (0, 1, 0): "indexing",
    (0, 1, 1): "degraded",
    (1, 0, 0): "active",
    (1, 0, 1): "degraded",
    (1, 1, 0): "indexing",
    (1, 1, 1): "degraded",
}


def test_a_store_has_a_status_for_each_combination_of_counts() -> None:
    assert {counts: store_status(*counts) for counts in product((0, 1), repeat=3)} == STORE


def test_a_store_that_is_made_anew_is_in_maintenance_whatever_it_holds() -> None:
    for counts in STORE:
        assert store_status(*counts, in_maintenance=True) == "maintenance"


def test_operations_take_the_statuses_of_buckets_by_their_names() -> None:
    operations = [module for module in modules("svc_daemon") if module.name.startswith("svc_daemon.operations.")]
    spelled = [
        (each.name, word) for each in operations for word in (ACTIVE, ARCHIVED, DELETING) if f'"{word}"' in each.source
    ]
    assert spelled == []
