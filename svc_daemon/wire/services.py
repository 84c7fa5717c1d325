"""Responses about the service itself: health, version, and limits."""

from typing import Literal

from svc_daemon.wire.models import WireModel
from svc_daemon.wire.sources import Shortage


class WriterCounters(WireModel):
    """Number of write operations and of commits since the daemon started. One commit can contain several operations."""

    operations: int
    commits: int


class QueueCounters(WireModel):
    queued: int
    running: int


class Embedding(WireModel):
    """The embedding model for semantic search.

    Its state `off` means that there is none. If its state is `failing`, `message` has the reason.
    """

    state: Literal["off", "loading", "ready", "failing"]
    #: The name of the model in use, with a suffix that changes if the same text would get another vector than before.
    model: str | None = None
    message: str | None = None


class Writing(WireModel):
    """The language model that writes answers.

    Its state `off` means that there is none. If its state is `failing`, `message` has the reason.
    """

    state: Literal["off", "ready", "failing"]
    model: str | None = None
    message: str | None = None


class SetAside(WireModel):
    """Stored files that were moved to a separate folder because they have no row in the state database.

    `message` says what the operator should do; it is null if a killed process probably left the files.
    """

    files: int
    #: Number of these files that a search index still lists as documents in a bucket.
    known: int
    message: str | None


class Health(WireModel):
    """Response of `/healthz`, which needs no key, and reveals nothing about the content of any team."""

    #: `unavailable` means that the database doesn't answer, so that requests fail until it is back.
    status: Literal["ok", "read_only", "unavailable"]
    installation_id: str
    version: str
    api: str
    uptime_seconds: float
    writer: WriterCounters
    #: Numbers of queued and of running tasks; null while the database doesn't answer.
    queue: QueueCounters | None
    embedding: Embedding
    set_aside: SetAside
    #: The resource of which the daemon currently has too little, if any.
    shortage: Shortage | None = None
    #: Whether the fault lab is on, which makes errors happen so that clients can be tested.
    faults: bool = False
    #: The proof for the nonce in the request: only a daemon that has the installation's secret can compute it (see
    #: `wire.proofs`).
    proof: str | None = None
    request_id: str


class Version(WireModel):
    object: Literal["version"] = "version"
    version: str
    api_oldest: int
    api_newest: int
    #: The language model's state; null unless the request has `?verify=writing`.
    writing: Writing | None = None
    request_id: str


class Limit(WireModel):
    value: int
    unit: str
    #: How much of the limit is used at the moment; null if that has no meaning for this limit.
    used: int | None = None


class ReadFormat(WireModel):
    """A kind of document whose text can be extracted."""

    name: str
    extensions: list[str]
    content_types: list[str]
    #: The optional dependency (extra) that must be installed for this format; null if none is needed.
    extra: str | None


class LimitsAnswer(WireModel):
    object: Literal["limits"] = "limits"
    limits: dict[str, Limit]
    formats: list[ReadFormat]
    request_id: str
