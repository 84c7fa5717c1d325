"""Models of the state of the service as a key may see it, and of what watchers of folders report."""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from svc_daemon.wire.buckets import Description, Name
from svc_daemon.wire.requests import NoDryRunBody, RequestBody
from svc_daemon.wire.services import EngineState, QueueCounters
from svc_daemon.wire.sources import Shortage

WatcherState = Literal["starting", "syncing", "watching", "troubled", "missing", "stopped"]


class MappingReport(RequestBody):
    """A folder that a watcher keeps in a bucket."""

    name: Name
    #: The bucket, by slug or id. It may not exist yet.
    bucket: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[0-9A-Za-z_-]+$")]
    #: `troubled` if the last look failed, `missing` if the folder is gone.
    state: WatcherState
    #: When the watcher last compared files with the bucket.
    last_look_at: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z$")] | None = None
    #: What is wrong, a sentence for each.
    troubles: Annotated[list[Description], Field(max_length=20)] = Field(default_factory=list)


class WatcherReport(NoDryRunBody):
    """Body of `PUT /v1/watchers/{watcher_id}`: all folders that the watcher watches now."""

    mappings: Annotated[list[MappingReport], Field(max_length=200)]


class WatchedMapping(TypedDict):
    """A folder that a watcher keeps in a bucket."""

    name: str
    bucket: str
    state: WatcherState
    last_look_at: str | None
    troubles: list[str]


class Watcher(TypedDict):
    """A watcher that has reported within the last minute."""

    id: str
    object: Literal["watcher"]
    #: The key with which it reports.
    key_id: str
    mappings: list[WatchedMapping]
    reported_at: str


class WatcherAnswer(Watcher):
    #: When the watcher is forgotten, unless it reports again.
    expires_at: str
    request_id: str


class WatcherList(TypedDict):
    object: Literal["list"]
    data: list[Watcher]
    request_id: str


class VectorState(TypedDict):
    """How many passages have a vector of the current embedding model."""

    #: Whether the embedding model works, as in `/healthz`.
    state: Literal["off", "loading", "ready", "failing"]
    #: Null if no embedding model is in use.
    model: str | None
    #: The number of passages, and of those without a vector yet; null while the search index can't say.
    passages: int | None
    missing: int | None
    #: About how many seconds the missing vectors take; null if there is no model, or nothing was measured yet.
    seconds_left: int | None


class DiskState(TypedDict):
    """The disk of the node that answers."""

    free_bytes: int
    #: Uploads are refused while less is free.
    least_free_bytes: int


class Trouble(TypedDict):
    """What kept the service from working as it should."""

    message: str
    #: Null if that is not known.
    since: str | None
    #: Null while it lasts.
    until: str | None


class ServiceStatus(TypedDict):
    """The state of the service, as far as the key may see it."""

    object: Literal["status"]
    #: `read_only` means that nothing can be written until the service is restarted.
    status: Literal["ok", "read_only"]
    #: The team's unfinished tasks; for a key that is limited to some buckets, their sources that are not indexed yet.
    queue: QueueCounters
    #: Of all passages of the team, or of the key's buckets.
    vectors: VectorState
    #: Null for a key that is limited to some buckets.
    disk: DiskState | None
    #: The engines of a cluster, as in `/healthz`; empty for a data directory.
    engines: list[EngineState]
    #: A resource that the service lacks, such as disk space; null if nothing is lacking.
    shortage: Shortage | None
    #: What is wrong now, or else what was wrong last since the service started.
    last_trouble: Trouble | None
    request_id: str
