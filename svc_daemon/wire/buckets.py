"""Models of buckets. Some fields are in camel case, as in the specification."""

from collections.abc import Callable
from typing import Annotated, Any, Literal, NotRequired, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator
from typing_extensions import TypedDict

from svc_daemon.wire.light.names import find_fault_of_name, find_fault_of_text
from svc_daemon.wire.requests import NoDryRunBody, Paging, RequestBody

#: 1 to 63 lowercase letters, digits and inner hyphens. A bucket id contains `_`, so no slug looks like an id.
SLUG_PATTERN = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"


def _refusing(find_fault: Callable[[str], str | None]) -> Callable[[str], str]:
    """Return a validator that raises ValueError with the fault that `find_fault` returns."""

    def check(text: str) -> str:
        if fault := find_fault(text):
            raise ValueError(fault)
        return text

    return check


Slug = Annotated[str, Field(pattern=SLUG_PATTERN)]
Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_refusing(find_fault_of_name))]
Description = Annotated[str, Field(max_length=2000), AfterValidator(_refusing(find_fault_of_text))]
PieceSize = Annotated[int, Field(ge=100, le=8000)]
Overlap = Annotated[int, Field(ge=0, le=4000)]


class Chunking(RequestBody):
    """The chunk sizes for a bucket's documents, in characters.

    `min` <= `target` <= `max`, and the overlap is at most half of `min`.
    """

    #: Unknown fields are refused, because a misspelled size must not be ignored.
    model_config = ConfigDict(extra="forbid")

    target: PieceSize = 1000
    min: PieceSize = 800
    max: PieceSize = 1100
    overlap: Overlap = 0

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not self.min <= self.target <= self.max:
            raise ValueError("min <= target <= max must hold")
        if self.overlap > self.min // 2:
            raise ValueError("overlap must be at most half of min")
        return self

    def sizes(self) -> "ChunkSizes":
        return {"target": self.target, "min": self.min, "max": self.max, "overlap": self.overlap}


class ChunkingUpdate(RequestBody):
    """Changes to a bucket's chunk sizes. Omitted sizes are kept. An empty object resets all sizes to the defaults."""

    model_config = ConfigDict(extra="forbid")

    target: PieceSize | None = None
    min: PieceSize | None = None
    max: PieceSize | None = None
    overlap: Overlap | None = None


class BucketFields(RequestBody):
    """Optional body of `PUT /v1/buckets/{slug}`, ignored if the bucket exists."""

    name: Name | None = None
    description: Description | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    chunking: Chunking | None = None
    #: Only validate the request; nothing is created.
    dry_run: bool = False


class BucketCreate(BucketFields):
    """Body of `POST /v1/buckets`."""

    slug: Slug


class BucketUpdate(NoDryRunBody):
    """Body of `PATCH /v1/buckets/{bucket}`; omitted fields are unchanged.

    If `chunking` changes, the documents are split again in the background. An empty `chunking` restores the defaults.
    """

    name: Name | None = None
    description: Description | None = None
    metadata: dict[str, Any] | None = None
    status: Literal["active", "archived"] | None = None
    chunking: ChunkingUpdate | None = None


class ChunkSizes(TypedDict):
    """The chunk sizes for the bucket's documents, in characters."""

    target: int
    min: int
    max: int
    overlap: int


class BucketCounts(TypedDict):
    """How many sources the bucket has, by type. `retrievable` counts the sources that searches can find."""

    total: int
    file: int
    intents: int
    website: int
    qa: int
    retrievable: int


class BucketStore(TypedDict):
    """How many of the bucket's sources are in the search index."""

    #: `empty`, `indexing`, `active`, `degraded` or `maintenance`.
    status: str
    member_count: int
    indexed_member_count: int
    pending_member_count: int
    #: Number of sources that could not be indexed.
    failed_member_count: int
    #: Number of sources whose chunks still have the previous sizes. Searches find these sources.
    rechunking_member_count: int
    #: Number of sources whose text an older version of svc has read. They are read again in the background.
    older_reader_member_count: int
    #: Number of sources that keep themselves up to date and could not: their last refresh failed.
    stale_member_count: int
    #: Number of sources that wait until text is recognised on their pages, and how many pages these are; left out if
    #: there are none.
    scan_member_count: NotRequired[int]
    scan_pages_left: NotRequired[int]
    #: Number of failed sources whose text may be in pictures: `svc source retry --ocr` reads them; left out if 0.
    unread_scan_member_count: NotRequired[int]


class Bucket(TypedDict):
    id: str
    object: Literal["bucket"]
    teamId: str
    slug: str
    name: str
    description: str
    #: `active`, `archived` or `deleting`.
    status: str
    metadata: dict[str, Any]
    chunking: ChunkSizes | None
    #: Ids of the active sources, oldest first; missing if the request has `members=false`.
    knowledgeIds: NotRequired[list[str]]
    #: Number of active sources.
    memberCount: int
    counts: BucketCounts
    bucketStore: BucketStore
    #: Total bytes of the sources' stored files. A source in two buckets counts in both.
    bytes: int
    #: Incremented when the bucket's sources change.
    revision: int
    lastDeleteError: str | None
    createdAt: str
    updatedAt: str


class BucketAnswer(Bucket):
    request_id: str


class BucketPutAnswer(BucketAnswer):
    #: Whether this request created the bucket.
    created: bool


class Deletion(TypedDict):
    """Progress of a bucket's deletion. At the end, `deleted`, `detached` and `failed` add up to `total`."""

    #: The id of the deletion's task.
    task_id: str
    #: Number of sources when the deletion was requested.
    total: int
    #: Number of deleted sources.
    deleted: int
    #: Number of sources kept because they are in other buckets too.
    detached: int
    #: Number of sources that could not be deleted. If there are any, the bucket becomes active again.
    failed: int


class BucketDeleted(TypedDict):
    """The response to the deletion of a bucket.

    The bucket is inaccessible at once, and deleted in the background. Sources that are also in other buckets are kept.
    """

    id: str
    slug: str
    object: Literal["bucket"]
    status: Literal["deleting"]
    deletion: Deletion
    request_id: str


class BucketList(Paging):
    team_id: str
    buckets: list[Bucket]
    request_id: str
