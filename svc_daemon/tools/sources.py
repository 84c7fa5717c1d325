"""`svc-list-buckets` lists the buckets that can be used; `svc-source-status` reports whether sources are searchable."""

import asyncio
from typing import Annotated

from pydantic import Field

from svc_daemon.tools.api_calls import Call, ToolService, part, refused
from svc_daemon.tools.arguments import Arguments, ToolResult
from svc_daemon.wire import Json
from svc_daemon.wire.sources import SourceError


class ListBuckets(Arguments):
    """Arguments of `svc-list-buckets`."""

    limit: Annotated[int, Field(ge=1, le=1000)] = Field(100, description="Maximum number of buckets to list.")
    after: str = Field("", description="To get the next page: the last_id of the previous page.")


class BucketFacts(ToolResult):
    """A bucket in the list, with its source counts."""

    id: str
    slug: str
    name: str
    description: str
    #: Number of sources that searches can find.
    retrievable: int
    #: Number of sources in any state.
    total: int
    #: `empty`, `indexing`, `active`, `degraded` or `maintenance`.
    index_status: str

    def text(self) -> str:
        """Format the bucket as one line."""
        named = f"{self.slug} ({self.id})" + (f", {self.name}" if self.name != self.slug else "")
        about = f": {' '.join(self.description.split())}" if self.description else ""
        return f"{named}: {self.retrievable} of {self.total} sources can be searched{about}"


class BucketPage(ToolResult):
    """A page of the buckets that the key may access, without archived ones."""

    buckets: list[BucketFacts]
    has_more: bool
    last_id: str | None

    def text(self) -> str:
        """Format the result as several lines."""
        if not self.buckets:
            return "There is no bucket."
        more = [f"There are more buckets: call again with after={self.last_id}."] if self.has_more else []
        return "\n".join([*(bucket.text() for bucket in self.buckets), *more])


async def list_buckets(service: ToolService, asked: ListBuckets) -> BucketPage:
    """List the buckets. Raises CallFailed."""
    query = {"members": "false", "limit": str(asked.limit), **({"after": asked.after} if asked.after else {})}
    page = (await service.call(Call(method="GET", path="/v1/buckets", query=query))).body
    return BucketPage(
        buckets=[
            BucketFacts(
                **bucket,
                retrievable=bucket["counts"]["retrievable"],
                total=bucket["counts"]["total"],
                index_status=bucket["bucketStore"]["status"],
            )
            for bucket in page["buckets"]
        ],
        has_more=bool(page.get("has_more")),
        last_id=page.get("last_id"),
    )


#: Maximum seconds to wait. Many clients time out after 60.
LONGEST_WAIT_S = 50
FIRST_PAUSE_S = 0.02
LONGEST_PAUSE_S = 1.0
MOST_SOURCES = 100


class SourceStatus(Arguments):
    """Arguments of `svc-source-status`."""

    source_id: str = Field("", description="The id of the source (src_…), from an upload or a search result.")
    source_ids: Annotated[list[str], Field(max_length=MOST_SOURCES)] = Field(
        default_factory=list, description="Ids of several sources; use it instead of sourceId."
    )
    wait_seconds: Annotated[float, Field(ge=0, le=LONGEST_WAIT_S)] = Field(
        0,
        description="Wait up to this many seconds until all sources are ready or failed. Call again if necessary.",
    )


class SourceState(ToolResult):
    """A source and its indexing state."""

    source_id: str
    #: `queued`, `indexing`, `active` or `failed`.
    status: str
    #: Whether searches find the source.
    ready: bool
    #: The error code of searches, if a rebuild of the index keeps the source from being `ready`. Otherwise null.
    ready_withheld_by: str | None
    title: str
    filename: str
    content_type: str
    size_bytes: int
    bucket_ids: list[str]
    #: Why indexing failed; null if indexing didn't fail.
    error: SourceError | None
    #: What could not be extracted, such as pages without text.
    warnings: list[str]
    #: Number of pages; null if the number is unknown or the document has no pages.
    pages: int | None

    @property
    def is_settled(self) -> bool:
        """Whether waiting is useless, because the source is ready, has failed, or is in no bucket."""
        return self.ready or self.status == "failed" or not self.bucket_ids

    def text(self) -> str:
        """Format the result as several lines."""
        state = "ready: searches find it" if self.ready else f"not ready: {self.status}"
        lines = [f"{self.filename} ({self.source_id}) is {state}."]
        lines += [f"It failed with {self.error['code']}: {self.error['message']}"] if self.error else []
        return "\n".join([*lines, *(f"Warning: {warning}" for warning in self.warnings)])


class SourceStates(ToolResult):
    """The states of the sources, in the order of the request."""

    #: Whether all sources are ready.
    ready: bool
    #: Whether waiting is useless, since each source is ready, has failed or is in no bucket.
    settled: bool
    sources: list[SourceState]

    def text(self) -> str:
        """Format the result as several lines."""
        lines = [source.text() for source in self.sources]
        return "\n".join(lines if self.settled else [*lines, "Call again with waitSeconds to wait for the rest."])


def fields_of(source: Json) -> Json:
    """Extract the fields of a SourceState from a source of the API."""
    extraction = source["extraction"] or {}
    return {**source, "source_id": source["id"], "pages": extraction.get("pages")}


async def show_sources(service: ToolService, asked: SourceStatus) -> SourceStates:
    """Wait for the sources as requested, and return their states. Raises CallFailed `source_not_found`."""
    source_ids = asked.source_ids or [asked.source_id]
    if not all(source_ids) or (asked.source_ids and asked.source_id):
        raise refused(("sourceId", "Name one source here, or several in sourceIds."))
    clock = asyncio.get_running_loop().time
    end_s, pause_s = clock() + asked.wait_seconds, FIRST_PAUSE_S
    seen = await _look(service, source_ids)
    while not seen.settled and (left_s := end_s - clock()) > 0:
        await service.pause(min(pause_s, left_s))
        pause_s = min(LONGEST_PAUSE_S, pause_s * 1.5)
        seen = await _look(service, source_ids)
    return seen


async def _look(service: ToolService, source_ids: list[str]) -> SourceStates:
    found = [await service.call(Call(method="GET", path=f"/v1/sources/{part(each)}")) for each in source_ids]
    sources = [SourceState(**fields_of(answer.body)) for answer in found]
    return SourceStates(
        ready=all(source.ready for source in sources),
        settled=all(source.is_settled for source in sources),
        sources=sources,
    )
