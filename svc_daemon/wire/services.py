"""Responses about the service itself: health, version, and limits."""

from typing import Literal

from typing_extensions import TypedDict

from svc_daemon.wire.keys import Key
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
