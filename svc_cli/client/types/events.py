"""Types of events. Made from `svc_daemon.wire` by `python -m tests.rules.client_types`."""

from typing import Any, Literal, TypedDict


class LogEventDict(TypedDict):
    """Something that has happened in a team."""

    id: str
    object: Literal["event"]
    type: str
    """An `EventType`; later releases may add more types."""
    created_at: str
    bucket_id: str | None
    """The bucket, if the event concerns exactly one."""
    bucket_ids: list[str] | None
    """The buckets that the event concerns, as far as the key can access them. Null if it concerns the whole team."""
    source_id: str | None
    batch_id: str | None
    """The batch of the event or of its source; null if there is none, or if the key can't reach its buckets."""
    key_id: str | None
    """The key whose request caused the event; null if no request did, or if the caller may not see the key."""
    data: dict[str, Any]
    """What has changed, such as a source's new `status`, `ready`, `title` and `error`."""


class EventListDict(TypedDict):
    object: Literal["list"]
    data: list[LogEventDict]
    has_more: bool
    """Whether more events that the key may see are already stored."""
    last_id: str | None
    """A cursor: the value of `after` for the next request. Null if there are no events yet."""
    request_id: str
