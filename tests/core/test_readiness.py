"""Tests readiness with every status and every combination of memberships."""

from itertools import combinations_with_replacement, permutations, product

import pytest

from svc_daemon.core.readiness import ACTIVE, ARCHIVED, DELETING, is_ready, store_status, sync_status
from tests.rules.modules import modules

STATUSES = ("queued", "indexing", "active", "failed")
SYNCS = ("queued", "syncing", "active", "failed")
#: The sync status is the first of these that a membership has.
SLOWEST_FIRST = ("failed", "queued", "syncing", "active")
MEMBERSHIPS = [some for size in range(4) for some in combinations_with_replacement(SYNCS, size)]


@pytest.mark.rule("source.ready")
def test_a_source_is_ready_if_it_and_all_its_memberships_are_active() -> None:
    for status, memberships in product(STATUSES, MEMBERSHIPS):
        expected = status == "active" and len(memberships) > 0 and set(memberships) == {"active"}
        assert is_ready(status, memberships) is expected, (status, memberships)


@pytest.mark.parametrize("memberships", MEMBERSHIPS)
def test_the_sync_status_is_that_of_the_least_advanced_membership(memberships: tuple[str, ...]) -> None:
    expected = next((sync for sync in SLOWEST_FIRST if sync in memberships), "queued")
    assert {sync_status(order) for order in permutations(memberships)} == {expected}


@pytest.mark.parametrize(("ready", "waiting", "failed"), [*product((0, 1), repeat=3)])
def test_the_status_of_a_buckets_index_follows_from_its_counts(ready: int, waiting: int, failed: int) -> None:
    status = "degraded" if failed else "indexing" if waiting else "active" if ready else "empty"
    assert store_status(ready, waiting, failed) == status
    # A rebuild has priority over all counts.
    assert store_status(ready, waiting, failed, in_maintenance=True) == "maintenance"


def test_operations_use_the_constants_for_statuses_of_buckets() -> None:
    operations = [module for module in modules("svc_daemon") if module.name.startswith("svc_daemon.operations.")]
    spelled = [
        (each.name, word) for each in operations for word in (ACTIVE, ARCHIVED, DELETING) if f'"{word}"' in each.source
    ]
    assert spelled == []
