"""Responses about the service itself: health, version, and limits."""

from typing import Literal

from svc_daemon.wire.models import WireModel
from svc_daemon.wire.sources import Shortage


class WriterCounters(WireModel):
    """Number of write operations and of commits since the start. One commit can contain several operations."""

    operations: int
    commits: int


class QueueCounters(WireModel):
    queued: int
    running: int


class Embedding(WireModel):
    """The embedding model for semantic search. `off` means there is none; `message` says why it is `failing`."""

    state: Literal["off", "loading", "ready", "failing"]
    #: The name of the model in use, and its generation.
    model: str | None = None
    message: str | None = None


class Writing(WireModel):
    """The model that writes answers. `off` means there is none; `message` says why its server is `failing`."""

    state: Literal["off", "ready", "failing"]
    model: str | None = None
    message: str | None = None


class SetAside(WireModel):
    """Stored files that were moved aside because they have no row in the state database.

    `message` says what the operator should do; it is null if a killed process probably left the files.
    """

    files: int
    #: Number of these files that a search index still has as documents in a bucket.
    known: int
    message: str | None


class Health(WireModel):
    """Response of `/healthz`, which needs no key and reveals nothing about any team's content."""

    #: `unavailable`: the database does not answer, so requests fail until it is back.
    status: Literal["ok", "read_only", "unavailable"]
    installation_id: str
    version: str
    api: str
    uptime_seconds: float
    writer: WriterCounters
    #: Null while the database does not answer.
    queue: QueueCounters | None
    embedding: Embedding
    set_aside: SetAside
    #: The resource of which the daemon currently has too little, if any.
    shortage: Shortage | None = None
    #: Whether the fault lab is on, which makes errors happen for tests of clients.
    faults: bool = False
    #: The response to `?nonce=`, which only a daemon that has the installation's secret can compute (`wire.proofs`).
    proof: str | None = None
    request_id: str


class Version(WireModel):
    object: Literal["version"] = "version"
    version: str
    api_oldest: int
    api_newest: int
    #: Null unless the request has `?verify=writing`.
    writing: Writing | None = None
    request_id: str


class Limit(WireModel):
    value: int
    unit: str
    #: How much of the limit is currently used; null if that is not meaningful.
    used: int | None = None


class ReadFormat(WireModel):
    """A kind of document that can be extracted."""

    name: str
    extensions: list[str]
    content_types: list[str]
    #: The optional extra that must be installed for this format, if any.
    extra: str | None


class LimitsAnswer(WireModel):
    object: Literal["limits"] = "limits"
    limits: dict[str, Limit]
    formats: list[ReadFormat]
    request_id: str
