"""`svc-list-buckets`: lists the buckets that can be searched or uploaded to."""

from typing import Annotated

from pydantic import Field

from svc_daemon.tools.api_calls import Call, ToolService
from svc_daemon.tools.arguments import Arguments, ToolResult


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
        about = f": {self.description}" if self.description else ""
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
