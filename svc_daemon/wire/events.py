"""Models of the event log, which lists what has happened in a team, in commit order."""

from typing import Any, Literal

from svc_daemon.wire.models import WireModel


class LogEvent(WireModel):
    """Something that has happened in a team."""

    id: str
    object: Literal["event"] = "event"
    #: One of the types in `event_types.EventType`; later releases may add more.
    type: str
    created_at: str
    #: The bucket, if the event concerns exactly one.
    bucket_id: str | None = None
    #: The buckets that the event concerned at the time, without those that the key may not access; null if the event
    #: concerns the whole team.
    bucket_ids: list[str] | None
    source_id: str | None = None
    batch_id: str | None = None
    #: The key whose request caused the event; null if no request did, or if the caller may not see the key.
    key_id: str | None = None
    #: Fields of the new state, such as `status`, `ready`, `title` and `error` of a source.
    data: dict[str, Any]


class EventList(WireModel):
    object: Literal["list"] = "list"
    data: list[LogEvent]
    #: Whether there are already more events.
    has_more: bool
    #: The value of `after` for the next request; null if there are no events yet.
    last_id: str | None
    request_id: str
