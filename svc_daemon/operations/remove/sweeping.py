"""Clean-up: finishes deletions, expires upload sessions, and removes old database rows and unused files.

Each step can be repeated after a crash.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from svc_daemon.core import ids, readiness, task_retries
from svc_daemon.core.refreshes import LONGEST_EVERY_S, SPREAD
from svc_daemon.core.times import from_text
from svc_daemon.databases.contract import Connection
from svc_daemon.operations.index.rebuilding import rebuild_after
from svc_daemon.operations.shared.batch_items import end_batches
from svc_daemon.operations.sources import requeue
from svc_daemon.process.contexts import Context
from svc_daemon.process.locks import session_lock
from svc_daemon.provider.errors import IndexDamaged, ProviderError
from svc_daemon.store.files.contract import SweptStores
from svc_daemon.store.rows import ended_rows, overdue_work, sessions, teams, tombstones
from svc_daemon.store.rows.idempotency import delete_expired_answers
from svc_daemon.store.rows.sources import detachments, memberships, sources
from svc_daemon.store.rows.tasks import find_last_rebuild, is_in_maintenance
from svc_daemon.store.rows.tombstones import Tombstone

log = logging.getLogger(__name__)

#: Maximum number of rows per commit.
STEP_LIMIT = 100
#: Age in seconds at which bytes of ended upload sessions are deleted. By then, no request is still sending them.
PART_AGE_S = 86400


async def clean_tombstones(context: Context) -> int:
    """Remove the files and index rows of all deleted sources. Returns how many sources were cleaned up."""
    count, after = 0, ""
    # Skip sources whose clean-up fails, so that one team's damaged index does not block other teams.
    while listed := context.read(partial(tombstones.list_to_clean, after=after, limit=STEP_LIMIT)):
        after = listed[-1].source_id
        count += await _clean(context, listed)
    return count


async def _clean(context: Context, listed: list[Tombstone]) -> int:
    # Record the clean-up last, when the files and index rows are deleted for good.
    refused = await context.blobs.delete([stone.blob_name for stone in listed])
    rest = [stone for stone in listed if stone.blob_name not in refused]
    tried = await asyncio.to_thread(lambda: [(stone, _clear_index(context, stone)) for stone in rest])
    stones = [stone for stone, refusal in tried if refusal is None]
    if refusals := [*refused.values(), *(refusal for _, refusal in tried if refusal is not None)]:
        log.warning("clearing %d deleted sources was refused, tried again later: %s", len(refusals), refusals[0])
    now = context.clock.timestamp()

    def work(connection: Connection) -> None:
        for stone in stones:
            tombstones.finish_tombstone(connection, stone.source_id, now)

    if stones:
        await context.write(work)
    return len(stones)


async def expire_sessions(context: Context) -> int:
    """Expire the upload sessions that have reached their end, and delete their bytes. Returns how many were due."""
    now = context.clock.timestamp()
    by_lock = {session_lock(each): each for each in context.read(lambda c: sessions.list_expired_ids(c, now))}
    locks = list(by_lock)

    def work(connection: Connection, *, held: Sequence[str]) -> list[str]:
        # Leave out sessions that a repeated create request has renewed meanwhile.
        expired = [by_lock[lock] for lock in held if sessions.expire_session(connection, by_lock[lock], now)]
        for session in sessions.get_sessions(connection, expired):
            end_batches(connection, context, session.team_id, [session.batch_id])
        return expired

    for start in range(0, len(locks), STEP_LIMIT):
        # Skip sessions that are receiving bytes; the next run checks them again.
        async with context.locks.hold_free(*locks[start : start + STEP_LIMIT]) as held:
            if held:
                await context.parts.delete(*await context.write(partial(work, held=held)))
    return len(locks)


async def forget_old_keys(context: Context) -> int:
    """Delete expired idempotency keys. Returns how many."""
    oldest = context.clock.timestamp(-86400 * context.limits.idempotency_days)
    return await context.write(lambda connection: delete_expired_answers(connection, oldest))


async def forget_ended(context: Context) -> int:
    """Delete old rows of ended upload sessions, batches, tasks and webhook calls. Returns how many."""
    # Keep rows for longer than idempotency keys, because a repeated request needs the row of the first request.
    days = max(context.limits.history_days, context.limits.idempotency_days + 1)
    oldest = context.clock.timestamp(-86400 * days)
    count = 0
    for kind in ended_rows.KINDS:
        ended = [""]
        while ended:
            listing = partial(ended_rows.list_ended, kind=kind, oldest=oldest, after=ended[-1], limit=STEP_LIMIT)
            ended = await context.read_in_thread(listing)
            if ended:
                await context.write(partial(ended_rows.delete_ended, kind=kind, ids=ended))
            count += len(ended)
    return count


async def purge(context: Context) -> bool:
    """Overwrite what deleted sources have left in the search indexes, and then in the log of the state database.

    Returns False if the indexes have nothing of deleted sources.
    """
    is_purged = False
    for team_id in await context.read_in_thread(teams.list_team_ids):
        try:
            is_purged |= await asyncio.to_thread(context.provider.purge, team_id)
        except ProviderError as error:
            log.warning("the index of %s can't be purged: %s", team_id, error)
    if is_purged:
        await asyncio.to_thread(context.database.empty_log)
    return is_purged


async def sweep_objects(context: Context, after: str) -> str | None:
    """Delete old objects that no database row names, among the next page of objects after the key `after`.

    Returns the key to pass as `after` in the next call; None when all objects were checked.
    """
    stores = context.stores
    if not isinstance(stores, SweptStores):
        return None
    page = await stores.list_page(after)
    # Keep newer objects: their rows may not be committed yet, or a database restored from a backup may name them.
    blobs_before = from_text(context.clock.timestamp(-86400 * context.limits.set_aside_days))
    parts_before = from_text(context.clock.timestamp(-PART_AGE_S))
    old_blobs = {each.blob: each for each in page if each.blob and each.modified_at < blobs_before}
    old_parts = [each for each in page if each.session_id and each.modified_at < parts_before]
    session_ids = {each.session_id for each in old_parts if each.session_id}
    named = context.read(lambda connection: sources.list_named_blobs(connection, old_blobs))
    open_ids = context.read(lambda connection: sessions.list_open_among(connection, session_ids))
    unnamed = [each.key for name, each in old_blobs.items() if name not in named]
    ended = [each.key for each in old_parts if each.session_id not in open_ids]
    if unnamed or ended:
        log.info("%d old blobs and %d old parts that no row names are deleted", len(unnamed), len(ended))
        await stores.delete([*unnamed, *ended])
    return page[-1].key if page else None


async def recall_far_pauses(context: Context) -> int:
    """After the clock was set back, make retries that are too far in the future due now. Returns how many."""
    now, latest = context.clock.timestamp(), context.clock.timestamp(task_retries.FURTHEST_DUE_S)
    latest_call = context.clock.timestamp(max(task_retries.FURTHEST_DUE_S, 2 * context.limits.webhook_retry_seconds))
    latest_refresh = context.clock.timestamp(LONGEST_EVERY_S * (1 + SPREAD))
    if not context.read(
        lambda connection: overdue_work.has_far_pauses(connection, latest, latest_call, latest_refresh)
    ):
        return 0
    recalled = await context.write(
        lambda connection: overdue_work.recall_far_pauses(connection, now, latest, latest_call, latest_refresh)
    )
    wakes = context.wakes
    for waiting in (wakes.indexing, wakes.syncing, wakes.cascading, wakes.delivering, wakes.refreshing):
        waiting.set()
    return recalled


async def rebuild_lost(context: Context) -> int:
    """Queue a rebuild of each team's search index that is missing or damaged. Returns how many."""
    found = 0
    for team_id in context.read(teams.list_team_ids):
        # Several nodes may find the same problem, but only one may queue a rebuild.
        last = context.read(partial(find_last_rebuild, team_id=team_id))
        if last is not None and last.finished_at is None:
            continue
        has_active = context.read(partial(sources.has_active, team_id=team_id))
        if has_active and await asyncio.to_thread(_is_lost, context, team_id):
            log.error("the index of %s is lost: it is rebuilt from the stored files", team_id)
            await rebuild_after(context, team_id, last)
            found += 1
    return found


def _is_lost(context: Context, team_id: str) -> bool:
    try:
        return next(context.provider.list_documents(team_id), None) is None
    except IndexDamaged:
        return True
    except ProviderError as error:
        log.warning("the index of %s can't be checked: %s", team_id, error)
        return False


async def reconcile_index(context: Context) -> int:
    """At startup, compare each team's index with the state database. Returns how many documents did not match.

    A document without a source is removed, unless the source's file is still stored. A source without a document is
    queued for indexing. A document with wrong buckets gets the buckets of its source.
    """
    found = 0
    for team_id in context.read(teams.list_team_ids):
        if context.read(partial(is_in_maintenance, team_id=team_id)):
            continue
        try:
            found += await _reconcile_team(context, team_id)
        except ProviderError as error:
            log.warning("the index of %s can't be compared with the state: %s", team_id, error)
    return found


async def _reconcile_team(context: Context, team_id: str) -> int:
    # Read the database before the index: the index then has every source that was active in the database.
    active = await context.read_in_thread(partial(sources.list_active_generations, team_id=team_id))
    places = await context.read_in_thread(partial(memberships.list_searched_places, team_id=team_id))
    listed, misplaced = await asyncio.to_thread(_list_documents, context, team_id, places)
    orphans = listed.keys() - await context.read_in_thread(sources.list_all_ids)
    if orphans:
        # Keep the documents of stored files: the database has lost their sources, so only the index describes them.
        orphans -= await context.blobs.find_stored(orphans)
        orphans -= {ids.source_of(name) for name in await asyncio.to_thread(context.set_aside_files.list_names)}
    for source_id in orphans:
        await asyncio.to_thread(context.provider.delete_document, team_id, source_id)
    missing = [source_id for source_id, generations in active.items() if listed.get(source_id) not in generations]
    count = 0
    for source_id in missing:
        # The source may have been indexed meanwhile.
        document = await asyncio.to_thread(context.provider.get_document, team_id, source_id)
        generation = document.generation if document else None
        count += await context.write(partial(_requeue_lost, context=context, key=(team_id, source_id, generation)))
    if count:
        log.warning("%d documents are missing in the index of %s; they are read again", count, team_id)
        context.wakes.indexing.set()
    misplaced &= active.keys()
    for source_id in misplaced:
        await context.write(partial(detachments.create_detachment, team_id=team_id, source_id=source_id))
        context.wakes.syncing.set()
    return len(orphans) + count + len(misplaced)


def _list_documents(
    context: Context, team_id: str, places: dict[str, tuple[str, ...] | None]
) -> tuple[dict[str, int], set[str]]:
    """Return each source's generation in the index, and the ids of sources whose buckets differ from `places`.

    A source whose buckets are still to be written to the index is left out: the sync worker corrects the index.
    """
    listed, misplaced = dict[str, int](), set[str]()
    for document in context.provider.list_documents(team_id):
        listed[document.source_id] = document.generation
        if places.get(document.source_id, ()) not in (document.bucket_ids, None):
            misplaced.add(document.source_id)
    return listed, misplaced


def _requeue_lost(connection: Connection, *, context: Context, key: tuple[str, str, int | None]) -> int:
    team_id, source_id, generation = key
    source = sources.find_source(connection, team_id, source_id)
    if source is None or source.status != readiness.ACTIVE or source.in_maintenance:
        return 0
    if generation in source.generations:
        return 0
    # The new generation must be higher than the index's. After a restore from a backup, the index's generation may be
    # higher than the source's.
    requeue(connection, context, replace(source, generation=max(source.generation, generation or 0)))
    return 1


def _clear_index(context: Context, stone: Tombstone) -> Exception | None:
    """Delete one source's index rows. Returns an error instead of raising it, so that other sources are cleaned too."""
    try:
        context.provider.delete_document(stone.team_id, stone.source_id)
    except ProviderError as error:
        return error
    return None
