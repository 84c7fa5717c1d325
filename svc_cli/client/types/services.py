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
    """The embedding model for semantic search, if any. If it fails, `message` has the reason."""

    state: Literal["off", "loading", "ready", "failing"]
    model: str | None
    """The name of the model in use, with a suffix that changes if the model computes different vectors."""
    message: str | None


class WritingDict(TypedDict):
    """The language model that writes answers, if any. If it fails, `message` has the reason."""

    state: Literal["off", "ready", "failing"]
    model: str | None
    message: str | None


class SetAsideDict(TypedDict):
    """Stored files moved to a separate folder because the state database has no row for them.

    `message` says what the operator should do; null if a killed process probably left the files.
    """

    files: int
    known: int
    """Number of these files that a search index still lists in a bucket."""
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
    """What the daemon has too little of, if anything."""
    faults: bool
    """Whether the fault lab is on, which makes errors on purpose."""
    proof: str | None
    """Proof that the daemon has the installation's secret, for the nonce in the request."""
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
    """How much of the limit is used now; null if this is not counted."""


class ReadFormatDict(TypedDict):
    """A kind of document whose text can be extracted."""

    name: str
    extensions: list[str]
    content_types: list[str]
    extra: str | None
    """The optional dependency (extra) for this format, if any."""


class LimitsAnswerDict(TypedDict):
    object: Literal["limits"]
    limits: dict[str, LimitDict]
    formats: list[ReadFormatDict]
    request_id: str
