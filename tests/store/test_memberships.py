"""Memberships: each sync is claimed once, and a claim that was lost changes nothing."""

from collections.abc import Callable
from math import inf
from sqlite3 import Connection

import pytest

from svc_daemon.store.buckets import get_bucket
from svc_daemon.store.memberships import (
    SyncClaim,
    activate_membership,
    claim_syncs,
    create_membership,
    delete_membership,
    fail_membership,
    has_expired_syncs,
    next_sync_due,
    release_expired_syncs,
    schedule_syncs,
    suspend_syncs,
)
from tests.store.rows import LATER, NOW, OURS, add_bucket, add_source, plan, table


def _activate(connection: Connection, claim: SyncClaim) -> None:
    activate_membership(connection, claim)


def _fail(connection: Connection, claim: SyncClaim) -> None:
    fail_membership(connection, claim, LATER)


def _release(connection: Connection, _: SyncClaim) -> None:
    assert release_expired_syncs(connection, NOW, inf) == 1


def _release_and_claim(connection: Connection, claim: SyncClaim) -> None:
    _release(connection, claim)
    assert len(claim_syncs(connection, NOW, 20.0, 10)) == 1


def _schedule_and_claim(connection: Connection, claim: SyncClaim) -> None:
    schedule_syncs(connection, claim.source_id, NOW)
    assert len(claim_syncs(connection, NOW, 20.0, 10)) == 1


def _suspend(connection: Connection, claim: SyncClaim) -> None:
    suspend_syncs(connection, claim.source_id)


def _detach(connection: Connection, claim: SyncClaim) -> None:
    assert delete_membership(connection, claim.source_id, claim.bucket_id)


WRITES: dict[str, Callable[[Connection, SyncClaim], None]] = {"activate": _activate, "fail": _fail}
LOSSES: dict[str, Callable[[Connection, SyncClaim], None]] = {
    "active": _activate,
    "refused": _fail,
    "released": _release,
    "released and claimed": _release_and_claim,
    "indexed again": _suspend,
    "scheduled": lambda connection, claim: schedule_syncs(connection, claim.source_id, NOW),
    "scheduled and claimed": _schedule_and_claim,
    "detached": _detach,
}


def _claimed(connection: Connection) -> SyncClaim:
    source = add_source(connection, "1", add_bucket(connection), status="active")
    schedule_syncs(connection, source.id, NOW)
    (claim,) = claim_syncs(connection, NOW, 10.0, 10)
    return claim


def _states(connection: Connection) -> dict[str, tuple[str, int, str | None]]:
    rows = table(connection, "memberships")
    return {row["source_id"]: (row["sync_status"], row["attempt"], row["due_at"]) for row in rows}


def test_a_membership_waits_until_its_source_is_indexed(connection: Connection) -> None:
    source = add_source(connection, "1", add_bucket(connection))
    assert (claim_syncs(connection, LATER, 10.0, 10), next_sync_due(connection)) == ([], None)
    schedule_syncs(connection, source.id, LATER)
    assert (claim_syncs(connection, NOW, 10.0, 10), next_sync_due(connection)) == ([], LATER)
    assert len(claim_syncs(connection, LATER, 10.0, 10)) == 1


def test_a_claim_is_taken_once(connection: Connection) -> None:
    claim = _claimed(connection)
    assert claim.attempt == 1
    assert claim_syncs(connection, LATER, 20.0, 10) == []
    assert _states(connection) == {"src_1": ("syncing", 1, None)}


def test_claims_are_those_due_the_longest_up_to_the_limit(connection: Connection) -> None:
    bucket = add_bucket(connection)
    for name, due_at in (("1", "3"), ("2", "1"), ("3", "2"), ("4", "9")):
        schedule_syncs(connection, add_source(connection, name, bucket).id, due_at)
    assert {claim.source_id for claim in claim_syncs(connection, "5", 10.0, 2)} == {"src_2", "src_3"}
    assert {claim.source_id for claim in claim_syncs(connection, "5", 10.0, 2)} == {"src_1"}
    assert claim_syncs(connection, "5", 10.0, 2) == []


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("write", WRITES)
def test_a_stale_claim_changes_nothing(connection: Connection, loss: str, write: str) -> None:
    stale = _claimed(connection)
    LOSSES[loss](connection, stale)
    before = table(connection, "memberships"), table(connection, "buckets")
    WRITES[write](connection, stale)
    assert (table(connection, "memberships"), table(connection, "buckets")) == before


def test_activation_is_told_to_who_did_it(connection: Connection) -> None:
    claim = _claimed(connection)
    assert activate_membership(connection, claim)
    assert not activate_membership(connection, claim)
    assert _states(connection) == {"src_1": ("active", 1, None)}


def test_a_refused_sync_is_tried_again_when_due(connection: Connection) -> None:
    _fail(connection, _claimed(connection))
    assert _states(connection) == {"src_1": ("failed", 1, LATER)}
    assert claim_syncs(connection, NOW, 10.0, 10) == []
    (again,) = claim_syncs(connection, LATER, 10.0, 10)
    assert again.attempt == 2


def test_a_lease_runs_out_at_its_time_and_not_before(connection: Connection) -> None:
    _claimed(connection)
    assert not has_expired_syncs(connection, 9.9)
    assert release_expired_syncs(connection, LATER, 9.9) == 0
    assert has_expired_syncs(connection, 10.0)
    assert release_expired_syncs(connection, LATER, 10.0) == 1
    assert _states(connection) == {"src_1": ("queued", 1, LATER)}
    assert not has_expired_syncs(connection, inf)


def test_an_active_membership_holds_no_lease(connection: Connection) -> None:
    _activate(connection, _claimed(connection))
    assert release_expired_syncs(connection, LATER, inf) == 0
    assert _states(connection) == {"src_1": ("active", 1, None)}


def test_being_a_member_twice_changes_nothing(connection: Connection) -> None:
    claim = _claimed(connection)
    before = table(connection, "memberships"), table(connection, "buckets")
    assert not create_membership(connection, claim, LATER, LATER)
    assert (table(connection, "memberships"), table(connection, "buckets")) == before


def test_every_change_of_what_a_bucket_lists_moves_its_revision(connection: Connection) -> None:
    def revision() -> int:
        return get_bucket(connection, OURS, "docs").revision

    claim = _claimed(connection)
    start = revision()
    _activate(connection, claim)
    assert revision() == start + 1
    assert delete_membership(connection, claim.source_id, claim.bucket_id)
    assert revision() == start + 2
    assert not delete_membership(connection, claim.source_id, claim.bucket_id)
    assert revision() == start + 2
    assert create_membership(connection, claim, NOW)
    assert revision() == start + 3


def test_other_sources_memberships_are_left_alone(connection: Connection) -> None:
    claim = _claimed(connection)
    other = add_source(connection, "2", get_bucket(connection, OURS, "docs"), sync="active", status="active")
    for write in (_activate, _fail, _suspend):
        write(connection, claim)
        assert _states(connection)[other.id] == ("active", 0, None)


def test_syncs_are_claimed_and_released_through_their_indexes(connection: Connection) -> None:
    claiming = plan(connection, lambda: claim_syncs(connection, NOW, 10.0, 64))
    assert "memberships_due (due_at>? AND due_at<?)" in claiming
    assert "SCAN" not in claiming.replace("SCAN CONSTANT ROW", "")
    assert "memberships_due" in plan(connection, lambda: next_sync_due(connection))
    assert "memberships_leased" in plan(connection, lambda: has_expired_syncs(connection, 1.0))
    assert "memberships_leased" in plan(connection, lambda: release_expired_syncs(connection, NOW, 1.0))
