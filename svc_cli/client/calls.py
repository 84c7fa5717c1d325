"""The base class of the classes that `Client` combines, and its calls that look things up."""

import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack
from urllib.parse import quote

from svc_cli.client.transport import Reply, Request, Transport
from svc_cli.errors import UsageError

if TYPE_CHECKING:
    from svc_cli.client.types import (
        BucketFailuresDict,
        BucketRetriedDict,
        BucketSourcesDict,
        ServiceStatusDict,
        SourceFilters,
        SourceMemberDict,
        WatchedMappingDict,
        WatcherAnswerDict,
        WatcherListDict,
    )


class Calls:
    """The base class of AgentCalls and the other classes that `Client` combines.

    Its methods return Any, so that each method of the client declares its own type.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def _get(self, path: str, params: Mapping[str, str | int] | None = None) -> Any:
        return self._call("GET", path, params=params)

    def _call(self, method: str, path: str, *, params: Mapping[str, str | int] | None = None, json: Any = None) -> Any:
        return self._transport.send(Request(method=method, path=path, params=params, json=json)).body

    def _create(self, path: str, json: Any, idempotency_key: str | None) -> Reply[Any]:
        """Create a source, an upload session or a batch, within the rate limit."""
        key = key_or_random(idempotency_key)
        return self._transport.send(Request(method="POST", path=path, json=json, idempotency_key=key, is_create=True))

    def _make(self, path: str, json: Any, idempotency_key: str | None, *, dry_run: bool) -> Any:
        """Create a key or an agent; with `dry_run`, only return what would be created."""
        key, params = key_or_random(idempotency_key), {"dry_run": "true"} if dry_run else None
        request = Request(method="POST", path=path, params=params, json=json, idempotency_key=key)
        return self._transport.send(request).body


def key_or_random(idempotency_key: str | None) -> str:
    """Return the given key or a random one, so that retries create nothing twice."""
    return secrets.token_hex(16) if idempotency_key is None else idempotency_key


def part(text: str) -> str:
    """Percent-encode a path component. Raises UsageError for `.`, `..`, a slash or blank text.

    A slash can't be encoded, since servers decode `%2F`.
    """
    if "/" in text or text.strip() in {"", ".", ".."}:
        raise UsageError(f"{text!r} is neither a slug nor an id.")
    return quote(text, safe="")


#: Rows per page of a long list, the most that the API allows.
PAGE_ROWS = 1000


class ListingCalls(Calls):
    """The client's methods for lists of sources, watchers, and the state of the service."""

    def sources_page(self, bucket: str, filters: Mapping[str, str | int] | None = None) -> "BucketSourcesDict":
        """Return the sources of a bucket; with `limit`, one page of them.

        Filters are those of `sources`, `limit` and `after`. Without `status`, only ready
        sources are listed.
        """
        return self._get(f"/v1/buckets/{part(bucket)}/sources", filters)

    def sources(self, bucket: str, **filters: "Unpack[SourceFilters]") -> "Iterator[SourceMemberDict]":
        """Yield every source of a bucket that passes the filters."""
        for page in self.source_pages(bucket, filters):
            yield from page["sources"]

    def source_pages(self, bucket: str, filters: "SourceFilters") -> "Iterator[BucketSourcesDict]":
        """Like `sources`, but yield whole pages."""
        asked: dict[str, Any] = {**filters, "limit": PAGE_ROWS}
        while True:
            page = self.sources_page(bucket, asked)
            yield page
            if not page.get("has_more"):
                return
            asked["after"] = page["last_id"]

    def failures(self, bucket: str, **filters: "Unpack[SourceFilters]") -> "BucketFailuresDict":
        """Count the failed sources of a bucket by the code of their error."""
        asked: dict[str, Any] = {**filters, "group_by": "error_code"}
        return self._get(f"/v1/buckets/{part(bucket)}/sources", asked)

    def retry_failed(self, bucket: str, codes: Collection[str] | None = None) -> "BucketRetriedDict":
        """Queue all failed sources of a bucket that another try can help; with `codes`, only those with these errors.

        Calling it again queues nothing more.
        """
        body: dict[str, Any] = {"status": "failed"} | ({} if codes is None else {"codes": [*codes]})
        return self._call("POST", f"/v1/buckets/{part(bucket)}/retry", json=body)

    def status(self) -> "ServiceStatusDict":
        """Return queue, vectors, disk and troubles of the service, as far as the key may see them."""
        return self._get("/v1/status")

    def watchers(self) -> "WatcherListDict":
        """Return the watchers of folders that have reported within the last minute."""
        return self._get("/v1/watchers")

    def report_watcher(self, watcher_id: str, mappings: "Sequence[WatchedMappingDict]") -> "WatcherAnswerDict":
        """Report what a watcher watches. It is forgotten after a minute, unless it reports again."""
        return self._call("PUT", f"/v1/watchers/{part(watcher_id)}", json={"mappings": [*mappings]})
