"""Types of buckets. Made from `svc_daemon.wire` by `python -m tests.rules.client_types`."""

from typing import Any, Literal, NotRequired, TypedDict


class ChunkingDict(TypedDict):
    """The chunk sizes for a bucket's documents, in characters.

    `min` <= `target` <= `max`, and the overlap is at most half of `min`.
    """

    target: int
    min: int
    max: int
    overlap: int


class ChunkingUpdateDict(TypedDict):
    """Changes to a bucket's chunk sizes. Omitted sizes are kept, but an empty object resets all to the defaults."""

    target: NotRequired[int | None]
    min: NotRequired[int | None]
    max: NotRequired[int | None]
    overlap: NotRequired[int | None]


class BucketFieldsDict(TypedDict):
    """Optional body of `PUT /v1/buckets/{slug}`, which is ignored if the bucket already exists."""

    name: NotRequired[str | None]
    description: NotRequired[str | None]
    metadata: NotRequired[dict[str, Any]]
    chunking: NotRequired[ChunkingUpdateDict | None]


class BucketUpdateDict(TypedDict):
    """Body of `PATCH /v1/buckets/{bucket}`; omitted fields are unchanged.

    If `chunking` changes, the documents are split into chunks again in the background; until then, searches use
    the old chunks. If `chunking` is an empty object, the default sizes are restored.
    """

    name: NotRequired[str | None]
    description: NotRequired[str | None]
    metadata: NotRequired[dict[str, Any] | None]
    status: NotRequired[Literal["active", "archived"] | None]
    chunking: NotRequired[ChunkingUpdateDict | None]


class BucketCountsDict(TypedDict):
    """Number of the bucket's sources by type, in any state.

    `retrievable` counts those that searches of the bucket can find.
    """

    total: int
    file: int
    intents: int
    website: int
    qa: int
    retrievable: int


class BucketStoreDict(TypedDict):
    """The state of the bucket in the search index."""

    status: str
    """`empty`, `indexing`, `active`, `degraded` or `maintenance`."""
    member_count: int
    indexed_member_count: int
    pending_member_count: int
    failed_member_count: int
    """Number of sources whose document could not be indexed."""
    rechunking_member_count: int
    """Number of sources that still have chunks of the previous sizes; searches find them."""


class BucketDict(TypedDict):
    id: str
    object: Literal["bucket"]
    teamId: str
    slug: str
    name: str
    description: str
    status: str
    """`active`, `archived` or `deleting`."""
    metadata: dict[str, Any]
    chunking: ChunkingDict | None
    knowledgeIds: NotRequired[list[str]]
    """Ids of the active sources, oldest first; omitted if the request has `members=false`."""
    memberCount: int
    """Number of active sources."""
    counts: BucketCountsDict
    bucketStore: BucketStoreDict
    size_bytes: int
    """Total size of the stored files of the bucket's sources, in bytes. A source in two buckets counts in both."""
    revision: int
    """Incremented whenever the sources of the bucket change."""
    lastDeleteError: str | None
    createdAt: str
    updatedAt: str


class BucketAnswerDict(BucketDict):
    request_id: str


class BucketPutAnswerDict(BucketAnswerDict):
    created: bool
    """True only in the response to the request that created the bucket."""


class DeletionDict(TypedDict):
    """Progress of a bucket's deletion. In the end, `deleted`, `detached` and `failed` add up to `total`."""

    task_id: str
    """The id of the deletion's task, whose status shows when the deletion has finished."""
    total: int
    """Number of the bucket's sources when the deletion was requested."""
    deleted: int
    """Number of sources that were deleted, because they were in no other bucket."""
    detached: int
    """Number of sources that were kept because they are also in other buckets."""
    failed: int
    """Number of sources that could not be deleted. If there are any, the bucket is active again, and shows the
    reason.
    """


class BucketDeletedDict(TypedDict):
    """The response to the deletion of a bucket.

    The bucket and the sources that are only in it can no longer be accessed; a task deletes them in the
    background.
    """

    id: str
    slug: str
    object: Literal["bucket"]
    status: Literal["deleting"]
    deletion: DeletionDict
    request_id: str


class BucketListDict(TypedDict):
    team_id: str
    buckets: list[BucketDict]
    has_more: NotRequired[bool]
    last_id: NotRequired[str | None]
    request_id: str
