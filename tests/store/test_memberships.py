"""Tests memberships: each sync is claimed once, and a claim that was lost changes nothing."""

from collections.abc import Callable
from math import inf

import pytest

from svc_daemon.databases.contract import Connection
from svc_daemon.store.rows.buckets import get_bucket
from svc_daemon.store.rows.sources import memberships
from svc_daemon.store.rows.sources.memberships import (
    SyncClaim,
    activate_membership,
    claim_syncs,
    delete_membership,
    schedule_syncs,
)
from tests.store.rows import LATER, NOW, OURS, add_bucket, add_source, table, undone

Change = Callable[[Connection, SyncClaim], object]
WRITES: dict[str, Change] = {
    "activate": activate_membership,
    "fail": lambda db, claim: memberships.reschedule_sync(db, claim, LATER, has_failed=True),
    "suspend": lambda db, claim: memberships.suspend_syncs(db, claim.source_id),
}


def _release(db: Connection, _: SyncClaim) -> None:
    assert memberships.release_expired_syncs(db, NOW, inf) == 1


def _schedule(db: Connection, claim: SyncClaim) -> None:
    schedule_syncs(db, claim.source_id, NOW)


def _detach(db: Connection, claim: SyncClaim) -> None:
    assert delete_membership(db, claim.source_id, claim.bucket_id)


def _claim_again(db: Connection, _: SyncClaim) -> None:
    assert len(claim_syncs(db, NOW, 20.0, 10)) == 1


LOSSES: dict[str, list[Change]] = {
    "active": [activate_membership],
    "refused": [WRITES["fail"]],
    "released": [_release],
    "released and claimed": [_release, _claim_again],
    "indexed again": [WRITES["suspend"]],
    "scheduled": [_schedule],
    "scheduled and claimed": [_schedule, _claim_again],
    "detached": [_detach],
}


def _claimed(db: Connection) -> SyncClaim:
    source = add_source(db, "1", add_bucket(db), status="active")
    schedule_syncs(db, source.id, NOW)
    (claim,) = claim_syncs(db, NOW, 10.0, 10)
    return claim


def _states(db: Connection) -> dict[str, tuple[str, int, str | None]]:
    return {row["source_id"]: (row["sync_status"], row["attempt"], row["due_at"]) for row in table(db, "memberships")}


def _listed(db: Connection) -> tuple[list[dict[str, object]], ...]:
    return table(db, "memberships"), table(db, "buckets")


def test_a_membership_waits_until_its_source_is_indexed(db: Connection) -> None:
    source = add_source(db, "1", add_bucket(db))
    assert (claim_syncs(db, LATER, 10.0, 10), memberships.next_sync_due(db)) == ([], None)
    schedule_syncs(db, source.id, LATER)
    assert (claim_syncs(db, NOW, 10.0, 10), memberships.next_sync_due(db)) == ([], LATER)
    assert len(claim_syncs(db, LATER, 10.0, 10)) == 1


def test_the_longest_due_syncs_are_claimed_first_and_only_once(db: Connection) -> None:
    bucket = add_bucket(db)
    for name, due_at in (("1", "3"), ("2", "1"), ("3", "2"), ("4", "9")):
        schedule_syncs(db, add_source(db, name, bucket).id, due_at)
    claims = [{(claim.source_id, claim.attempt) for claim in claim_syncs(db, "5", 10.0, 2)} for _ in range(3)]
    assert claims == [{("src_2", 1), ("src_3", 1)}, {("src_1", 1)}, set()]
    assert _states(db)["src_1"] == ("syncing", 1, None)


@pytest.mark.parametrize("write", ["activate", "fail"])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_stale_claim_changes_nothing(db: Connection, loss: str, write: str) -> None:
    stale = _claimed(db)
    for step in LOSSES[loss]:
        step(db, stale)
    before = _listed(db)
    WRITES[write](db, stale)
    assert _listed(db) == before
    assert not activate_membership(db, stale)


def test_a_lease_expires_exactly_at_its_time(db: Connection) -> None:
    claim = _claimed(db)
    for latest_s, is_expired in ((9.9, True), (10.0, False)):
        # A later end than any lease can have is from before the clock was set back.
        with undone(db):
            assert memberships.has_expired_syncs(db, 0, latest_s) == is_expired
            assert memberships.release_expired_syncs(db, LATER, 0, latest_s) == is_expired
    assert (memberships.has_expired_syncs(db, 9.9), memberships.release_expired_syncs(db, LATER, 9.9)) == (False, 0)
    with undone(db):
        assert memberships.has_expired_syncs(db, 10.0) and memberships.release_expired_syncs(db, LATER, 10.0) == 1
        assert _states(db) == {"src_1": ("queued", 1, LATER)}
        assert not memberships.has_expired_syncs(db, inf)
    assert activate_membership(db, claim) and memberships.release_expired_syncs(db, LATER, inf) == 0
    assert _states(db) == {"src_1": ("active", 1, None)}


@pytest.mark.parametrize("write", WRITES)
def test_changes_leave_memberships_of_other_sources_unchanged(db: Connection, write: str) -> None:
    claim = _claimed(db)
    other = add_source(db, "2", get_bucket(db, OURS, "docs"), sync="active", status="active")
    WRITES[write](db, claim)
    assert _states(db)[other.id] == ("active", 0, None)
