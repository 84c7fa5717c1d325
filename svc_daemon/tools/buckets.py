"""`svc-list-buckets`: where files can go, and what can be searched."""

from typing import Annotated

from pydantic import Field

from svc_daemon.tools.api_calls import Call, ToolService
from svc_daemon.tools.arguments import Arguments, ToolResult


class ListBuckets(Arguments):
    """Arguments of `svc-list-buckets`."""

    limit: Annotated[int, Field(ge=1, le=1000)] = Field(100, description="Most buckets to list.")
    after: str = Field("", description="The last_id of the list before, to go on behind it.")


class BucketFacts(ToolResult):
    """One bucket."""

    id: str
    slug: str
    name: str
    description: str
    #: Sources that searches find.
    retrievable: int
    #: Sources in all, whatever their state.
    total: int
    #: `empty`, `indexing`, `active`, `degraded` or `maintenance`.
    index_status: str

    def text(self) -> str:
        """The result in a line."""
        named = f"{self.slug} ({self.id})" + (f", {self.name}" if self.name != self.slug else "")
        about = f": {self.description}" if self.description else ""
        return f"{named}: {self.retrievable} of {self.total} sources can be searched{about}"


class BucketPage(ToolResult):
    """Buckets that the key reaches, without archived ones."""

    buckets: list[BucketFacts]
    has_more: bool
    last_id: str | None

    def text(self) -> str:
        """The result in lines."""
        if not self.buckets:
            return "There is no bucket."
        more = [f"There are more: call again with after={self.last_id}."] if self.has_more else []
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
