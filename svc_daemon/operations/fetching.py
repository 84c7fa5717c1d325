"""Fetching for sources: what a door asks of `fetch`, the codes it answers with, and the facts that are kept.

A file that can't be fetched is `url_fetch_failed`, a page `website_analysis_failed`; what the policy refuses is
`url_fetch_blocked` at both doors.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from svc_daemon.core import pages, readiness
from svc_daemon.errors import ServiceError
from svc_daemon.fetch.downloads import Fetched, NotModified, Validators
from svc_daemon.fetch.failures import FetchFailed
from svc_daemon.operations.contexts import Context
from svc_daemon.store.blobs import StagedFile
from svc_daemon.wire.codes import ErrorCode

_ACCEPT = {readiness.FILE: "*/*", readiness.PAGE: "text/html,application/xhtml+xml;q=0.9,*/*;q=0.5"}


async def fetch(context: Context, kind: str, url: str, staged: StagedFile) -> Fetched:
    """Get the URL into `staged` for a source of this kind, `file` or `page`.

    Raises `url_fetch_blocked`, `url_fetch_failed` or `website_analysis_failed`, `file_too_large`, `storage_full`, and
    `empty_file` for a file without bytes.
    """
    # Without validators nothing can be unchanged.
    return cast("Fetched", await refetch(context, kind, url, staged, None))


async def refetch(
    context: Context, kind: str, url: str, staged: StagedFile, validators: Validators | None
) -> Fetched | NotModified:
    """The same, where the host may say that nothing has changed since the fetch of the validators."""
    with _failing_as(kind):
        got = await context.fetcher.fetch(url, staged, validators, _ACCEPT[kind])
    if isinstance(got, Fetched) and got.size_bytes == 0:
        raise _empty(kind)
    return got


async def judge(context: Context, kind: str, url: str) -> None:
    """What the policy says of the URL, without a request to it; raises as `fetch` does."""
    with _failing_as(kind):
        await context.fetcher.check(url)


def refuse_other_kind(kind: str, staged: StagedFile, fetched: Fetched, bucket: str) -> None:
    """Raises `url_is_web_page` for a page at the door for files, and `url_is_file` the other way round."""
    refuse = pages.refuse_file if kind == readiness.PAGE else pages.refuse_web_page
    refuse(staged.head, fetched.content_type, fetched.file_name, bucket)


def facts_of(context: Context, got: Fetched | NotModified, known: dict[str, Any] | None = None) -> dict[str, Any]:
    """What is kept of a fetch; what an answer without a body doesn't say again stays `known`."""
    told = {"final_url": got.final_url, "etag": got.etag, "last_modified": got.last_modified}
    if isinstance(got, Fetched):
        return {**told, "http_status": got.http_status, "fetched_at": context.clock.timestamp()}
    said = {name: value for name, value in told.items() if value is not None}
    return {**(known or {}), **said, "fetched_at": context.clock.timestamp()}


@contextmanager
def _failing_as(kind: str) -> Iterator[None]:
    try:
        yield
    except FetchFailed as error:
        if kind != readiness.PAGE:
            raise
        raise ServiceError(ErrorCode.WEBSITE_ANALYSIS_FAILED, error.message, **error.details) from error


def _empty(kind: str) -> ServiceError:
    if kind == readiness.PAGE:
        return ServiceError(ErrorCode.WEBSITE_ANALYSIS_FAILED, "The page has no bytes.", reason="empty")
    return ServiceError(ErrorCode.EMPTY_FILE, "The file at the URL has no bytes.")
