"""Types of events. Made from `svc_daemon.wire` by `python -m tests.rules.client_types`."""

from typing import Any, Literal, TypedDict


class LogEventDict(TypedDict):
    """Something that has happened in a team."""

    id: str
    object: Literal["event"]
    type: str
    """One of `event_types.EventType`; more may be added."""
    created_at: str
    bucket_id: str | None
    """The bucket, if the event is about a single one."""
    bucket_ids: list[str] | None
    """The buckets that the event is about, as they were; null if it is about the whole team. Buckets that the key
    can't reach are left out.
    """
    source_id: str | None
    batch_id: str | None
    key_id: str | None
    """The key whose request caused the event; null if the service did it by itself, or if the key may not see it."""
    data: dict[str, Any]
    """Facts about the state after the event, such as `status`, `ready`, `title` and `error` of a source."""


class EventListDict(TypedDict):
    object: Literal["list"]
    data: list[LogEventDict]
    has_more: bool
    """Whether there are more events now."""
    last_id: str | None
    """The `after` of the next request; null if nothing has ever happened."""
    request_id: str
