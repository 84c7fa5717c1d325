"""Buckets on the wire (specification, Bucket): camel case where the specification has it."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

#: Lower case, digits and inner hyphens, 1 to 63 characters: an id contains `_`, so no slug can be mistaken for one.
SLUG_PATTERN = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"

Slug = Annotated[str, Field(pattern=SLUG_PATTERN)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Description = Annotated[str, Field(max_length=2000)]


class Chunking(BaseModel):
    """How documents of a bucket are cut, in characters."""

    model_config = ConfigDict(strict=True)

    target_characters: Annotated[int, Field(ge=200, le=4000)] = 950
    max_characters: Annotated[int, Field(ge=200, le=8000)] = 1100


class BucketFields(BaseModel):
    """Optional body of `PUT /v1/buckets/{slug}`; it counts only when the bucket is made."""

    model_config = ConfigDict(strict=True)

    name: Name | None = None
    description: Description | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    chunking: Chunking | None = None


class BucketCreate(BucketFields):
    """Body of `POST /v1/buckets`."""

    slug: Slug


class BucketUpdate(BaseModel):
    """Body of `PATCH /v1/buckets/{bucket}`; what is not sent stays."""

    model_config = ConfigDict(strict=True)

    name: Name | None = None
    description: Description | None = None
    metadata: dict[str, Any] | None = None
    status: Literal["active", "archived"] | None = None


class BucketCounts(BaseModel):
    """Members by kind, whatever their state; `retrievable` are those that a search of the bucket can find."""

    total: int
    file: int
    intents: int
    website: int
    qa: int
    retrievable: int


class BucketStore(BaseModel):
    """The bucket's part of the search index."""

    #: `empty`, `indexing`, `active`, `degraded` or `maintenance`.
    status: str
    member_count: int
    indexed_member_count: int
    pending_member_count: int


class Bucket(BaseModel):
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
    #: Active members, oldest first.
    knowledgeIds: list[str]
    #: How many ids `knowledgeIds` holds.
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
    #: True for the one call that made the bucket.
    created: bool


class BucketList(BaseModel):
    team_id: str
    buckets: list[Bucket]
    has_more: bool | None = None
    last_id: str | None = None
    request_id: str
