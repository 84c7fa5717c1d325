"""Bucket sync: updates the search index after a source has joined or left a bucket, or has a new title.

Only one worker does this, because two workers could overwrite each other's changes.
"""

import asyncio
import logging
from dataclasses import dataclass, replace
from functools import partial

from svc_daemon.core import readiness, task_retries
from svc_daemon.databases.contract import Connection, Exclusive
from svc_daemon.operations.remove.source_deletions import remove_replaced
from svc_daemon.operations.shared.leases import latest_lease_s, lease_end_s
from svc_daemon.operations.shared.outcomes import record_outcomes
from svc_daemon.operations.sources import requeue
from svc_daemon.process.contexts import Context
from svc_daemon.provider.errors import DocumentMissing, ProviderError
from svc_daemon.store.files.contract import gather
from svc_daemon.store.rows.buckets import touch_buckets
from svc_daemon.store.rows.sources import memberships
from svc_daemon.store.rows.sources.detachments import (
    Detachment,
    create_detachment,
    delete_detachment,
    end_retitles,
    has_expired_retitles,
    list_detachments,
)
from svc_daemon.store.rows.sources.memberships import SyncClaim
from svc_daemon.store.rows.sources.sources import SourceRow, find_source, find_sources, update_state

log = logging.getLogger(__name__)

#: A source's title, tags and buckets, as written to the index.
_Words = tuple[str, tuple[str, ...], list[str]]

#: Maximum number of memberships that the worker claims at a time.
CLAIM_LIMIT = 64
#: How many changes of the index are under way at a time. An index takes those that wait at the same time together, but
#: each waits in a thread, which others need too.
UPDATES_AT_ONCE = 4
#: Seconds until a sync is retried while the source is being split into new chunks.
RECHUNK_PAUSE_S = 1.0


@dataclass(frozen=True, slots=True)
class Sync:
    """A sync that the worker has claimed, and the source to sync."""

    claim: SyncClaim
    source: SourceRow


async def claim_syncs(context: Context) -> list[Sync]:
    """Claim the memberships that are due for a sync, at most `CLAIM_LIMIT`."""
    now = context.clock.timestamp()
    lease_until_s = lease_end_s(context)

    def work(connection: Connection) -> list[Sync]:
        claims = memberships.claim_syncs(connection, now, lease_until_s, CLAIM_LIMIT)
        touch_buckets(connection, (claim.bucket_id for claim in claims))
        found = [(claim, find_source(connection, claim.team_id, claim.source_id)) for claim in claims]
        return [Sync(claim, source) for claim, source in found if source is not None]

    due_at = context.read(memberships.next_sync_due)
    if due_at is None or due_at > now:
        return []
    return await context.write(Exclusive(work))


async def complete_syncs(context: Context, syncs: list[Sync]) -> None:
    """Mark the memberships as active. The index must already have the sources in these buckets."""

    def work(connection: Connection) -> None:
        activated: list[SyncClaim] = []
        for sync in _outdated(connection, syncs):
            create_detachment(connection, sync.claim.team_id, sync.claim.source_id)
        for sync in syncs:
            if not memberships.activate_membership(connection, sync.claim):
                continue
            take_place(connection, context, sync.claim.team_id, sync.claim.source_id, sync.claim.bucket_id)
            activated.append(sync.claim)
        for team_id in sorted({claim.team_id for claim in activated}):
            # A source is ready as soon as it is active in all of its buckets.
            ours = dict.fromkeys(claim.source_id for claim in activated if claim.team_id == team_id)
            found = find_sources(connection, team_id, list(ours))
            record_outcomes(connection, context, [found[each] for each in ours if each in found and found[each].ready])
        touch_buckets(connection, {claim.bucket_id for claim in activated})

    await context.write(Exclusive(work))
    context.wakes.sweeping.set()
    context.wakes.delivering.set()


def _outdated(connection: Connection, syncs: list[Sync]) -> list[Sync]:
    """Return the syncs whose source has joined or left a bucket since the claim.

    Such a sync may have written outdated buckets to the index. The caller schedules a correction.
    """
    by_team: dict[str, list[str]] = {}
    for sync in syncs:
        by_team.setdefault(sync.claim.team_id, []).append(sync.claim.source_id)
    now: dict[str, SourceRow] = {}
    for team_id, source_ids in by_team.items():
        now |= find_sources(connection, team_id, source_ids)
    known = [sync for sync in syncs if sync.source.id in now]
    return [sync for sync in known if now[sync.source.id].searched_places != sync.source.searched_places]


async def fail_sync(context: Context, sync: Sync, jitter: float) -> None:
    """Schedule a retry after an error of the index. The pauses increase, and the number of retries is not limited."""
    due_at = context.clock.timestamp(task_retries.pause_s(sync.claim.attempt, jitter))

    def work(connection: Connection) -> None:
        memberships.reschedule_sync(connection, sync.claim, due_at, has_failed=True)
        touch_buckets(connection, [sync.claim.bucket_id])

    await context.write(Exclusive(work))


async def postpone_syncs(context: Context, syncs: list[Sync]) -> None:
    """Schedule the syncs again because the daemon is short of a resource. This doesn't count as a failed attempt."""
    due_at = context.clock.timestamp(task_retries.FIRST_PAUSE_S)

    def work(connection: Connection) -> None:
        for sync in syncs:
            memberships.reschedule_sync(connection, sync.claim, due_at, has_failed=False)

    await context.write(Exclusive(work))


async def reindex_missing(context: Context, sync: Sync) -> None:
    """Queue the source for indexing, because its document is missing from the index."""

    def work(connection: Connection) -> None:
        source = find_source(connection, sync.claim.team_id, sync.claim.source_id)
        if source is None or source.in_maintenance:
            # Do nothing if the source was deleted, or if a rebuild of the index will index the source.
            return
        if source.rechunk:
            # Try again later, when the index has the source's new chunks.
            due_at = context.clock.timestamp(RECHUNK_PAUSE_S)
            memberships.reschedule_sync(connection, sync.claim, due_at, has_failed=False)
        elif source.generation == sync.source.generation:
            requeue(connection, context, source)

    await context.write(work)
    context.wakes.indexing.set()


async def release_expired_syncs(context: Context, now_s: float) -> int:
    """Requeue memberships whose claim has expired by `now_s`; infinity requeues all claimed ones. Returns how many."""
    now, latest_s = context.clock.timestamp(), latest_lease_s(context, now_s)

    def work(connection: Connection) -> int:
        end_retitles(connection, now_s, latest_s)
        return memberships.release_expired_syncs(connection, now, now_s, latest_s)

    def is_needed(connection: Connection) -> bool:
        is_expired = memberships.has_expired_syncs(connection, now_s, latest_s)
        return is_expired or has_expired_retitles(connection, now_s, latest_s)

    if not context.read(is_needed):
        return 0
    released = await context.write(work)
    if released:
        context.wakes.syncing.set()
    return released


async def clean_detachments(context: Context) -> int:
    """Update the index for sources that left a bucket or have a new title or tags. Returns how many were updated.

    Call this repeatedly until it returns 0. A source whose update fails is skipped, so that one team's damaged index
    does not block other teams.
    """
    after, now_s = "", context.clock.lease_s()
    # Skip sources being renamed: the database still has their old title.
    while noted := context.read(partial(list_detachments, now_s=now_s, after=after, limit=CLAIM_LIMIT)):
        after = noted[-1].source_id
        written = await gather((_update_index(context, each) for each in noted), UPDATES_AT_ONCE)
        updated = [(each, words) for each, words in zip(noted, written, strict=True) if words is not None]
        if updated:
            await _forget_synced(context, updated)
            return len(updated)
    return 0


async def _forget_synced(context: Context, updated: list[tuple[Detachment, _Words]]) -> None:
    now_s = context.clock.lease_s()

    def work(connection: Connection) -> None:
        for detachment, words in updated:
            # If the source has changed meanwhile, keep its detachment, so that the index is updated again.
            if _words(_find(connection, detachment)) == words:
                delete_detachment(connection, detachment.source_id, now_s)

    await context.write(work)


def take_place(connection: Connection, context: Context, team_id: str, source_id: str, bucket_id: str) -> None:
    """If this source is active, remove the sources that it replaces from the bucket."""
    source = find_source(connection, team_id, source_id)
    if source is None or source.replaces is None or source.status != readiness.ACTIVE:
        return
    for old in _predecessors(connection, source, bucket_id):
        remove_replaced(connection, context, old, [bucket_id], source.id)
    left = find_source(connection, source.team_id, source.replaces)
    if left is None or not set(left.places) & set(source.places):
        update_state(connection, replace(source, replaces=None))


def _predecessors(connection: Connection, source: SourceRow, bucket_id: str) -> list[SourceRow]:
    """Return the sources that this source replaces in the bucket, directly or through other sources."""
    line: list[SourceRow] = []
    older: SourceRow | None = source
    # A damaged row may lead back to a source of this line.
    seen = {source.id}
    while older is not None and older.replaces is not None and older.replaces not in seen:
        seen.add(older.replaces)
        older = find_source(connection, source.team_id, older.replaces)
        if older is not None and bucket_id in older.places:
            line.append(older)
    return line


async def _update_index(context: Context, detachment: Detachment) -> _Words | None:
    """Write the source's title, tags and buckets to the index. Returns them; None if the index failed."""
    team_id, source_id = detachment.team_id, detachment.source_id
    source = context.read(lambda connection: _find(connection, detachment))
    words = _words(source)
    if source is None:
        return words
    provider = context.provider
    try:
        await asyncio.to_thread(provider.set_title, team_id, source_id, source.title, source.tags)
        await asyncio.to_thread(provider.set_buckets, team_id, source_id, source.generation, source.searched_places)
    except DocumentMissing:
        # Indexing will write them.
        return words
    except ProviderError as error:
        log.warning("the index could not be updated for %s: %s", source_id, error)
        return None
    return words


def _find(connection: Connection, detachment: Detachment) -> SourceRow | None:
    return find_source(connection, detachment.team_id, detachment.source_id)


def _words(source: SourceRow | None) -> _Words:
    return (source.title, source.tags, list(source.places)) if source is not None else ("", (), [])
