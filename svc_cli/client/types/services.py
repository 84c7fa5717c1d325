"""Types of services. Made from `svc_daemon.wire` by `python -m tests.rules.client_types`."""

from typing import Literal, TypedDict

from svc_cli.client.types.sources import ShortageDict


class WriterCountersDict(TypedDict):
    """Number of write operations and of commits since the daemon started. One commit can contain several operations."""

    operations: int
    commits: int


class QueueCountersDict(TypedDict):
    queued: int
    running: int


class EmbeddingDict(TypedDict):
    """The embedding model for semantic search.

    Its state `off` means that there is none. If its state is `failing`, `message` has the reason.
    """

    state: Literal["off", "loading", "ready", "failing"]
    model: str | None
    """The name of the model in use, with a suffix that changes if the same text would get another vector than
    before.
    """
    message: str | None


class WritingDict(TypedDict):
    """The language model that writes answers.

    Its state `off` means that there is none. If its state is `failing`, `message` has the reason.
    """

    state: Literal["off", "ready", "failing"]
    model: str | None
    message: str | None


class SetAsideDict(TypedDict):
    """Stored files that were moved to a separate folder because they have no row in the state database.

    `message` says what the operator should do; it is null if a killed process probably left the files.
    """

    files: int
    known: int
    """Number of these files that a search index still lists as documents in a bucket."""
    message: str | None


class HealthDict(TypedDict):
    """Response of `/healthz`, which needs no key, and reveals nothing about the content of any team."""

    status: Literal["ok", "read_only", "unavailable"]
    """`unavailable` means that the database doesn't answer, so that requests fail until it is back."""
    installation_id: str
    version: str
    api: str
    uptime_seconds: float
    writer: WriterCountersDict
    queue: QueueCountersDict | None
    """Numbers of queued and of running tasks; null while the database doesn't answer."""
    embedding: EmbeddingDict
    set_aside: SetAsideDict
    shortage: ShortageDict | None
    """The resource of which the daemon currently has too little, if any."""
    faults: bool
    """Whether the fault lab is on, which makes errors happen so that clients can be tested."""
    proof: str | None
    """The proof for the nonce in the request: only a daemon that has the installation's secret can compute it (see
    `wire.proofs`).
    """
    request_id: str


class VersionDict(TypedDict):
    object: Literal["version"]
    version: str
    api_oldest: int
    api_newest: int
    writing: WritingDict | None
    """The language model's state; null unless the request has `?verify=writing`."""
    request_id: str


class LimitDict(TypedDict):
    value: int
    unit: str
    used: int | None
    """How much of the limit is used at the moment; null if that has no meaning for this limit."""


class ReadFormatDict(TypedDict):
    """A kind of document whose text can be extracted."""

    name: str
    extensions: list[str]
    content_types: list[str]
    extra: str | None
    """The optional dependency (extra) that must be installed for this format; null if none is needed."""


class LimitsAnswerDict(TypedDict):
    object: Literal["limits"]
    limits: dict[str, LimitDict]
    formats: list[ReadFormatDict]
    request_id: str
