"""Buckets on the wire (specification, Bucket): camel case where the specification has it."""

from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from svc_daemon.wire.models import WireModel
from svc_daemon.wire.requests import NoDryRunBody, RequestBody

#: Lower case, digits and inner hyphens, 1 to 63 characters: an id contains `_`, so no slug can be mistaken for one.
SLUG_PATTERN = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"

Slug = Annotated[str, Field(pattern=SLUG_PATTERN)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Description = Annotated[str, Field(max_length=2000)]
PieceSize = Annotated[int, Field(ge=100, le=8000)]
Overlap = Annotated[int, Field(ge=0, le=4000)]


class Chunking(RequestBody):
    """Chunk sizes of a bucket's documents in characters: `min` <= `target` <= `max`, overlap at most half of `min`."""

    #: A size under another name would have all documents cut again, and not as was meant.
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


class ChunkingUpdate(RequestBody):
    """Some sizes of a bucket's chunking; the others stay as they are. None at all are the default's."""

    model_config = ConfigDict(extra="forbid")

    target: PieceSize | None = None
    min: PieceSize | None = None
    max: PieceSize | None = None
    overlap: Overlap | None = None


class BucketFields(RequestBody):
    """Optional body of `PUT /v1/buckets/{slug}`; it counts only when the bucket is made."""

    name: Name | None = None
    description: Description | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    chunking: Chunking | None = None
    #: Only validate: nothing is made, no key is claimed.
    dry_run: bool = False


class BucketCreate(BucketFields):
    """Body of `POST /v1/buckets`."""

    slug: Slug


class BucketUpdate(NoDryRunBody):
    """Body of `PATCH /v1/buckets/{bucket}`; omitted fields stay unchanged.

    Another `chunking` cuts the documents again in the background, while the old pieces answer; `{}` is the default's.
    """

    name: Name | None = None
    description: Description | None = None
    metadata: dict[str, Any] | None = None
    status: Literal["active", "archived"] | None = None
    chunking: ChunkingUpdate | None = None


class BucketCounts(WireModel):
    """Members by kind, whatever their state; `retrievable` counts those that a search of the bucket can find."""

    total: int
    file: int
    intents: int
    website: int
    qa: int
    retrievable: int


class BucketStore(WireModel):
    """The bucket's part of the search index."""

    #: `empty`, `indexing`, `active`, `degraded` or `maintenance`.
    status: str
    member_count: int
    indexed_member_count: int
    pending_member_count: int
    #: Members whose document could not be indexed.
    failed_member_count: int
    #: Members still chunked with earlier sizes; searches still find them.
    rechunking_member_count: int


class Bucket(WireModel):
    id: str
    object: Literal["bucket"] = "bucket"
    teamId: str
    slug: str
    name: str
    description: str
    #: `active`, `archived` or `deleting`.
    status: str
    metadata: dict[str, Any]
    chunking: Chunking | None
    #: Active members, oldest first; left out with `members=false`.
    knowledgeIds: list[str] = Field(default_factory=list)
    #: How many active members there are.
    memberCount: int
    counts: BucketCounts
    bucketStore: BucketStore
    #: Changes with every change of membership.
    revision: int
    lastDeleteError: str | None
    createdAt: str
    updatedAt: str


class BucketAnswer(Bucket):
    request_id: str


class BucketPutAnswer(BucketAnswer):
    #: True only in the response to the request that created the bucket.
    created: bool


class Deletion(WireModel):
    """Progress of a bucket's deletion. The three counts add up to `total` when it has finished."""

    #: The task that shows when the deletion has finished.
    task_id: str
    #: Number of members when the deletion was requested.
    total: int
    #: Sources that were in no other bucket and have been deleted.
    deleted: int
    #: Sources that stay in another bucket.
    detached: int
    #: Sources that could not be deleted; the bucket is active again then, and shows why.
    failed: int


class BucketDeleted(WireModel):
    """The bucket and what is in it alone are out of reach from this answer on; a task removes them."""

    id: str
    slug: str
    object: Literal["bucket"] = "bucket"
    status: Literal["deleting"] = "deleting"
    deletion: Deletion
    request_id: str


class BucketList(WireModel):
    team_id: str
    buckets: list[Bucket]
    has_more: bool | None = None
    last_id: str | None = None
    request_id: str
