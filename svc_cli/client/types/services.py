"""Types of services. Made from `svc_daemon.wire` by `python -m tests.rules.client_types`."""

from typing import Literal, TypedDict

from svc_cli.client.types.sources import ShortageDict


class WriterCountersDict(TypedDict):
    """Write operations and commits since the daemon started. One commit can contain several operations."""

    operations: int
    commits: int


class QueueCountersDict(TypedDict):
    queued: int
    running: int


class EmbeddingDict(TypedDict):
    """The embedding model for semantic search, if any. If the model fails, `message` has the reason."""

    state: Literal["off", "loading", "ready", "failing"]
    model: str | None
    """The name of the model in use, with a suffix that changes if the model's vectors change."""
    message: str | None


class WritingDict(TypedDict):
    """The language model that writes answers, if any. If the model fails, `message` has the reason."""

    state: Literal["off", "ready", "failing"]
    model: str | None
    message: str | None


class SetAsideDict(TypedDict):
    """Stored files moved to a separate folder because the state database has no row for them.

    `message` says what the operator should do. It is null if there are few files, which a killed process may have
    left.
    """

    files: int
    known: int
    """How many of these files belong to a source that is still in a search index."""
    message: str | None


class HealthDict(TypedDict):
    """Response of `/healthz`, which needs no key and reveals no content."""

    status: Literal["ok", "read_only", "unavailable"]
    """`unavailable` means that the database doesn't answer."""
    installation_id: str
    version: str
    api: str
    uptime_seconds: float
    writer: WriterCountersDict
    queue: QueueCountersDict | None
    """Number of queued and running tasks; null while the database doesn't answer."""
    embedding: EmbeddingDict
    set_aside: SetAsideDict
    shortage: ShortageDict | None
    """A resource that the daemon lacks, such as disk space; null if nothing is lacking."""
    faults: bool
    """Whether the fault lab, which makes requests fail on purpose, is on."""
    proof: str | None
    """Proves that the daemon knows the secret of the installation; null if the request has no `nonce`."""
    request_id: str


class VersionDict(TypedDict):
    object: Literal["version"]
    version: str
    api_oldest: int
    api_newest: int
    writing: WritingDict | None
    """Null unless the request has `?verify=writing`."""
    request_id: str


class LimitDict(TypedDict):
    value: int
    unit: str
    used: int | None
    """How much of the limit is used now; null if the service doesn't count the usage."""


class ReadFormatDict(TypedDict):
    """A kind of document whose text can be extracted."""

    name: str
    extensions: list[str]
    content_types: list[str]
    extra: str | None
    """The optional dependency (extra) for this format, if any."""


class LimitsAnswerDict(TypedDict):
    object: Literal["limits"]
    team_id: str
    """The team of the API key."""
    limits: dict[str, LimitDict]
    formats: list[ReadFormatDict]
    request_id: str
