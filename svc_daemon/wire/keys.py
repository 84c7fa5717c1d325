"""API keys on the wire. The key itself is in the first answer to its create, and nowhere else."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from svc_daemon.wire.models import WireModel
from svc_daemon.wire.scopes import AGENT, BUCKETS, ScopedBody

KeyName = Annotated[str, Field(min_length=1, max_length=200)]
#: A list that is sent names something: an empty one would be a key for nothing.
Names = Annotated[list[Annotated[str, Field(min_length=1, max_length=200)]], Field(min_length=1, max_length=1000)]


class KeyFields(ScopedBody):
    """What a key is to be: `capabilities` or `preset`; the rest, where it is not sent, as the asking key has it."""

    scopes: ClassVar[Mapping[str, str]] = {BUCKETS: "buckets", AGENT: "models"}
    plain_scopes: ClassVar[Mapping[str, str]] = dict.fromkeys(("agents", "model", "allowedmodels"), AGENT)

    name: KeyName
    #: `admin`, `ingest` or `read`.
    preset: str | None = None
    capabilities: Names | None = None
    #: The only buckets it may reach, by id or slug; ids are kept.
    buckets: Names | None = None
    #: The only models it may use, in either spelling.
    models: Names | None = None
    #: ISO 8601 with a time zone.
    expires_at: str | None = None


class KeyCreate(KeyFields):
    """Body of `POST /v1/keys`."""

    #: Only validate: nothing is made, no idempotency key is claimed.
    dry_run: bool = False


class Key(WireModel):
    id: str
    object: Literal["api_key"] = "api_key"
    name: str
    #: How the key begins, up to its secret.
    hint: str
    capabilities: list[str]
    #: Bucket ids; null is all.
    buckets: list[str] | None
    #: Null is all.
    models: list[str] | None
    expires_at: str | None
    revoked_at: str | None
    created_at: str


class KeyAnswer(Key):
    request_id: str


class NewKey(Key):
    #: To be kept now: it is not shown again. Null in a replay.
    key: str | None


class KeyCreated(NewKey):
    request_id: str


class KeyList(WireModel):
    team_id: str
    keys: list[Key]
    has_more: bool | None = None
    last_id: str | None = None
    request_id: str
