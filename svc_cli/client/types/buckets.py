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
    """Changes to a bucket's chunk sizes. Omitted sizes are kept. An empty object resets all sizes to the defaults."""

    target: NotRequired[int | None]
    min: NotRequired[int | None]
    max: NotRequired[int | None]
    overlap: NotRequired[int | None]


class BucketFieldsDict(TypedDict):
    """Optional body of `PUT /v1/buckets/{slug}`, ignored if the bucket exists."""

    name: NotRequired[str | None]
    description: NotRequired[str | None]
    metadata: NotRequired[dict[str, Any]]
    chunking: NotRequired[ChunkingUpdateDict | None]


class BucketUpdateDict(TypedDict):
    """Body of `PATCH /v1/buckets/{bucket}`; omitted fields are unchanged.

    If `chunking` changes, the documents are split again in the background. An empty `chunking` restores the
    defaults.
    """

    name: NotRequired[str | None]
    description: NotRequired[str | None]
    metadata: NotRequired[dict[str, Any] | None]
    status: NotRequired[Literal["active", "archived"] | None]
    chunking: NotRequired[ChunkingUpdateDict | None]


class BucketCountsDict(TypedDict):
    """How many sources the bucket has, by type. `retrievable` counts the sources that searches can find."""

    total: int
    file: int
    intents: int
    website: int
    qa: int
    retrievable: int


class BucketStoreDict(TypedDict):
    """How many of the bucket's sources are in the search index."""

    status: str
    """`empty`, `indexing`, `active`, `degraded` or `maintenance`."""
    member_count: int
    indexed_member_count: int
    pending_member_count: int
    failed_member_count: int
    """Number of sources that could not be indexed."""
    rechunking_member_count: int
    """Number of sources whose chunks still have the previous sizes. Searches find these sources."""


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
    """Ids of the active sources, oldest first; empty if the request has `members=false`."""
    memberCount: int
    """Number of active sources."""
    counts: BucketCountsDict
    bucketStore: BucketStoreDict
    size_bytes: int
    """Total bytes of the sources' stored files. A source in two buckets counts in both."""
    revision: int
    """Incremented when the bucket's sources change."""
    lastDeleteError: str | None
    createdAt: str
    updatedAt: str


class BucketAnswerDict(BucketDict):
    request_id: str


class BucketPutAnswerDict(BucketAnswerDict):
    created: bool
    """Whether this request created the bucket."""


class DeletionDict(TypedDict):
    """Progress of a bucket's deletion. At the end, `deleted`, `detached` and `failed` add up to `total`."""

    task_id: str
    """The id of the deletion's task."""
    total: int
    """Number of sources when the deletion was requested."""
    deleted: int
    """Number of deleted sources."""
    detached: int
    """Number of sources kept because they are in other buckets too."""
    failed: int
    """Number of sources that could not be deleted. If there are any, the bucket becomes active again."""


class BucketDeletedDict(TypedDict):
    """The response to the deletion of a bucket.

    The bucket is inaccessible at once, and deleted in the background. Sources that are also in other buckets are
    kept.
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
