"""The steps of a scheduled refresh: find the source that is due, and record how the try ended.

Each step is one transaction. If the source was changed or deleted since it was read, a step changes nothing.
"""

from collections.abc import Callable
from dataclasses import replace

from svc_daemon.core import readiness
from svc_daemon.core.refreshes import GONE_STATUSES, Outcome
from svc_daemon.core.text import media_types
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import ServiceError, stored_error
from svc_daemon.extract.documents import ExtractionFailed
from svc_daemon.fetch.contract import Fetched, NotModified
from svc_daemon.operations.index.extraction import SourceReading, find_reading
from svc_daemon.operations.ingest.urls import facts_of
from svc_daemon.operations.remove.source_deletions import remove_source
from svc_daemon.operations.retrieve.agents import list_agents_of
from svc_daemon.operations.shared.schedules import after_try, record_try
from svc_daemon.operations.sources import requeue
from svc_daemon.process.contexts import Context
from svc_daemon.store.files.contract import StagedBytes
from svc_daemon.store.rows.refreshes import DueRefresh, postpone_refresh, update_refresh
from svc_daemon.store.rows.sources import SourceRow, find_source, update_content, update_state
from svc_daemon.store.rows.tombstones import create_tombstone
from svc_daemon.wire.error_codes import ErrorCode
from svc_daemon.wire.sources import SourceError

#: How long a try is put off that has not ended, in seconds.
PAUSE_S = 60.0


def find_due(connection: Connection, context: Context, due: DueRefresh) -> SourceReading | None:
    """Return the source, if it is still due."""
    reading = find_reading(connection, due.team_id, due.source_id)
    due_at = reading.source.refresh_due_at if reading else None
    return reading if due_at is not None and due_at <= context.clock.timestamp() else None


def updated(context: Context, source: SourceRow, staged: StagedBytes, got: Fetched) -> SourceRow:
    """Return the source's row with the new content, under a new name of its stored bytes."""
    return replace(
        source,
        blob=context.ids.make(source.id),
        content_type=media_types.detect(staged.head, source.filename, got.content_type),
        size_bytes=staged.size_bytes,
        sha256=staged.sha256,
        fetched=facts_of(context, got),
    )


async def note_unchanged(context: Context, source: SourceRow, got: Fetched | NotModified) -> None:
    """Record that the URL has the same content."""

    def work(connection: Connection) -> None:
        if (found := _unchanged(connection, source)) is not None:
            fetched = replace(found, fetched=facts_of(context, got, found.fetched))
            record_try(connection, context, fetched, Outcome.UNCHANGED)

    await context.write(work)


async def note_failed(context: Context, source: SourceRow, error: Exception) -> None:
    """Count a try that failed. The text stays, unless its owner wants a page that is gone to be deleted."""
    reason = _explain(error)
    is_gone = isinstance(error, ServiceError) and error.details.get("http_status") in GONE_STATUSES
    outcome = Outcome.GONE if is_gone else Outcome.FAILED

    def work(connection: Connection) -> bool:
        found = _unchanged(connection, source)
        if found is None or not record_try(connection, context, found, outcome, reason):
            return False
        if list_agents_of(connection, found.team_id, found.id):
            # As for anyone who deletes a source without `force`.
            return False
        remove_source(connection, context, found)
        return True

    if await context.write(work):
        context.wakes.sweeping.set()


async def postpone(context: Context, source_id: str, pause_s: float | None = PAUSE_S) -> None:
    """Try the source later, without counting a failure; never again if `pause_s` is None."""
    due_at = None if pause_s is None else context.clock.timestamp(pause_s)
    await context.write(lambda connection: postpone_refresh(connection, source_id, due_at))


def begin(context: Context, before: SourceRow, fresh: SourceRow) -> Callable[[Connection], SourceRow]:
    """Return the transaction that gives the source its new content, and returns its row.

    The content's bytes must be durable. Searches find the old text until the index has the new generation. A failed
    source has no text, and is queued. Raises `request_in_progress` if the source has changed since `before`.
    """

    def work(connection: Connection) -> SourceRow:
        found = _unchanged(connection, before)
        if found is None or found.in_maintenance or readiness.SYNCING in found.places.values():
            raise ServiceError(ErrorCode.REQUEST_IN_PROGRESS, f"{before.id} was just changed.", retry_after_seconds=1)
        is_failed = found.status == readiness.FAILED
        moved = replace(
            after_try(context, found, Outcome.UNCHANGED if is_failed else Outcome.CHANGED),
            blob=fresh.blob,
            content_type=fresh.content_type,
            size_bytes=fresh.size_bytes,
            sha256=fresh.sha256,
            fetched=fresh.fetched,
        )
        update_content(connection, moved)
        update_refresh(connection, moved)
        create_tombstone(connection, found.team_id, fresh.blob_name, None, context.clock.timestamp(), found.blob_name)
        if is_failed:
            return requeue(connection, context, moved)
        # Marked to be split, so that after a kill before the index has the new text, the next start goes on with it.
        begun = replace(moved, generation=found.generation + 1, valid_from=found.generations.start, rechunk=True)
        update_state(connection, begun)
        return begun

    return work


def _unchanged(connection: Connection, source: SourceRow) -> SourceRow | None:
    """Return the source's current row; None if its content, its URL or its schedule have changed, or it is deleted."""
    found = find_source(connection, source.team_id, source.id)
    if found is None or (found.generation, found.status) != (source.generation, source.status):
        return None
    return found if (found.refresh_due_at, found.sha256) == (source.refresh_due_at, source.sha256) else None


def _explain(error: Exception) -> SourceError:
    if isinstance(error, ServiceError):
        return error.as_error()
    if isinstance(error, ExtractionFailed):
        return stored_error(error.code, error.message, retryable=error.retryable)
    return stored_error(ErrorCode.INTERNAL_ERROR, "Something unexpected went wrong.", retryable=True)
