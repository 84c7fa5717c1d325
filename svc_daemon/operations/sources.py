"""Operations on existing sources, such as listing, renaming and retrying them, or attaching them to a bucket."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from svc_daemon.core import ids, proofs, readiness
from svc_daemon.core.answers.passages import QuotePlace
from svc_daemon.core.json_bodies import refusal
from svc_daemon.core.proofs import Proof
from svc_daemon.core.text.chunking import Extraction
from svc_daemon.core.uploads.source_fields import choose_title
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import NotFound, ServiceError
from svc_daemon.extract.extractors import Extractor
from svc_daemon.operations.index.extraction import read_again
from svc_daemon.operations.ingest.files import new_indexing_task
from svc_daemon.operations.retrieve.availability import ask_index, refuse_in_maintenance
from svc_daemon.operations.shared.events import record_events, source_event
from svc_daemon.operations.shared.leases import lease_end_s
from svc_daemon.operations.shared.reachable_rows import (
    find_reachable_successors,
    get_changeable_source,
    get_lasting_bucket,
    get_reachable_source,
    get_usable_bucket,
)
from svc_daemon.operations.shared.schedules import with_schedule
from svc_daemon.process.contexts import Context
from svc_daemon.provider.contract import StoredText
from svc_daemon.provider.errors import DocumentMissing
from svc_daemon.store.rows.batches import end_batch
from svc_daemon.store.rows.buckets import BucketRow, list_revisions, touch_buckets_of
from svc_daemon.store.rows.keys import KeyRow
from svc_daemon.store.rows.sources import listings
from svc_daemon.store.rows.sources.detachments import begin_retitle, create_detachment, end_retitle
from svc_daemon.store.rows.sources.listings import FailureGroup, SourceFilter
from svc_daemon.store.rows.sources.memberships import SyncClaim, create_memberships, suspend_syncs
from svc_daemon.store.rows.sources.recognized_pages import delete_pages
from svc_daemon.store.rows.sources.refreshes import end_swap, update_refresh
from svc_daemon.store.rows.sources.sources import (
    SourceRow,
    find_sources,
    get_source,
    update_description,
    update_state,
)
from svc_daemon.store.rows.tasks import create_tasks
from svc_daemon.wire.events import EventType
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.sources import ProviderState, RefreshChoice
from svc_daemon.wire.tasks import INDEXING

T = TypeVar("T")

#: Of how many sources the quotes of one request are proven.
MOST_REREAD = 50
#: How many failed sources one transaction queues again.
RETRIES_TOGETHER = 100


def show_source(context: Context, key: KeyRow, source_id: str) -> SourceRow:
    """Return the source; raises NotFound."""
    return context.read(lambda connection: get_reachable_source(connection, key, source_id))


@dataclass(frozen=True, slots=True)
class SourceLookup:
    """The result of looking up sources by id. Sources that the key can't reach count as missing."""

    #: In the order of the requested ids.
    found: list[SourceRow]
    missing: list[str]
    #: Maps the id of each missing source that was replaced to the id of its successor, if the key can reach that.
    successors: dict[str, str]


def look_up_sources(context: Context, key: KeyRow, source_ids: Sequence[str]) -> SourceLookup:
    """Find the sources that exist and that the key can reach."""

    def work(connection: Connection) -> SourceLookup:
        rows = find_sources(connection, key.team_id, source_ids)
        found = [rows[each] for each in source_ids if each in rows and key.reaches(rows[each].places)]
        listed = {source.id for source in found}
        missing = [each for each in source_ids if each not in listed]
        gone = [each for each in missing if each not in rows]
        return SourceLookup(found, missing, find_reachable_successors(connection, key, gone))

    return context.read(work)


async def verify_source(context: Context, source: SourceRow) -> ProviderState:
    """Return the source's state in the index; raises `search_failed`.

    While the index is rebuilt, the source is pending until it is indexed again.
    """
    find = partial(context.provider.get_document, source.team_id, source.id)
    document = await ask_index(context, source.team_id, find)
    if document is not None and document.generation in source.generations:
        return ProviderState(state="STATE_ACTIVE", document_id=document.document_id)
    is_failed = source.status == readiness.FAILED
    return ProviderState(state="STATE_FAILED" if is_failed else "STATE_PENDING", document_id=None)


async def prove_quotes(
    context: Context, extractor: Extractor, key: KeyRow, quotes: Sequence[tuple[str, str, QuotePlace]]
) -> list[Proof]:
    """Check that each quote is in its source, whose stored bytes are read again. `quotes` begin with a source's id.

    Raises `invalid_request` for too many sources.
    """
    source_ids = dict.fromkeys(source_id for source_id, _, _ in quotes)
    if len(source_ids) > MOST_REREAD:
        raise refusal("quotes", f"are of {len(source_ids)} sources; at most {MOST_REREAD} are read in one request.")
    readings: dict[str, Extraction | Proof] = {}
    for source_id in source_ids:
        try:
            source = show_source(context, key, source_id)
            found = await read_again(context, extractor, source.team_id, source.id)
        except NotFound:
            readings[source_id] = proofs.SOURCE_GONE
            continue
        if found.sha256 is None:
            readings[source_id] = proofs.BYTES_LOST
        elif found.sha256 != found.source.sha256:
            readings[source_id] = proofs.BYTES_CHANGED
        else:
            failure = found.failure.message if found.failure else "no text could be extracted"
            readings[source_id] = found.extraction or Proof("unreadable", failure)

    def work() -> list[Proof]:
        read = ((readings[source_id], quote, place) for source_id, quote, place in quotes)
        return [text if isinstance(text, Proof) else proofs.prove(quote, place, text) for text, quote, place in read]

    return await asyncio.to_thread(work)


async def list_members(
    context: Context, key: KeyRow, bucket: str, chosen: SourceFilter
) -> tuple[str, int, list[SourceRow]]:
    """List the bucket's sources that pass the filter. Returns the bucket's id and revision, and the sources."""

    def work(connection: Connection) -> tuple[str, int, list[SourceRow]]:
        bucket_id = get_lasting_bucket(connection, key, bucket).id
        members = listings.list_sources(connection, key.team_id, bucket_id, chosen)
        return bucket_id, list_revisions(connection, [bucket_id])[bucket_id], members

    return await context.read_in_thread(work)


async def group_failures(
    context: Context, key: KeyRow, bucket: str, chosen: SourceFilter
) -> tuple[str, int, list[tuple[FailureGroup, SourceRow]]]:
    """Count the bucket's failed sources by the code of their error, each code with one of the sources.

    Returns the bucket's id and revision, and the groups.
    """

    def work(connection: Connection) -> tuple[str, int, list[tuple[FailureGroup, SourceRow]]]:
        bucket_id = get_lasting_bucket(connection, key, bucket).id
        groups = listings.group_failures(connection, key.team_id, bucket_id, chosen)
        examples = find_sources(connection, key.team_id, [group.example_id for group in groups])
        found = [(group, examples[group.example_id]) for group in groups]
        return bucket_id, list_revisions(connection, [bucket_id])[bucket_id], found

    return await context.read_in_thread(work)


async def describe_source(
    context: Context, key: KeyRow, source_id: str, change: dict[str, Any], refresh: RefreshChoice | None = None
) -> SourceRow:
    """Update these fields of the source, and its schedule. A new title is written to the index first.

    An empty title is the file name.

    Raises `forbidden_project_key` if the key can't reach all of the source's buckets.
    """
    source = context.read(lambda connection: get_changeable_source(connection, key, source_id))
    if "title" in change:
        change["title"] = choose_title(change["title"], change.get("filename", source.filename))
    if change.get("title", source.title) == source.title:
        return await _describe(context, key, source_id, change, refresh) if change or refresh else source
    async with _retitling(context, source):
        await _retitle(context, source, change["title"])
        changed = await _describe(context, key, source_id, change, refresh)
        # Indexing may have written the old title meanwhile, so write the new title again.
        await _retitle(context, source, changed.title)
    return changed


@asynccontextmanager
async def _retitling(context: Context, source: SourceRow) -> AsyncIterator[None]:
    """Have the sync worker update the index after the block, but not earlier.

    During the block, the worker would write the old title.
    """
    now_s, until_s = context.clock.lease_s(), lease_end_s(context)
    await context.write(
        lambda connection: begin_retitle(connection, source.team_id, source.id, now_s=now_s, lease_until_s=until_s)
    )
    try:
        yield
    finally:
        await context.write(lambda connection: end_retitle(connection, source.id))
        context.wakes.syncing.set()


async def _describe(
    context: Context, key: KeyRow, source_id: str, change: dict[str, Any], refresh: RefreshChoice | None
) -> SourceRow:
    def work(connection: Connection) -> SourceRow:
        found = get_changeable_source(connection, key, source_id)
        changed = replace(found, **change, updated_at=context.clock.timestamp())
        update_description(connection, changed)
        if refresh is not None:
            changed = with_schedule(context, changed, refresh)
            update_refresh(connection, changed)
        updated = source_event(EventType.SOURCE_UPDATED, changed, key_id=key.id)
        record_events(connection, context.ids, key.team_id, [updated])
        touch_buckets_of(connection, source_id)
        if changed.tags != found.tags:
            # Searches know the source by its tags, too.
            create_detachment(connection, key.team_id, source_id)
        return changed

    changed = await context.write(work)
    context.wakes.syncing.set()
    context.wakes.refreshing.set()
    return changed


def check_attach(connection: Connection, key: KeyRow, bucket: str, source_id: str) -> tuple[BucketRow, SourceRow]:
    """Return the bucket and the source to attach; raises the errors of `attach_source`."""
    return get_usable_bucket(connection, key, bucket), get_reachable_source(connection, key, source_id)


async def attach_source(context: Context, key: KeyRow, bucket: str, source_id: str) -> SourceRow:
    """Add the source to the bucket; does nothing if the bucket already has it."""
    now = context.clock.timestamp()

    def work(connection: Connection) -> SourceRow:
        found, source = check_attach(connection, key, bucket, source_id)
        claim = SyncClaim(source_id=source.id, bucket_id=found.id, team_id=key.team_id)
        due_at = now if source.status == readiness.ACTIVE else None
        is_new = create_memberships(connection, [claim], now, due_at)
        if is_new:
            attached = source_event(EventType.SOURCE_ATTACHED, source, [found.id], key.id)
            record_events(connection, context.ids, key.team_id, [attached])
        if is_new and source.status == readiness.INDEXING:
            # If the source left this bucket earlier during indexing, the index may lack the bucket: update the index.
            create_detachment(connection, key.team_id, source.id)
        return get_source(connection, key.team_id, source_id)

    source = await context.write(work)
    context.wakes.syncing.set()
    return source


async def retry_source(context: Context, key: KeyRow, source_id: str) -> SourceRow:
    """Queue a source that failed, or that has pages without text, for indexing from its stored bytes.

    The source gets the full number of attempts again.
    """

    def work(connection: Connection) -> SourceRow:
        source = get_reachable_source(connection, key, source_id)
        has_unread = source.extraction is not None and bool(source.extraction.get("pages_without_text"))
        if source.status != readiness.FAILED and not (source.status == readiness.ACTIVE and has_unread):
            reason = "and no page of it lacks text: another try can't help."
            raise refusal("", f"{source_id} is {source.status}, {reason}")
        delete_pages(connection, source.id, only_problems=True)
        return requeue(connection, context, source, key.id)

    source = await context.write(work)
    context.wakes.indexing.set()
    return source


async def retry_failed(context: Context, key: KeyRow, bucket: str, codes: Collection[str] | None) -> dict[str, Any]:
    """Queue the bucket's failed sources that another try can help, of these codes only. Returns the counts.

    Each transaction queues some, so that other writes don't wait for thousands of them.
    """
    queued: Counter[str] = Counter()
    not_helped: Counter[str] = Counter()
    last_id: str | None = ""
    while last_id is not None:
        chosen = SourceFilter(status=readiness.FAILED, after=last_id, limit=RETRIES_TOGETHER)

        def work(connection: Connection, chosen: SourceFilter = chosen) -> tuple[str, list[SourceRow], list[str]]:
            bucket_id = get_usable_bucket(connection, key, bucket).id
            failed = listings.list_sources(connection, key.team_id, bucket_id, chosen)
            helped = []
            for source in failed:
                code = source.error["code"] if source.error else ""
                if (codes is None or code in codes) and source.error and source.error["retryable"]:
                    requeue(connection, context, source, key.id)
                    helped.append(source.id)
            return bucket_id, failed, helped

        bucket_id, failed, helped = await context.write(work)
        for source in failed:
            code = source.error["code"] if source.error else ""
            if codes is None or code in codes:
                (queued if source.id in helped else not_helped)[code] += 1
        context.wakes.indexing.set()
        last_id = failed[-1].id if len(failed) == RETRIES_TOGETHER else None
    return {
        "bucket_id": bucket_id,
        "queued": queued.total(),
        "queued_by_code": dict(queued),
        "not_helped": dict(not_helped),
    }


def requeue(connection: Connection, context: Context, source: SourceRow, key_id: str | None = None) -> SourceRow:
    """Queue the source for indexing again, as a new generation."""
    queued = replace(
        end_swap(connection, source),
        status=readiness.QUEUED,
        generation=source.generation + 1,
        valid_from=None,
        task_id=context.ids.make(ids.TASK),
        task_type=INDEXING,
        task_status="queued",
        error=None,
        warnings=(),
        extraction=None,
        places=dict.fromkeys(source.places, readiness.QUEUED),
        updated_at=context.clock.timestamp(),
    )
    create_tasks(connection, [new_indexing_task(context, queued)])
    update_state(connection, queued)
    suspend_syncs(connection, source.id)
    touch_buckets_of(connection, source.id)
    if source.batch_id is not None:
        end_batch(connection, source.batch_id, None)
    record_events(
        connection, context.ids, source.team_id, [source_event(EventType.SOURCE_QUEUED, queued, key_id=key_id)]
    )
    return queued


async def read_text(context: Context, source: SourceRow) -> StoredText:
    """Return the source's extracted text.

    Raises `bucket_store_indexing_pending` if the source is not indexed yet, `invalid_request` if extraction failed, and
    `team_store_maintenance` if a rebuild of the index has not reached this source yet.
    """
    stored = await ask_index(context, source.team_id, lambda: context.provider.get_text(source.team_id, source.id))
    if stored is not None and stored.generation in source.generations:
        return stored
    if source.status == readiness.FAILED:
        raise refusal("", f"No text could be extracted from {source.id}; see its error.")
    context.read(partial(refuse_in_maintenance, context=context, team_id=source.team_id))
    raise ServiceError(ErrorCode.BUCKET_STORE_INDEXING_PENDING, f"{source.id} is not indexed yet.")


async def _retitle(context: Context, source: SourceRow, title: str) -> None:
    """Write the title to the index. If the source isn't indexed yet, indexing will write the title."""
    with suppress(DocumentMissing):
        await ask_index(context, source.team_id, lambda: context.provider.set_title(source.team_id, source.id, title))
