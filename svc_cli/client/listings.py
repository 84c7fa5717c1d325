"""Looks things up: the lists of buckets, why sources failed, the state of the service and the watchers of folders."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from svc_cli.client.calls import Calls, part

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
