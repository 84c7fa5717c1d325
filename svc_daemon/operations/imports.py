"""Taking URLs in, as files or as web pages: replay by key alone, then the gates, then the fetch, then as any file.

The key is held while the URL is fetched, so that a retry that comes too early hears `request_in_progress`. Nothing is
stored before the last byte is there.
"""

from dataclasses import dataclass, field, replace
from sqlite3 import Connection
from typing import Any

from svc_daemon.core import media_types, pages, readiness
from svc_daemon.core.urls import Url
from svc_daemon.errors import ServiceError
from svc_daemon.fetch.downloads import Fetched
from svc_daemon.operations.contexts import Context
from svc_daemon.operations.destinations import Destination
from svc_daemon.operations.fetching import facts_of, fetch, judge, refuse_other_kind
from svc_daemon.operations.ingest import (
    FileUpload,
    admit,
    check_bytes,
    check_replaces,
    commit_source,
    keep_source,
    new_source,
)
from svc_daemon.operations.replays import Outcome, Repeatable, replaying
from svc_daemon.store.blobs import StagedFile
from svc_daemon.store.keys import Key
from svc_daemon.store.sources import Source, find_page
from svc_daemon.wire.codes import ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlImport:
    """A URL to take in, with its fields already checked."""

    #: `file` or `page`.
    kind: str
    url: Url
    #: What the file or the page calls itself, where it is None.
    title: str | None = None
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    mapping: str | None = None
    replaces: str | None = None
    sha256: str | None = None
    #: Take it whatever it turns out to be.
    force: bool = False
    #: `url` and `metadata` of whom to tell.
    webhook: dict[str, Any] | None = None


async def create_from_url(
    context: Context, request: Repeatable, destination: Destination, wanted: UrlImport
) -> Outcome:
    """Fetch the URL into its buckets and queue its indexing; the answer is the source, or that of the first request.

    Raises the replay errors, the gates' errors, what `fetching.fetch` raises, `url_is_web_page` and `url_is_file`,
    `website_url_exists`, and what a one-call upload raises.
    """
    with replaying(context, request) as earlier:
        return earlier or await _take_in(context, request, destination, wanted)


async def check_import(context: Context, key: Key, destination: Destination, wanted: UrlImport) -> None:
    """Everything that can be told without asking the URL's host; raises as the create does."""
    _check_state(context, key, destination, wanted)
    await judge(context, wanted.kind, str(wanted.url))
    await _check_webhook(context, wanted)


async def _take_in(context: Context, request: Repeatable, destination: Destination, wanted: UrlImport) -> Outcome:
    _check_state(context, request.key, destination, wanted)
    # How much it is shows later; whether anything may be taken in at all is asked before another host is.
    admit(context, request.key.team_id, size_bytes=0)
    await _check_webhook(context, wanted)
    staged = context.blobs.stage()
    try:
        fetched = await _fetch(context, destination, wanted, staged)
        context.gates.charge_bytes(request.key.team_id, staged.size_bytes)
        source = _new_source(context, request.key, wanted, (staged, fetched))
        with context.gates.uploading():
            return await keep_source(
                context, staged, source, lambda connection: _commit(connection, context, request, destination, source)
            )
    finally:
        await staged.discard()


def _check_state(context: Context, key: Key, destination: Destination, wanted: UrlImport) -> None:
    def work(connection: Connection) -> None:
        check_replaces(connection, key, destination.ids, wanted.replaces)
        if wanted.kind == readiness.PAGE:
            _refuse_known_page(connection, key.team_id, wanted.url.key)

    context.read(work)


def _refuse_known_page(connection: Connection, team_id: str, url_key: str | None) -> None:
    source_id = find_page(connection, team_id, url_key) if url_key else None
    if source_id is not None:
        raise ServiceError(
            ErrorCode.WEBSITE_URL_EXISTS,
            f"The team has this page already, as {source_id}; refresh that, or put it into this bucket too.",
            source_id=source_id,
        )


async def _check_webhook(context: Context, wanted: UrlImport) -> None:
    """A webhook that could never be called is told now."""
    if wanted.webhook is not None:
        await context.fetcher.check(wanted.webhook["url"])


async def _fetch(context: Context, destination: Destination, wanted: UrlImport, staged: StagedFile) -> Fetched:
    fetched = await fetch(context, wanted.kind, str(wanted.url), staged)
    if not wanted.force:
        refuse_other_kind(wanted.kind, staged, fetched, destination.slug)
    return fetched


def _commit(
    connection: Connection, context: Context, request: Repeatable, destination: Destination, source: Source
) -> Outcome:
    """The same page may have come in while this one was fetched."""
    _refuse_known_page(connection, source.team_id, source.url_key)
    return commit_source(connection, context, request, destination, source)


def _new_source(context: Context, key: Key, wanted: UrlImport, got: tuple[StagedFile, Fetched]) -> Source:
    staged, fetched = got
    upload = _upload(context, wanted, staged, fetched)
    check_bytes(upload, staged)
    return replace(
        new_source(context, key, upload, staged),
        type=wanted.kind,
        source_url=str(wanted.url),
        url_key=wanted.url.key if wanted.kind == readiness.PAGE else None,
        fetched=facts_of(context, fetched),
        webhook=wanted.webhook,
    )


def _upload(context: Context, wanted: UrlImport, staged: StagedFile, fetched: Fetched) -> FileUpload:
    """The fetched bytes as the upload that they might have been."""
    is_page = pages.is_web_page(staged.head, fetched.content_type, fetched.file_name)
    is_read_as_page = is_page and wanted.kind == readiness.PAGE
    filename = pages.page_file_name(fetched.file_name) if is_read_as_page else fetched.file_name
    told = pages.page_title(staged.head, context.limits.title_characters) if is_read_as_page else None
    return FileUpload(
        filename=filename,
        content_type=media_types.detect(staged.head, filename, fetched.content_type),
        title=wanted.title or told or filename[: context.limits.title_characters],
        tags=wanted.tags,
        metadata=wanted.metadata,
        mapping=wanted.mapping,
        replaces=wanted.replaces,
        sha256=wanted.sha256,
    )
