"""Models of the event log: what has happened in a team, in commit order."""

from typing import Any, Literal

from typing_extensions import TypedDict


class LogEvent(TypedDict):
    """Something that has happened in a team."""

    id: str
    object: Literal["event"]
    #: An `EventType`; later releases may add more types.
    type: str
    created_at: str
    #: The bucket, if the event concerns exactly one.
    bucket_id: str | None
    #: The buckets that the event concerns, as far as the key can access them. Null if it concerns the whole team.
    bucket_ids: list[str] | None
    source_id: str | None
    #: The batch of the event or of its source; null if there is none, or if the key can't reach its buckets.
    batch_id: str | None
    #: The key whose request caused the event; null if no request did, or if the caller may not see the key.
    key_id: str | None
    #: What has changed, such as a source's new `status`, `ready`, `title` and `error`.
    data: dict[str, Any]


class EventList(TypedDict):
    object: Literal["list"]
    data: list[LogEvent]
    #: Whether more events that the key may see are already stored.
    has_more: bool
    #: A cursor: the value of `after` for the next request. Null if there are no events yet.
    last_id: str | None
    request_id: str
