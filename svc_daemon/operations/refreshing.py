"""Refreshing: fetches a source's URL again, and reindexes the source if its content has changed.

Unchanged content doesn't count towards the team's upload limit.
"""

from dataclasses import replace

from svc_daemon.core import readiness
from svc_daemon.core.json_bodies import refusal
from svc_daemon.core.text import media_types
from svc_daemon.core.uploads.web_pages import is_web_page
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import ServiceError
from svc_daemon.fetch.contract import Fetched, NotModified, Validators
from svc_daemon.operations.authorization import get_changeable_source
from svc_daemon.operations.imports import facts_of, refetch, refuse_other_kind
from svc_daemon.operations.ingest import check_room, keep_source
from svc_daemon.operations.sources import requeue
from svc_daemon.process.contexts import Context
from svc_daemon.store.contract import StagedBytes
from svc_daemon.store.keys import KeyRow
from svc_daemon.store.sources import SourceRow, get_source, update_content
from svc_daemon.store.tombstones import create_tombstone
from svc_daemon.wire.error_codes import ErrorCode


async def refresh_source(context: Context, key: KeyRow, source_id: str, *, force: bool) -> tuple[SourceRow, bool]:
    """Fetch the source's URL again. Returns the source, and whether its content has changed.

    Raises ServiceError if the source can't be refreshed, and the errors of `imports.fetch`. Without
    `force`, the refresh is refused if a web page has become a file, or a file has become a web page.
    """
    source = context.read(lambda connection: get_changeable_source(connection, key, source_id))
    if source.source_url is None:
        raise refusal("", f"{source.id} did not come from a URL; only imports and pages can be refreshed.")
    _refuse_unsettled(source)
    staged = context.blobs.stage()
    # If the stored bytes are lost, fetch the content even if it has not changed.
    has_bytes = await context.blobs.blob(source.blob_name).find() is not None
    try:
        known = source.fetched if has_bytes else None
        validators = None
        if known is not None:
            validators = Validators(url=known["final_url"], etag=known["etag"], last_modified=known["last_modified"])
        got = await refetch(context, source.type, source.source_url, staged, validators)
        if isinstance(got, NotModified) or (has_bytes and staged.sha256 == source.sha256):
            return await _note_fetch(context, key, source, got), False
        # If the URL returns a web page instead of the earlier file, the page is usually a login form.
        was_page = media_types.find_format(source.content_type) == media_types.find_format("text/html")
        if not force and was_page != is_web_page(staged.head, got.content_type, got.file_name):
            refuse_other_kind(source.type, staged, got, next(iter(source.places), "{bucket}"))
        return await _take_over(context, key, source, (staged, got)), True
    finally:
        await staged.discard()


def _refuse_unsettled(source: SourceRow) -> None:
    if source.status in (readiness.QUEUED, readiness.INDEXING):
        raise ServiceError(
            ErrorCode.REQUEST_IN_PROGRESS, f"{source.id} is {source.status}; refresh it then.", retry_after_seconds=1
        )


async def _note_fetch(context: Context, key: KeyRow, source: SourceRow, got: Fetched | NotModified) -> SourceRow:
    """Record a fetch that found the same content."""

    def work(connection: Connection) -> SourceRow:
        found = get_changeable_source(connection, key, source.id)
        if found.generation != source.generation:
            return found
        update_content(connection, replace(found, fetched=facts_of(context, got, found.fetched)))
        return get_source(connection, key.team_id, source.id)

    return await context.write(work)


async def _take_over(context: Context, key: KeyRow, source: SourceRow, taken: tuple[StagedBytes, Fetched]) -> SourceRow:
    """Replace the source's bytes. Raises `request_in_progress` if another request has changed the source meanwhile."""
    staged, got = taken
    check_room(context)
    await context.rate_limits.charge_bytes(key.team_id, staged.size_bytes)
    fresh = replace(
        source,
        blob=context.ids.make(source.id),
        content_type=media_types.detect(staged.head, source.filename, got.content_type),
        size_bytes=staged.size_bytes,
        sha256=staged.sha256,
        fetched=facts_of(context, got),
    )

    def work(connection: Connection) -> SourceRow:
        found = get_changeable_source(connection, key, fresh.id)
        _refuse_unsettled(found)
        if found.generation != fresh.generation:
            raise ServiceError(ErrorCode.REQUEST_IN_PROGRESS, f"{fresh.id} was just changed.", retry_after_seconds=1)
        moved = replace(
            found,
            blob=fresh.blob,
            content_type=fresh.content_type,
            size_bytes=fresh.size_bytes,
            sha256=fresh.sha256,
            fetched=fresh.fetched,
        )
        update_content(connection, moved)
        create_tombstone(connection, found.team_id, fresh.blob_name, None, context.clock.timestamp(), found.blob_name)
        return requeue(connection, context, moved, key.id)

    queued = await keep_source(context, staged, fresh, work)
    await context.blobs.drop([source.blob_name])
    context.wakes.sweeping.set()
    return queued
