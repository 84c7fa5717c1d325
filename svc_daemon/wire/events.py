"""Models of the event log: what has happened in a team, in commit order."""

from typing import Any, Literal

from svc_daemon.wire.models import WireModel


class LogEvent(WireModel):
    """Something that has happened in a team."""

    id: str
    object: Literal["event"] = "event"
    #: An `EventType`; later releases may add more types.
    type: str
    created_at: str
    #: The bucket, if the event concerns exactly one.
    bucket_id: str | None = None
    #: The buckets that the event concerned, without those that the key can't access; null for the whole team.
    bucket_ids: list[str] | None
    source_id: str | None = None
    batch_id: str | None = None
    #: The key whose request caused the event; null if none did, or if the caller may not see it.
    key_id: str | None = None
    #: The new state, such as a source's `status`, `ready`, `title` and `error`.
    data: dict[str, Any]


class EventList(WireModel):
    object: Literal["list"] = "list"
    data: list[LogEvent]
    #: Whether more events are already stored.
    has_more: bool
    #: `after` for the next request; null if there are no events yet.
    last_id: str | None
    request_id: str
