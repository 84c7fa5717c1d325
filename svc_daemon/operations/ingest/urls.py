"""Imports URLs: fetches a file or a web page and stores the bytes as a source. `refreshing` fetches it again."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import cast

from svc_daemon.core import readiness
from svc_daemon.core.access.urls import naming
from svc_daemon.core.text import media_types
from svc_daemon.core.uploads import source_fields, web_pages
from svc_daemon.core.uploads.source_fields import Description
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import ServiceError
from svc_daemon.fetch.contract import Fetched, FetchFailed, NotModified, Validators
from svc_daemon.operations.ingest import files
from svc_daemon.operations.shared.destination_buckets import Destination
from svc_daemon.operations.shared.idempotency import Creation, replaying
from svc_daemon.operations.shared.response_objects import view_source
from svc_daemon.operations.shared.schedules import with_schedule
from svc_daemon.operations.sources import describe_source
from svc_daemon.process.contexts import Context
from svc_daemon.store.files.contract import StagedBytes, discarding
from svc_daemon.store.rows.keys import KeyRow
from svc_daemon.store.rows.sources.sources import SourceRow, find_page, get_source
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.light.urls import Url
from svc_daemon.wire.sources import FetchFacts, RefreshChoice, WebhookCall

_ACCEPT = {readiness.FILE: "*/*", readiness.PAGE: "text/html,application/xhtml+xml;q=0.9,*/*;q=0.5"}


async def fetch(context: Context, kind: str, url: str, staged: StagedBytes) -> Fetched:
    """Download the URL into `staged`; `kind` is `file` or `page`.

    If the fetch fails, raises `url_fetch_failed` for a file and `website_analysis_failed` for a page. Also raises
    `url_fetch_blocked` if the fetch policy refuses the URL, `file_too_large`, `empty_file` and `storage_full`.
    """
    # Never NotModified: without validators (an ETag or a date), the host always sends the content.
    return cast("Fetched", await refetch(context, kind, url, staged, None))


async def refetch(
    context: Context, kind: str, url: str, staged: StagedBytes, validators: Validators | None
) -> Fetched | NotModified:
    """Fetch the URL like `fetch`, unless the host reports that its content is unchanged."""
    with _failing_as(kind):
        got = await context.fetcher.fetch(url, staged, validators, _ACCEPT[kind])
    if isinstance(got, Fetched) and got.size_bytes == 0:
        if kind == readiness.PAGE:
            raise ServiceError(ErrorCode.WEBSITE_ANALYSIS_FAILED, "The page has no bytes.", reason="empty")
        raise ServiceError(ErrorCode.EMPTY_FILE, "The file at the URL has no bytes.")
    return got


async def judge(context: Context, kind: str, url: str) -> None:
    """Check the URL against the fetch policy, without a request; raises the errors of a refused URL."""
    with _failing_as(kind):
        await context.fetcher.check(url)


def refuse_other_kind(kind: str, staged: StagedBytes, fetched: Fetched, bucket: str) -> None:
    """Raise `url_is_web_page` if a file import got a page, or `url_is_file` if a page import got a file."""
    refuse = web_pages.refuse_file if kind == readiness.PAGE else web_pages.refuse_web_page
    refuse(staged.head, fetched.content_type, fetched.file_name, bucket)


def facts_of(context: Context, got: Fetched | NotModified, known: FetchFacts | None = None) -> FetchFacts:
    """Return what to store about a fetch, such as its time and the ETag.

    After a 304 response, the values in `known` are kept, unless the host has sent new values.
    """
    facts = FetchFacts(
        final_url=got.final_url,
        etag=got.etag,
        last_modified=got.last_modified,
        fetched_at=context.clock.timestamp(),
    )
    if known and known.get("is_swapping"):
        facts["is_swapping"] = True
    if isinstance(got, Fetched):
        facts["http_status"] = got.http_status
        return facts
    sent = {name: value for name, value in facts.items() if value is not None}
    return cast("FetchFacts", {**facts, **(known or {}), **sent})


@contextmanager
def _failing_as(kind: str) -> Iterator[None]:
    try:
        yield
    except FetchFailed as error:
        if kind != readiness.PAGE:
            raise
        raise ServiceError(ErrorCode.WEBSITE_ANALYSIS_FAILED, error.message, **error.details) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedImport(Description):
    """A URL to import, with the checked fields of its source."""

    #: `file` or `page`.
    kind: str
    url: Url
    sha256: str | None = None
    #: Whether to accept a web page in a file import, and a file in a page import.
    force: bool = False
    webhook: WebhookCall | None = None
    refresh: RefreshChoice | None = None


async def create_from_url(
    context: Context, request: Creation, destination: Destination, wanted: WantedImport
) -> Creation:
    """Import the URL into the destination's buckets, and queue the indexing of the new source.

    A repeated request gets the response of the first request. Raises ServiceError if the import is refused or fails.
    """
    async with replaying(context, request) as earlier:
        return earlier or await _take_in(context, request, destination, wanted)


async def check_import(context: Context, key: KeyRow, destination: Destination, wanted: WantedImport) -> None:
    """Check an import for a dry run, without contacting the host; raises the import's errors."""
    _check_state(context, key, destination, wanted)
    await judge(context, wanted.kind, str(wanted.url))
    await _check_webhook(context, wanted)


async def _take_in(context: Context, request: Creation, destination: Destination, wanted: WantedImport) -> Creation:
    known = context.read(lambda connection: find_scheduled(connection, request.key, destination, wanted))
    if known is not None and wanted.refresh is not None:
        source = await describe_source(context, request.key, known, {}, wanted.refresh)
        # No response is stored: to set a schedule twice is the same as once.
        return replace(request, body=view_source(source, request.key), is_new=False)
    _check_state(context, request.key, destination, wanted)
    # Refuse a full disk or an exceeded quota before contacting the host.
    await files.admit(context, request.key.team_id, size_bytes=0)
    await _check_webhook(context, wanted)
    async with discarding(context.blobs.stage()) as staged:
        fetched = await fetch(context, wanted.kind, str(wanted.url), staged)
        if not wanted.force:
            refuse_other_kind(wanted.kind, staged, fetched, destination.slug)
        await context.rate_limits.charge_bytes(request.key.team_id, staged.size_bytes)
        source = _new_source(context, request.key.team_id, wanted, (staged, fetched))

        def commit(connection: Connection) -> Creation:
            # Another request may have imported this page meanwhile.
            _refuse_known_page(connection, request.key, source.url_key)
            return files.commit_source(connection, context, request, destination, source)

        return await files.keep_source(context, staged, source, commit)


def find_scheduled(connection: Connection, key: KeyRow, destination: Destination, wanted: WantedImport) -> str | None:
    """Return the id of the page that is in the bucket already, if the import says how often to fetch it again.

    Then the import only sets the schedule of that page.
    """
    if wanted.refresh is None or wanted.kind != readiness.PAGE:
        return None
    source_id = find_page(connection, key.team_id, wanted.url.key)
    if source_id is None:
        return None
    places = get_source(connection, key.team_id, source_id).places
    return source_id if destination.ids and set(destination.ids) <= places.keys() else None


def _check_state(context: Context, key: KeyRow, destination: Destination, wanted: WantedImport) -> None:
    def work(connection: Connection) -> None:
        files.check_replaces(connection, key, destination.ids, wanted.replaces)
        if wanted.kind == readiness.PAGE:
            _refuse_known_page(connection, key, wanted.url.key)

    context.read(work)


def _refuse_known_page(connection: Connection, key: KeyRow, url_key: str | None) -> None:
    source_id = find_page(connection, key.team_id, url_key) if url_key else None
    if source_id is None:
        return
    if not key.reaches(get_source(connection, key.team_id, source_id).places):
        raise ServiceError(
            ErrorCode.WEBSITE_URL_EXISTS, "The team has this page already, but in no bucket that this key can reach."
        )
    raise ServiceError(
        ErrorCode.WEBSITE_URL_EXISTS,
        f"The team has this page already, as {source_id}; refresh that, or put it into this bucket too.",
        source_id=source_id,
    )


async def _check_webhook(context: Context, wanted: WantedImport) -> None:
    """Raise `url_fetch_blocked` if the fetch policy refuses the webhook's URL."""
    if wanted.webhook is not None:
        with naming("webhook.url"):
            await context.fetcher.check(wanted.webhook["url"])


def _new_source(context: Context, team_id: str, wanted: WantedImport, got: tuple[StagedBytes, Fetched]) -> SourceRow:
    """Build the row of the new source from the fetched bytes."""
    staged, fetched = got
    is_page = web_pages.is_web_page(staged.head, fetched.content_type, fetched.file_name)
    is_read_as_page = is_page and wanted.kind == readiness.PAGE
    filename = web_pages.page_file_name(fetched.file_name) if is_read_as_page else fetched.file_name
    most = context.limits.title_characters
    title = web_pages.page_title(staged.head, most, fetched.content_type) if is_read_as_page else None
    title = source_fields.choose_title(wanted.title or title, filename[: context.limits.title_characters])
    upload = files.FileUpload(
        filename=filename,
        content_type=media_types.detect(staged.head, filename, fetched.content_type),
        **wanted.description() | {"title": title},
        sha256=wanted.sha256,
    )
    files.check_bytes(upload, staged)
    source = replace(
        files.new_source(context, team_id, upload, size_bytes=staged.size_bytes, sha256=staged.sha256),
        type=wanted.kind,
        source_url=str(wanted.url),
        url_key=wanted.url.key if wanted.kind == readiness.PAGE else None,
        fetched=facts_of(context, fetched),
        webhook=wanted.webhook,
    )
    return with_schedule(context, source, wanted.refresh) if wanted.refresh else source
