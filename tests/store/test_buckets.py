"""Buckets: found by id or slug within their team, and counted right whatever happened to their members."""

import random
from dataclasses import replace
from sqlite3 import Connection
from typing import Any

import pytest

from svc_daemon.errors import NotFound
from svc_daemon.store import buckets
from svc_daemon.store.buckets import BucketRow, Census, find_bucket, get_bucket, list_buckets, take_census
from svc_daemon.store.memberships import delete_membership
from tests.store.rows import LATER, OURS, THEIRS, add_bucket, add_source, make_bucket, set_sync

SEED = 20_260_101
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


def test_a_bucket_is_found_as_it_was_written_by_id_and_by_slug_in_its_own_team_only(db: Connection) -> None:
    odd: dict[str, Any] = {"name": "Däs Büch 'x\"", "description": "%_", "metadata": {"a": [1, None, {"ü": True}]}}
    ours = add_bucket(db, chunking={"target": 500}, status="archived", revision=7, **odd)
    theirs = add_bucket(db, team_id=THEIRS)
    for team_id, name, found in (
        (OURS, ours.id, ours),
        (OURS, "docs", ours),
        (THEIRS, "docs", theirs),
        (OURS, theirs.id, None),
        (OURS, "DOCS", None),
    ):
        assert find_bucket(db, team_id, name) == found, (team_id, name)
    with pytest.raises(NotFound) as missing:
        get_bucket(db, OURS, theirs.id)
    assert missing.value.code == "bucket_not_found"


def test_a_slug_is_taken_once_a_team_and_the_first_stays(db: Connection) -> None:
    first = add_bucket(db)
    assert not buckets.create_bucket(db, make_bucket(id="bkt_other", name="other"))
    assert list_buckets(db, OURS, ("active",)) == [first]


def test_buckets_are_listed_by_status_oldest_first(db: Connection) -> None:
    for slug, status in (("c", "active"), ("a", "archived"), ("b", "active"), ("d", "deleting")):
        add_bucket(db, slug, status=status)
    add_bucket(db, "e", THEIRS)
    for statuses, slugs in (("active", "bc"), ("active deleting", "bcd"), ("archived", "a"), ("", "")):
        listed = [bucket.slug for bucket in list_buckets(db, OURS, tuple(statuses.split()))]
        assert listed == list(slugs), statuses


def test_an_update_writes_what_patch_may_change_and_nothing_else(db: Connection) -> None:
    bucket, other = add_bucket(db), add_bucket(db, "other")
    buckets.update_bucket(db, replace(bucket, team_id=THEIRS, name="stolen"))
    assert find_bucket(db, OURS, bucket.id) == bucket
    changed = replace(bucket, name="n", description="d", metadata={"k": 1}, status="archived", updated_at=LATER)
    buckets.update_bucket(db, replace(changed, slug="moved", revision=99, created_at=LATER))
    assert (find_bucket(db, OURS, bucket.id), find_bucket(db, OURS, "other")) == (changed, other)


def test_touching_moves_the_revision_of_each_bucket_of_a_source_or_of_the_team(db: Connection) -> None:
    added = [add_bucket(db, slug) for slug in "abc"]
    theirs = add_bucket(db, team_id=THEIRS)
    source = add_source(db, "1", *added[:2])
    before = [get_bucket(db, OURS, slug).revision for slug in "abc"]
    buckets.touch_buckets_of(db, source.id)
    buckets.touch_bucket(db, added[2].id)
    buckets.touch_bucket(db, added[2].id)
    after = [get_bucket(db, OURS, slug).revision for slug in "abc"]
    assert [new - old for old, new in zip(before, after, strict=True)] == [1, 1, 2]
    buckets.touch_buckets_of_team(db, OURS)
    assert [get_bucket(db, OURS, slug).revision for slug in "abc"] == [revision + 1 for revision in after]
    assert get_bucket(db, THEIRS, "docs").revision == theirs.revision


class History:
    """Things that happen to buckets, by chance, and what is true then, kept beside the database."""

    def __init__(self, db: Connection) -> None:
        self.db = db
        self.chance = random.Random(SEED)
        self.buckets = [add_bucket(db, slug) for slug in "abc"]
        #: Source to its type and status.
        self.sources: dict[str, tuple[str, str]] = {}
        #: (source, bucket) to its sync.
        self.syncs: dict[tuple[str, str], str] = {}

    def step(self, number: int) -> None:
        """One thing that can happen: a new source, a move of a status or a sync, a detach."""
        kind = self.chance.choice(["file", "page", "qa"])
        status, sync = self.chance.choice(list(CELLS))
        deed = self.chance.choice(["add", "add", "status", "sync", "detach"]) if self.syncs else "add"
        if deed == "add":
            self.add(f"{number:04}", kind, status, sync, self.chance.sample(self.buckets, self.chance.randint(0, 3)))
            return
        source_id, bucket_id = self.chance.choice(list(self.syncs))
        if deed == "status":
            self.db.execute("UPDATE sources SET status = ? WHERE id = ?", (status, source_id))
            self.sources[source_id] = (self.sources[source_id][0], status)
        elif deed == "sync":
            set_sync(self.db, sync, source_id, bucket_id)
            self.syncs[source_id, bucket_id] = sync
        else:
            delete_membership(self.db, source_id, bucket_id)
            del self.syncs[source_id, bucket_id]

    def add(self, name: str, kind: str, status: str, sync: str, places: list[BucketRow]) -> None:
        source = add_source(self.db, name, *places, sync=sync, status=status, type=kind)
        self.sources[source.id] = (kind, status)
        self.syncs.update({(source.id, bucket.id): sync for bucket in places})

    def count(self, bucket: BucketRow) -> Census:
        members = {source_id: sync for (source_id, bucket_id), sync in self.syncs.items() if bucket_id == bucket.id}
        facts = {source_id: CELLS[self.sources[source_id][1], sync] for source_id, sync in members.items()}
        kinds = [self.sources[source_id][0] for source_id in members]
        indexed_ids = sorted(source_id for source_id, (indexed, _, _) in facts.items() if indexed)
        return Census(
            active_ids=tuple(indexed_ids),
            types={kind: kinds.count(kind) for kind in set(kinds)},
            retrievable=sum(self.sources[source_id][0] != "qa" for source_id in indexed_ids),
            indexed=len(indexed_ids),
            pending=sum(pending for _, pending, _ in facts.values()),
            failed=sum(self.sources[source_id][1] == "failed" for source_id in members),
            failed_syncs=sum(failed for _, _, failed in facts.values()),
        )


def test_the_census_equals_a_count_by_hand_in_each_state_and_through_a_long_history(db: Connection) -> None:
    history = History(db)
    for kind in ("file", "page", "qa"):
        for status, sync in CELLS:
            bucket = add_bucket(db, f"{kind}-{status}-{sync}")
            history.add(bucket.slug, kind, status, sync, [bucket])
            assert take_census(db, bucket.id) == history.count(bucket), bucket.slug
    for number in range(300):
        if number % 20 == 0:
            for bucket in history.buckets:
                counted = history.count(bucket)
                assert take_census(db, bucket.id) == counted, number
                assert take_census(db, bucket.id, members=False) == replace(counted, active_ids=()), number
        history.step(number)
