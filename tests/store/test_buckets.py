"""Tests buckets: finding them by id or slug, updates, and the counts of their members."""

import random
from collections import Counter
from dataclasses import replace
from typing import Any

from svc_daemon.databases.contract import Connection
from svc_daemon.store.rows import buckets
from svc_daemon.store.rows.buckets import BucketRow, Census, find_bucket, take_census
from svc_daemon.store.rows.sources.memberships import delete_membership
from tests.store.rows import LATER, OURS, THEIRS, add_bucket, add_source, set_sync

SEED = 20_260_101
#: By status and sync status of a source: whether it counts as indexed, as pending, and as failing.
CELLS = {
    (status, sync): (
        status == "active" and sync == "active",
        status != "failed" and (status, sync) != ("active", "active"),
        status != "failed" and sync == "failed",
    )
    for status in ("queued", "indexing", "active", "failed")
    for sync in ("queued", "syncing", "active", "failed")
}


def test_an_update_writes_only_the_fields_that_patch_may_change(db: Connection) -> None:
    bucket, other = add_bucket(db), add_bucket(db, "other")
    buckets.update_bucket(db, replace(bucket, team_id=THEIRS, name="stolen"))
    assert find_bucket(db, OURS, bucket.id) == bucket
    changed = replace(bucket, name="n", description="d", metadata={"k": 1}, status="archived", updated_at=LATER)
    buckets.update_bucket(db, replace(changed, slug="moved", created_at=LATER))
    assert (find_bucket(db, OURS, bucket.id), find_bucket(db, OURS, "other")) == (changed, other)


class History:
    """Makes random changes to buckets, and tracks the expected counts outside of the database."""

    def __init__(self, db: Connection) -> None:
        self.db = db
        self.chance = random.Random(SEED)
        self.buckets = [add_bucket(db, slug) for slug in "abc"]
        #: Type and status of each source.
        self.sources: dict[str, tuple[str, str]] = {}
        #: Sync status by (source, bucket).
        self.syncs: dict[tuple[str, str], str] = {}
        #: How often sources have joined or left each bucket.
        self.changes: Counter[str] = Counter()

    def step(self, number: int) -> None:
        """Make a random change: a new source, another status or sync status, or a removal from a bucket."""
        kind = self.chance.choice(["file", "page", "qa"])
        status, sync = self.chance.choice(list(CELLS))
        deed = self.chance.choice(["add", "add", "status", "sync", "detach"]) if self.syncs else "add"
        if deed == "add":
            self.add(f"{number:04}", kind, status, sync, self.chance.sample(self.buckets, self.chance.randint(0, 3)))
            return
        source_id, bucket_id = self.chance.choice(list(self.syncs))
        if deed == "status":
            self.db.execute("UPDATE sources SET status = :status WHERE id = :id", {"status": status, "id": source_id})
            self.sources[source_id] = (self.sources[source_id][0], status)
        elif deed == "sync":
            set_sync(self.db, sync, source_id, bucket_id)
            self.syncs[source_id, bucket_id] = sync
        else:
            delete_membership(self.db, source_id, bucket_id)
            del self.syncs[source_id, bucket_id]
            self.changes[bucket_id] += 1

    def add(self, name: str, kind: str, status: str, sync: str, places: list[BucketRow]) -> None:
        source = add_source(self.db, name, *places, sync=sync, status=status, type=kind)
        self.sources[source.id] = (kind, status)
        self.syncs.update({(source.id, bucket.id): sync for bucket in places})
        self.changes.update(bucket.id for bucket in places)

    def count(self, bucket: BucketRow) -> Census:
        members = {source_id: sync for (source_id, bucket_id), sync in self.syncs.items() if bucket_id == bucket.id}
        facts = {source_id: CELLS[self.sources[source_id][1], sync] for source_id, sync in members.items()}
        kinds = [self.sources[source_id][0] for source_id in members]
        indexed_ids = sorted(source_id for source_id, (indexed, _, _) in facts.items() if indexed)
        totals: dict[str, Any] = {
            "pending": sum(pending for _, pending, _ in facts.values()),
            "indexed": len(indexed_ids),
            "size_bytes": 3 * len(members),
        }
        totals["retrievable"] = sum(self.sources[source_id][0] != "qa" for source_id in indexed_ids)
        totals["failed"] = sum(self.sources[source_id][1] == "failed" for source_id in members)
        # The rows that these tests make have no version of a reader.
        totals["older_reader"] = sum(self.sources[source_id][1] == "active" for source_id in members)
        totals["failed_syncs"] = sum(failed for _, _, failed in facts.values())
        revision = 1 + self.changes[bucket.id]
        return Census(revision=revision, active_ids=tuple(indexed_ids), types=Counter(kinds), **totals)


def test_the_census_equals_counted_rows_in_each_state_and_after_random_changes(db: Connection) -> None:
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
