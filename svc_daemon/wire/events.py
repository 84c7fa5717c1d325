"""Models of the event log: what has happened in a team, in the order in which it was committed."""

from typing import Any, Literal

from svc_daemon.wire.models import WireModel


class LogEvent(WireModel):
    """Something that has happened in a team."""

    id: str
    object: Literal["event"] = "event"
    #: One of `event_types.EventType`; more may be added.
    type: str
    created_at: str
    #: The bucket, if the event is about a single one.
    bucket_id: str | None = None
    #: The buckets that the event is about, as they were; null if it is about the whole team. Buckets that the key can't
    #: reach are left out.
    bucket_ids: list[str] | None
    source_id: str | None = None
    batch_id: str | None = None
    #: The key whose request caused the event; null if the service did it by itself, or if the key may not see it.
    key_id: str | None = None
    #: Facts about the state after the event, such as `status`, `ready`, `title` and `error` of a source.
    data: dict[str, Any]


class EventList(WireModel):
    object: Literal["list"] = "list"
    data: list[LogEvent]
    #: Whether there are more events now.
    has_more: bool
    #: The `after` of the next request; null if nothing has ever happened.
    last_id: str | None
    request_id: str
