"""Fetches sources from their URLs again, on request and by schedule, and has new text take the old one's place.

Each step is one transaction. If the source was changed or deleted since it was read, a step changes nothing. The text
is extracted before anything is changed, so content without text leaves the old text as it is. What happens after a
kill:

    before `begin`     nothing has changed; the next start moves the new bytes aside
    after `begin`      the source is marked to be split again, so `workers.rebuilding` reads its new bytes and goes on
"""

from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace

from svc_daemon.core import readiness
from svc_daemon.core.json_bodies import refusal
from svc_daemon.core.refreshes import GONE_STATUSES, LONGEST_ASKED_S, Outcome
from svc_daemon.core.shortages import ShortageKind
from svc_daemon.core.text import media_types
from svc_daemon.core.text.chunking import Extraction, RecognizedPage
from svc_daemon.core.uploads import web_pages
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import ServiceError, stored_error
from svc_daemon.extract.documents import ExtractionFailed, NeedsRecognition
from svc_daemon.extract.extractors import Extractor
from svc_daemon.fetch.contract import Fetched, NotModified, Validators
from svc_daemon.operations.agents import list_agents_of
from svc_daemon.operations.index import extraction as extracting
from svc_daemon.operations.index.extraction import SourceReading, find_reading, list_chunkings
from svc_daemon.operations.index.rebuilding import exchange, is_read_alike
from svc_daemon.operations.index.scans import over_limit
from svc_daemon.operations.ingest import files
from svc_daemon.operations.ingest.urls import facts_of, refetch, refuse_other_kind
from svc_daemon.operations.remove.source_deletions import delete_source
from svc_daemon.operations.shared.reachable_rows import get_changeable_source
from svc_daemon.operations.shared.schedules import after_change, record_try
from svc_daemon.operations.sources import requeue
from svc_daemon.process.contexts import Context
from svc_daemon.process.resource_shortages import Short
from svc_daemon.provider.errors import ProviderError
from svc_daemon.store.files.contract import StagedBytes, discarding
from svc_daemon.store.rows.keys import KeyRow
from svc_daemon.store.rows.sources.recognized_pages import delete_pages, store_pages
from svc_daemon.store.rows.sources.refreshes import DueRefresh, postpone_refresh, update_refresh
from svc_daemon.store.rows.sources.sources import SourceRow, find_source, update_content, update_state
from svc_daemon.store.rows.tombstones import create_tombstone
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.sources import SourceError

#: How long a try is put off that has not ended, in seconds.
PAUSE_S = 60.0
#: Failures that say something about the host or what it sends.
_OF_THE_HOST = (
    *(ErrorCode.URL_FETCH_FAILED, ErrorCode.URL_FETCH_BLOCKED, ErrorCode.WEBSITE_ANALYSIS_FAILED),
    *(ErrorCode.URL_IS_WEB_PAGE, ErrorCode.URL_IS_FILE),
)
#: What the machine may be short of when a document can't be read.
SHORT_OF = (ShortageKind.DESCRIPTORS, ShortageKind.MEMORY)


def find_due(connection: Connection, context: Context, due: DueRefresh) -> SourceReading | None:
    """Return the source, if it is still due."""
    reading = find_reading(connection, due.team_id, due.source_id)
    due_at = reading.source.refresh_due_at if reading else None
    return reading if due_at is not None and due_at <= context.clock.timestamp() else None


async def refresh_source(
    context: Context, extractor: Extractor, key: KeyRow, source_id: str, *, force: bool
) -> tuple[SourceRow, bool]:
    """Fetch the source's URL again. Returns the source, and whether its content has changed.

    Raises ServiceError if the source can't be refreshed, or if its new content has no text, and the errors of
    `fetch_again`. Unchanged content doesn't count towards the team's upload limit. A failure counts as one of the
    source's schedule, if it has one.
    """

    def find(connection: Connection) -> SourceReading:
        source = get_changeable_source(connection, key, source_id)
        return SourceReading(source, list_chunkings(connection, [source])[source.id])

    reading = context.read(find)
    source = reading.source
    if source.source_url is None:
        raise refusal("", f"{source.id} did not come from a URL; only imports and pages can be refreshed.")
    if source.status in (readiness.QUEUED, readiness.INDEXING):
        message = f"{source.id} is {source.status}; refresh it then."
        raise ServiceError(ErrorCode.REQUEST_IN_PROGRESS, message, retry_after_seconds=1)
    try:
        is_changed = await refresh_reading(context, extractor, key, reading, force=force)
    except ServiceError as error:
        cause = error.__cause__ or error
        if error.code in _OF_THE_HOST and not await context.shortages.is_cause_of(cause, kinds=SHORT_OF):
            await note_failed(context, source, error, is_by_hand=True)
        raise
    return context.read(find).source, is_changed


async def refresh_reading(
    context: Context, extractor: Extractor, key: KeyRow, reading: SourceReading, *, force: bool
) -> bool:
    """Fetch a source for a request, and return whether its content has changed."""
    source = reading.source
    async with discarding(context.blobs.stage()) as staged:
        got, is_changed = await fetch_again(context, source, staged, force=force)
        if not is_changed or not isinstance(got, Fetched):
            await note_unchanged(context, source, got)
            return False
        files.check_room(context)
        await context.rate_limits.charge_bytes(key.team_id, staged.size_bytes)
        fresh = await keep(context, source, staged, got)
        try:
            return await take_in(context, extractor, reading, fresh, got, key, is_sure=force)
        except ExtractionFailed as failure:
            code = ErrorCode.WEBSITE_ANALYSIS_FAILED if source.type == readiness.PAGE else ErrorCode.URL_FETCH_FAILED
            message = f"The new content can't be read, so the old one stays: {failure.message}"
            raise ServiceError(code, message, reason=str(failure.code)) from failure
        except ProviderError as error:
            raise ServiceError(ErrorCode.SEARCH_FAILED, str(error)) from error


async def fetch_again(
    context: Context, source: SourceRow, staged: StagedBytes, *, force: bool
) -> tuple[Fetched | NotModified, bool]:
    """Fetch the source's URL into `staged`. Returns the response, and whether the content has changed.

    Raises the errors of `fetch` and, without `force`, of `refuse_other_kind`.
    """
    # If the stored bytes are lost, fetch the content even if it has not changed.
    has_bytes = await context.blobs.blob(source.blob_name).find() is not None
    known = source.fetched if has_bytes else None
    validators = None
    if known is not None:
        validators = Validators(url=known["final_url"], etag=known["etag"], last_modified=known["last_modified"])
    got = await refetch(context, source.type, source.source_url or "", staged, validators)
    if isinstance(got, NotModified) or (has_bytes and staged.sha256 == source.sha256):
        return got, False
    # If the URL returns a web page instead of the earlier file, the page is usually a login form.
    was_page = media_types.find_format(source.content_type) == media_types.find_format("text/html")
    if not force and was_page != web_pages.is_web_page(staged.head, got.content_type, got.file_name):
        try:
            refuse_other_kind(source.type, staged, got, next(iter(source.places), "{bucket}"))
        except ServiceError as error:
            kind = "file" if was_page else "web page"
            message = f"The URL has become a {kind}, so the old text stays; with force: true, the {kind} is read."
            raise ServiceError(error.code, message, **error.details) from error
    return got, True


async def keep(context: Context, source: SourceRow, staged: StagedBytes, got: Fetched) -> SourceRow:
    """Make the new content durable under a name of its own. Returns the source's row with it."""
    facts = facts_of(context, got)
    facts["is_swapping"] = True
    fresh = replace(
        source,
        blob=context.ids.make(source.id),
        content_type=media_types.detect(staged.head, source.filename, got.content_type),
        size_bytes=staged.size_bytes,
        sha256=staged.sha256,
        fetched=facts,
    )
    await staged.keep(fresh.blob_name)
    return fresh


async def take_in(
    context: Context,
    extractor: Extractor,
    reading: SourceReading,
    fresh: SourceRow,
    got: Fetched,
    key: KeyRow | None = None,
    *,
    is_sure: bool = False,
) -> bool:
    """Have the text of the new content take the old one's place. Returns False if a page has the same text.

    Many hosts send other bytes each time, such as a token in a form. A source that has no text is queued, and so is a
    scan for a `key`, whose request can't wait for it. Raises the errors of `read_new`.
    """
    source = reading.source
    try:
        extraction, pages = await read_new(context, extractor, replace(reading, source=fresh), key, is_sure=is_sure)
        # Lost bytes are restored, even of a page with the same text.
        is_page = source.type == readiness.PAGE and await context.blobs.blob(source.blob_name).find() is not None
        is_alike = extraction is not None and is_page and await is_read_alike(context, source, extraction)
    except BaseException:
        await context.blobs.drop([fresh.blob_name])
        raise
    if is_alike:
        await context.blobs.drop([fresh.blob_name])
        await note_unchanged(context, source, got)
        return False
    step = begin(context, source, fresh, pages, key, is_queued=extraction is None)
    begun = await files.commit_blobs(context, [fresh.blob_name], step)
    await context.blobs.drop([source.blob_name])
    context.wakes.sweeping.set()
    if extraction is None or begun.status != readiness.ACTIVE:
        context.wakes.indexing.set()
        return True
    with suppress(ProviderError, Short):
        if await exchange(context, SourceReading(begun, reading.chunking), extraction):
            return True
    context.wakes.rechunking.set()
    return True


async def read_new(
    context: Context, extractor: Extractor, reading: SourceReading, key: KeyRow | None, *, is_sure: bool
) -> tuple[Extraction | None, list[RecognizedPage]]:
    """Extract the text of new content. Returns it with the pages that were recognised for it.

    For a `key`, returns None for the text of a scan, and of a source without an old text. After a kill, all pages are
    recognised again. Raises ExtractionFailed and, unless the caller `is_sure`, the error of `refuse_lesser_page`.
    """
    if key is not None and (reading.source.status != readiness.ACTIVE or reading.source.in_maintenance):
        return None, []
    await context.upload_priority.let_uploads_go_first()
    try:
        extraction = await extracting.read(context, extractor, reading, awaits_recognition=True)
    except NeedsRecognition as needed:
        if key is not None:
            return None, []
        most, numbers = context.limits.ocr_pages, needed.pages
    else:
        if not is_sure:
            web_pages.refuse_lesser_page(extraction.warnings, reading.source.warnings)
        return extraction, []
    document = replace(extracting.stored_document(context, reading), recognized={})
    async with aclosing(extractor.recognize(document, numbers[:most])) as recognized:
        pages = [*[page async for page in recognized], *over_limit(numbers[most:], most)]
    return await extracting.read(context, extractor, reading, unread=pages), pages


async def note_unchanged(context: Context, source: SourceRow, got: Fetched | NotModified) -> None:
    """Record that the URL has the same content."""

    def work(connection: Connection) -> None:
        if (found := _unchanged(connection, source)) is not None:
            fetched = replace(found, fetched=facts_of(context, got, found.fetched))
            record_try(connection, context, fetched, Outcome.UNCHANGED)

    await context.write(work)


async def note_failed(context: Context, source: SourceRow, error: Exception, *, is_by_hand: bool = False) -> None:
    """Count a try that failed. The text stays, unless its owner wants a page that is gone to be deleted."""
    reason = _explain(error)
    is_gone = isinstance(error, ServiceError) and error.details.get("http_status") in GONE_STATUSES
    if is_by_hand and (source.refresh is None or (is_gone and source.refresh["gone"])):
        # Only tries with an interval between them show that a page is gone for good.
        return
    outcome = Outcome.GONE if is_gone else Outcome.FAILED
    details = error.details if isinstance(error, ServiceError) else {}
    asked_s = min(details.get("host_retry_after_seconds", 0), LONGEST_ASKED_S)

    def work(connection: Connection) -> bool:
        found = _unchanged(connection, source)
        if found is None or not record_try(connection, context, found, outcome, reason, asked_s):
            return False
        if list_agents_of(connection, found.team_id, found.id):
            # As for anyone who deletes a source without `force`.
            return False
        delete_source(connection, context, found)
        return True

    if await context.write(work):
        context.wakes.sweeping.set()


async def postpone(context: Context, source_id: str, pause_s: float | None = PAUSE_S) -> None:
    """Try the source later, without counting a failure; never again if `pause_s` is None."""
    due_at = None if pause_s is None else context.clock.timestamp(pause_s)
    await context.write(lambda connection: postpone_refresh(connection, source_id, due_at))


def begin(
    context: Context,
    before: SourceRow,
    fresh: SourceRow,
    pages: Sequence[RecognizedPage] = (),
    key: KeyRow | None = None,
    *,
    is_queued: bool = False,
) -> Callable[[Connection], SourceRow]:
    """Return the transaction that gives the source its new content, and returns its row.

    The content's bytes must be durable. Searches find the old text until the index has the new generation. A failed
    source has no text, and is queued, or any with `is_queued`. Raises `request_in_progress` if the source has changed
    since `before`, and the errors of a `key` that may no longer change it.
    """

    def work(connection: Connection) -> SourceRow:
        if key is not None:
            get_changeable_source(connection, key, before.id)
        found = _unchanged(connection, before)
        is_swap = not is_queued and before.status == readiness.ACTIVE
        if found is None or (is_swap and (found.in_maintenance or readiness.SYNCING in found.places.values())):
            raise ServiceError(ErrorCode.REQUEST_IN_PROGRESS, f"{before.id} was just changed.", retry_after_seconds=1)
        content = {name: getattr(fresh, name) for name in ("blob", "content_type", "size_bytes", "sha256", "fetched")}
        moved = replace(after_change(context, found), **content)
        update_content(connection, moved)
        update_refresh(connection, moved)
        create_tombstone(connection, found.team_id, fresh.blob_name, None, context.clock.timestamp(), found.blob_name)
        delete_pages(connection, found.id)
        store_pages(connection, found.id, fresh.sha256, pages)
        if not is_swap:
            return requeue(connection, context, moved, key.id if key else None)
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
