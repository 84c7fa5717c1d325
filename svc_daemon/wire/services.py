"""Models of the service itself: health, version, limits, its state as a key may see it, and watchers of folders."""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from svc_daemon.wire.buckets import Description, Name
from svc_daemon.wire.keys import Key
from svc_daemon.wire.requests import NoDryRunBody, RequestBody
from svc_daemon.wire.sources import Shortage


class WriterCounters(TypedDict):
    """Write operations and commits since the daemon started. One commit can contain several operations."""

    operations: int
    commits: int


class QueueCounters(TypedDict):
    queued: int
    running: int


class Embedding(TypedDict):
    """The embedding model for semantic search, if any. If the model fails, `message` has the reason."""

    state: Literal["off", "loading", "ready", "failing"]
    #: The name of the model in use, with a suffix that changes if the model's vectors change.
    model: str | None
    message: str | None


class Recognition(TypedDict):
    """Whether text in scans and pictures is recognised. If not, `message` has the reason and the way out."""

    state: Literal["off", "ready"]
    message: str | None
    #: Seconds that a page takes lately; null if none was read since the start.
    page_seconds: float | None


class Writing(TypedDict):
    """The language model that writes answers, if any. If the model fails, `message` has the reason."""

    state: Literal["off", "ready", "failing"]
    model: str | None
    message: str | None


class SetAside(TypedDict):
    """Stored files moved to a separate folder because the state database has no row for them.

    `message` says what the operator should do. It is null if there are few files, which a killed process may have left.
    """

    files: int
    #: How many of these files belong to a source that is still in a search index.
    known: int
    message: str | None


EngineName = Literal["postgresql", "s3", "milvus"]


class EngineState(TypedDict):
    """An engine of a cluster, as the node that answers sees it."""

    name: EngineName
    #: `away`: the node can't reach the engine, is refused, or finds that it is not the one of the installation.
    state: Literal["ok", "away"]
    #: What is wrong, without addresses; null if nothing is.
    message: str | None
    #: Since when it can't be used.
    since: str | None


class Health(TypedDict):
    """Response of `/healthz`, which needs no key and reveals no content."""

    #: `unavailable` means that the database doesn't answer.
    status: Literal["ok", "read_only", "unavailable"]
    installation_id: str
    version: str
    api: str
    uptime_seconds: float
    writer: WriterCounters
    #: Number of queued and running tasks; null while the database doesn't answer.
    queue: QueueCounters | None
    embedding: Embedding
    set_aside: SetAside
    #: A resource that the daemon lacks, such as disk space; null if nothing is lacking.
    shortage: Shortage | None
    #: The engines of a cluster; empty for a data directory.
    engines: list[EngineState]
    #: Whether the fault lab, which makes requests fail on purpose, is on.
    faults: bool
    #: Proves that the daemon knows the secret of the installation; null if the request has no `nonce`.
    proof: str | None
    request_id: str


class Version(TypedDict):
    object: Literal["version"]
    version: str
    api_oldest: int
    api_newest: int
    #: Null unless the request has `?verify=writing`.
    writing: Writing | None
    request_id: str


class Limit(TypedDict):
    value: int
    unit: str
    #: How much of the limit is used now; null if the service doesn't count the usage.
    used: int | None


class ReadFormat(TypedDict):
    """A kind of document whose text can be extracted."""

    name: str
    extensions: list[str]
    content_types: list[str]
    #: The optional dependency (extra) for this format, if any.
    extra: str | None


class LimitsAnswer(TypedDict):
    object: Literal["limits"]
    #: The team of the API key.
    team_id: str
    #: The API key itself: what it may do, where, and until when.
    key: Key
    limits: dict[str, Limit]
    formats: list[ReadFormat]
    ocr: Recognition
    request_id: str


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
