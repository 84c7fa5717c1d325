"""Imports URLs into a bucket; the service fetches them.

A URL that already has a source in the bucket is not fetched again, unless a refresh is requested.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Literal

from svc_cli.client.api import Client
from svc_cli.client.imports import ImportKind, ImportRequest, import_key
from svc_cli.client.new_files import lacks
from svc_cli.client.transport import Reply
from svc_cli.errors import ApiError, SvcError
from svc_cli.transfer.reports import ReportItem
from svc_cli.transfer.transfers import MOST_EPOCHS, stops_everything, too_many_epochs
from svc_daemon.wire import JsonMapping
from svc_daemon.wire.light.urls import normal_url

if TYPE_CHECKING:
    from svc_cli.client.types import SourceAnswerDict

Kind = Literal["auto", "file", "page"]

#: The path of a URL.
_PATH = re.compile(r"\w+://[^/?#]*([^?#]*)")
#: How the paths of most web pages end.
_PAGE_ENDINGS = frozenset({"", ".asp", ".aspx", ".htm", ".html", ".jsp", ".php", ".shtml", ".xhtml"})
#: What the URL is, by the code of the refusal.
_OTHER_KINDS: Mapping[str, Kind] = {"url_is_web_page": "page", "url_is_file": "file"}
#: The user and the password before a host, which are refused.
_USERINFO = re.compile(r"(?:(?<=//)|^(?!\w+://))[^/?#]+(?=@)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """The URLs to import, and the options that apply to all of them."""

    urls: tuple[str, ...]
    #: The slug or id of the bucket; its id once it is known.
    bucket: str
    kind: Kind
    #: The fields of each request, except for its `url`.
    pattern: ImportRequest
    #: Whether to fetch URLs again that already have a source.
    is_refresh: bool
    wait: Literal["ready", "accepted"]
    timeout_s: float | None
    no_create: bool
    is_dry: bool


def without_password(url: str) -> str:
    """Return the address as reports show it."""
    return _USERINFO.sub("***", url)


def sources_by_url(sources: Iterable[JsonMapping], urls: Iterable[str]) -> dict[str, JsonMapping]:
    """Map each of the URLs, however it is spelled, to the newest source that was imported from it."""
    known = {normal_url(source["source_url"]): source for source in sources if source.get("source_url")}
    spellings = {url: normal_url(url) for url in urls}
    return {url: known[normal] for url, normal in spellings.items() if normal in known}


def import_one(client: Client, url: str, known: Mapping[str, JsonMapping], options: ImportOptions) -> ReportItem:
    """Import one URL. Raises SvcError only for errors that affect every URL."""
    item = ReportItem(path=without_password(url), action="created")
    try:
        if (source := known.get(url)) is not None:
            _take_known(client, source, item, options)
        else:
            _import(client, replace(options.pattern, url=url), item, options)
    except SvcError as error:
        if stops_everything(error):
            raise
        item.refuse(error)
    return item


def _take_known(client: Client, source: JsonMapping, item: ReportItem, options: ImportOptions) -> None:
    """Keep the existing source of a URL, or fetch it again, and say if it stays without what was given for it."""
    _fetch_again(client, source, item, options)
    wanted = options.pattern
    if wanted.webhook is not None:
        item.warnings.append("its webhook is not called, since the bucket has it already.")
    if lacks(source, wanted.tags, wanted.metadata) or wanted.title not in (None, source["title"]):
        item.warnings.append(
            f"its title, tags and metadata stay as they are; `svc source set {source['id']}` sets them."
        )


def _fetch_again(client: Client, source: JsonMapping, item: ReportItem, options: ImportOptions) -> None:
    """Refresh or retry the existing source of a URL, or leave it unchanged. Set its schedule, if one is given."""
    if options.pattern.refresh is not None and not options.is_dry:
        source = client.update_source(source["id"], refresh=options.pattern.refresh)
    if options.is_refresh:
        item.action = "refreshed"
        if options.is_dry:
            item.source_id = source["id"]
            return
        reply = client.refresh_source(source["id"], force=options.pattern.force)
        item.action = "refreshed" if reply["changed"] else "unchanged"
        item.follow(reply)
    elif source["status"] == "failed":
        item.action = "retried"
        item.follow(source if options.is_dry else client.retry_source(source["id"]))
    else:
        item.action = "unchanged"
        item.follow(source)


def _import(client: Client, wanted: ImportRequest, item: ReportItem, options: ImportOptions) -> None:
    """Import a new URL as a file or a web page; if the kind is `auto`, the service decides.

    What is of the other kind than its URL looks like is fetched twice.
    """
    path = _PATH.match(wanted.url)
    is_likely_page = PurePosixPath(path[1] if path else "").suffix.lower() in _PAGE_ENDINGS
    kind = options.kind if options.kind != "auto" else "page" if is_likely_page else "file"
    try:
        source = _create(client, wanted, kind, options, item)
    except ApiError as error:
        if error.code in _OTHER_KINDS and options.kind == "auto":
            _import(client, wanted, item, replace(options, kind=_OTHER_KINDS[error.code]))
            return
        if error.code != "website_url_exists":
            raise
        # The page already has a source, perhaps under another spelling of its URL or in another bucket.
        if (source_id := error.details.get("source_id")) is None:
            # It is in no bucket that this key can reach.
            item.conflict(None, error.body())
            return
        source = client.source(str(source_id))
        if options.bucket in source["bucket_ids"]:
            _take_known(client, source, item, options)
            return
        hint = f"`svc source attach {source['id']} -b BUCKET` puts it into this bucket too."
        item.conflict(source["id"], {**error.body(), "hint": hint})
        return
    if source is not None:
        item.follow(source)
        if wanted.refresh is not None and wanted.refresh["every_seconds"] and not source.get("refresh"):
            item.warnings.append("it is not fetched again by itself: the service is older than `svc`.")


def _create(
    client: Client, wanted: ImportRequest, kind: ImportKind, options: ImportOptions, item: ReportItem
) -> JsonMapping | None:
    """Create the source for a URL; returns None in a dry run."""
    if options.is_dry:
        client.import_url(options.bucket, wanted, kind=kind, dry_run=True)
        return None

    def send(epoch: int) -> "Reply[SourceAnswerDict]":
        key = import_key(options.bucket, wanted, kind, epoch)
        reply = client.import_url(options.bucket, wanted, kind=kind, idempotency_key=key)
        if reply.status == HTTPStatus.OK and not reply.is_replay:
            # The bucket has the page under another spelling of its URL, and only its schedule was set.
            item.action = "unchanged"
        return reply

    return create_once(client, options.bucket, send)


def create_once(client: Client, bucket_id: str, send: "Callable[[int], Reply[SourceAnswerDict]]") -> JsonMapping:
    """Create a source, or return the one that an earlier run created.

    `send` must put its argument, a counter, into the idempotency key. If the earlier source was removed from the
    bucket, `send` is called again with the next number.
    """
    for epoch in range(MOST_EPOCHS):
        reply = send(epoch)
        if not reply.is_replay:
            return reply.body
        try:
            source = client.source(reply.body["id"])
        except ApiError as error:
            if error.code != "source_not_found":
                raise
            continue
        if bucket_id in source["bucket_ids"]:
            return source
    raise too_many_epochs()
