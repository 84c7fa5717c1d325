"""Buckets: found by id or slug within their team, and counted right whatever happened to their members."""

import random
from dataclasses import replace
from sqlite3 import Connection

import pytest

from svc_daemon.errors import NotFound
from svc_daemon.store.buckets import (
    BucketRow,
    Census,
    create_bucket,
    find_bucket,
    get_bucket,
    list_buckets,
    take_census,
    touch_bucket,
    touch_buckets_of,
    update_bucket,
)
from svc_daemon.store.memberships import delete_membership
from tests.store.rows import LATER, OURS, THEIRS, add_bucket, add_source, make_bucket, plan

SEED = 20_260_101


def test_a_bucket_reads_back_as_it_was_written(connection: Connection) -> None:
    bucket = add_bucket(
        connection,
        name="Däs Büch 'x\"",
        description="%_",
        metadata={"a": [1, None, {"ü": True}]},
        chunking={"target": 500},
        status="archived",
        revision=7,
    )
    assert find_bucket(connection, OURS, "docs") == bucket


def test_a_bucket_is_found_by_id_and_by_slug_in_its_own_team_only(connection: Connection) -> None:
    ours, theirs = add_bucket(connection), add_bucket(connection, team_id=THEIRS)
    for name in (ours.id, "docs"):
        assert find_bucket(connection, OURS, name) == ours
    assert find_bucket(connection, THEIRS, "docs") == theirs
    assert find_bucket(connection, OURS, theirs.id) is None
    assert find_bucket(connection, OURS, "DOCS") is None
    with pytest.raises(NotFound) as missing:
        get_bucket(connection, OURS, theirs.id)
    assert missing.value.code == "bucket_not_found"


def test_a_slug_is_taken_once_a_team_and_the_first_stays(connection: Connection) -> None:
    first = add_bucket(connection)
    assert not create_bucket(connection, make_bucket(id="bkt_other", name="other"))
    assert list_buckets(connection, OURS, ("active",)) == [first]


def test_buckets_are_listed_by_status_oldest_first(connection: Connection) -> None:
    for slug, status in (("c", "active"), ("a", "archived"), ("b", "active"), ("d", "deleting")):
        add_bucket(connection, slug, status=status)
    add_bucket(connection, "e", THEIRS)

    def slugs(*statuses: str) -> list[str]:
        return [bucket.slug for bucket in list_buckets(connection, OURS, statuses)]

    assert slugs("active") == ["b", "c"]
    assert slugs("active", "deleting") == ["b", "c", "d"]
    assert slugs("archived") == ["a"]
    assert slugs() == []


def test_an_update_writes_what_patch_may_change_and_nothing_else(connection: Connection) -> None:
    bucket, other = add_bucket(connection), add_bucket(connection, "other")
    changed = replace(bucket, name="n", description="d", metadata={"k": 1}, status="archived", updated_at=LATER)
    update_bucket(connection, replace(changed, slug="moved", revision=99, created_at=LATER))
    assert find_bucket(connection, OURS, bucket.id) == changed
    assert find_bucket(connection, OURS, "other") == other


def test_an_update_under_another_team_changes_nothing(connection: Connection) -> None:
    bucket = add_bucket(connection)
    update_bucket(connection, replace(bucket, team_id=THEIRS, name="stolen"))
    assert find_bucket(connection, OURS, bucket.id) == bucket


def test_touching_moves_the_revision_of_each_bucket_of_a_source(connection: Connection) -> None:
    buckets = [add_bucket(connection, slug) for slug in ("a", "b", "c")]
    source = add_source(connection, "1", *buckets[:2])
    before = [get_bucket(connection, OURS, slug).revision for slug in "abc"]
    touch_buckets_of(connection, source.id)
    touch_bucket(connection, buckets[2].id)
    touch_bucket(connection, buckets[2].id)
    after = [get_bucket(connection, OURS, slug).revision for slug in "abc"]
    assert [new - old for old, new in zip(before, after, strict=True)] == [1, 1, 2]


def test_an_empty_bucket_counts_nothing(connection: Connection) -> None:
    census = take_census(connection, add_bucket(connection).id)
    assert census == Census(active_ids=(), types={}, retrievable=0, indexed=0, pending=0, failed=0, failed_syncs=0)
    assert census.total == 0


#: Status and sync of one file: whether it is indexed, on its way, and whether its sync is failing.
CELLS = {
    (status, sync): (
        status == "active" and sync == "active",
        status != "failed" and (status, sync) != ("active", "active"),
        status != "failed" and sync == "failed",
    )
    for status in ("queued", "indexing", "active", "failed")
    for sync in ("queued", "syncing", "active", "failed")
}


@pytest.mark.parametrize("kind", ["file", "page", "qa"])
@pytest.mark.parametrize(("status", "sync"), CELLS)
def test_each_state_of_one_member_is_counted_once(connection: Connection, status: str, sync: str, kind: str) -> None:
    bucket = add_bucket(connection)
    source = add_source(connection, "1", bucket, sync=sync, status=status, type=kind)
    indexed, pending, failed = CELLS[status, sync]
    assert take_census(connection, bucket.id) == Census(
        active_ids=(source.id,) if indexed else (),
        types={kind: 1},
        retrievable=int(indexed and kind != "qa"),
        indexed=int(indexed),
        pending=int(pending),
        failed=int(status == "failed"),
        failed_syncs=int(failed),
    )


def test_the_census_equals_a_count_by_hand_after_a_long_history(connection: Connection) -> None:
    chance = random.Random(SEED)
    buckets = [add_bucket(connection, slug) for slug in ("a", "b", "c")]
    #: What is true, kept beside the database: source to its type and status, and (source, bucket) to its sync.
    sources: dict[str, tuple[str, str]] = {}
    syncs: dict[tuple[str, str], str] = {}
    for number in range(300):
        _step(connection, chance, buckets, sources, syncs, number)
        if number % 20 == 0:
            for bucket in buckets:
                assert take_census(connection, bucket.id) == _count(bucket, sources, syncs)


def _step(
    connection: Connection,
    chance: random.Random,
    buckets: list[BucketRow],
    sources: dict[str, tuple[str, str]],
    syncs: dict[tuple[str, str], str],
    number: int,
) -> None:
    """One thing that can happen: a new source, a move of a status or a sync, a detach."""
    kind = chance.choice(["file", "page", "qa"])
    status, sync = chance.choice(list(CELLS))
    deed = chance.choice(["add", "add", "status", "sync", "detach"]) if syncs else "add"
    if deed == "add":
        places = chance.sample(buckets, chance.randint(0, 3))
        source = add_source(connection, f"{number:04}", *places, sync=sync, status=status, type=kind)
        sources[source.id] = (kind, status)
        syncs.update({(source.id, bucket.id): sync for bucket in places})
        return
    source_id, bucket_id = chance.choice(list(syncs))
    if deed == "status":
        connection.execute("UPDATE sources SET status = ? WHERE id = ?", (status, source_id))
        sources[source_id] = (sources[source_id][0], status)
    elif deed == "sync":
        connection.execute(
            "UPDATE memberships SET sync_status = ? WHERE source_id = ? AND bucket_id = ?", (sync, source_id, bucket_id)
        )
        syncs[source_id, bucket_id] = sync
    else:
        delete_membership(connection, source_id, bucket_id)
        del syncs[source_id, bucket_id]


def _count(bucket: BucketRow, sources: dict[str, tuple[str, str]], syncs: dict[tuple[str, str], str]) -> Census:
    members = {source_id: sync for (source_id, bucket_id), sync in syncs.items() if bucket_id == bucket.id}
    facts = {source_id: CELLS[sources[source_id][1], sync] for source_id, sync in members.items()}
    kinds = [sources[source_id][0] for source_id in members]
    return Census(
        active_ids=tuple(sorted(source_id for source_id, (indexed, _, _) in facts.items() if indexed)),
        types={kind: kinds.count(kind) for kind in set(kinds)},
        retrievable=sum(indexed and sources[source_id][0] != "qa" for source_id, (indexed, _, _) in facts.items()),
        indexed=sum(indexed for indexed, _, _ in facts.values()),
        pending=sum(pending for _, pending, _ in facts.values()),
        failed=sum(sources[source_id][1] == "failed" for source_id in members),
        failed_syncs=sum(failed for _, _, failed in facts.values()),
    )


def test_buckets_and_their_members_are_found_through_indexes(connection: Connection) -> None:
    finding = plan(connection, lambda: find_bucket(connection, OURS, "docs"))
    counting = plan(connection, lambda: take_census(connection, "bkt_1"))
    assert "SEARCH" in finding
    assert "SCAN" not in finding
    assert "memberships_of_bucket" in counting
    assert "SCAN" not in counting
