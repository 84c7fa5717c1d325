"""Models of look-ups of many sources: the list of a bucket, its failures by reason and their retry, sources by ids."""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from svc_daemon.wire.requests import NoDryRunBody, Paging
from svc_daemon.wire.sources import Source, SourceMember


class BucketSources(Paging):
    bucket_id: str
    #: The bucket's `revision`. While the revision is the same, the list is the same.
    revision: int
    sources: list[SourceMember]
    request_id: str


class FailureGroup(TypedDict):
    """Failed sources of a bucket whose errors have the same code."""

    #: A `SourceErrorCode`.
    code: str
    count: int
    #: Whether another try can help any of them.
    retryable: bool
    #: How many of them another try can help.
    retryable_count: int
    #: The message of one of them.
    message: str
    #: The id of the source with this message.
    source_id: str


class BucketFailures(TypedDict):
    """A bucket's failed sources, counted by the code of their error."""

    bucket_id: str
    revision: int
    group_by: Literal["error_code"]
    #: The largest group first.
    groups: list[FailureGroup]
    #: The number of sources in all groups.
    failed: int
    request_id: str


class BucketRetry(NoDryRunBody):
    """Body of `POST /v1/buckets/{bucket}/retry`."""

    status: Literal["failed"]
    #: Only sources whose error has one of these codes.
    codes: list[Annotated[str, Field(min_length=1, max_length=64)]] | None = None


class BucketRetried(TypedDict):
    """What a retry of a bucket's failed sources did. Sent again, it queues nothing more."""

    object: Literal["bucket.retry"]
    bucket_id: str
    #: Number of sources that are indexed again.
    queued: int
    #: The number of queued sources by the code of their error.
    queued_by_code: dict[str, int]
    #: The number of sources that stay failed, since another try can't help them, by the code of their error.
    not_helped: dict[str, int]
    request_id: str


class SourceList(TypedDict):
    """The sources with the requested ids."""

    #: The existing sources, in the order of the requested ids.
    sources: list[Source]
    #: Requested ids for which there is no source.
    missing: list[str]
    #: Maps each missing id to the id of the source that replaced it, if any.
    replaced_by: dict[str, str]
    request_id: str
