"""The service about itself: health, version, limits."""

from typing import Literal

from svc_daemon.wire.models import WireModel
from svc_daemon.wire.sources import Shortage


class WriterCounters(WireModel):
    """Operations over commits shows how many writes shared one fsync."""

    operations: int
    commits: int


class QueueCounters(WireModel):
    queued: int
    running: int


class Embedding(WireModel):
    """Whether search goes by meaning, too: `off` is without a model, and `message` is what is wrong with one."""

    state: Literal["off", "loading", "ready", "failing"]
    #: Names the model in use and its generation.
    model: str | None = None
    message: str | None = None


class Writing(WireModel):
    """Whether a model writes the answers: `off` is without one, and `message` is why its server doesn't answer."""

    state: Literal["off", "ready", "failing"]
    model: str | None = None
    message: str | None = None


class SetAside(WireModel):
    """Stored files that nothing in the state names; `message` is what to do where a kill didn't leave them."""

    files: int
    #: Those that a search index has in a bucket.
    known: int
    message: str | None


class Health(WireModel):
    """Answer of `/healthz`, which needs no key and shows nothing of any team's content."""

    status: Literal["ok", "read_only"]
    installation_id: str
    version: str
    api: str
    uptime_seconds: float
    writer: WriterCounters
    queue: QueueCounters
    embedding: Embedding
    set_aside: SetAside
    #: What the service is short of just now.
    shortage: Shortage | None = None
    #: The answer to `?nonce=`, which only a daemon with the installation's secret can give (`wire.proofs`).
    proof: str | None = None
    request_id: str


class Version(WireModel):
    object: Literal["version"] = "version"
    version: str
    api_oldest: int
    api_newest: int
    #: Only with `?verify=writing`.
    writing: Writing | None = None
    request_id: str


class Limit(WireModel):
    value: int
    unit: str
    #: How much of it is used now, where that has a meaning.
    used: int | None = None


class ReadFormat(WireModel):
    """A kind of document that can be extracted."""

    name: str
    extensions: list[str]
    content_types: list[str]
    #: The optional extra that has to be installed for it.
    extra: str | None


class LimitsAnswer(WireModel):
    object: Literal["limits"] = "limits"
    limits: dict[str, Limit]
    formats: list[ReadFormat]
    request_id: str
