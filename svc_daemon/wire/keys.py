"""Models of API keys. The key itself is only in the first response to the request that created it."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from svc_daemon.wire.models import WireModel
from svc_daemon.wire.scopes import AGENT, BUCKETS, ScopedBody

KeyName = Annotated[str, Field(min_length=1, max_length=200)]
#: A list must not be empty, because the key could then access nothing.
Names = Annotated[list[Annotated[str, Field(min_length=1, max_length=200)]], Field(min_length=1, max_length=1000)]


class KeyFields(ScopedBody):
    """The fields of a new key, which must include either `capabilities` or `preset`.

    Limits that are omitted are inherited from the key that creates it.
    """

    scopes: ClassVar[Mapping[str, str]] = {BUCKETS: "buckets", AGENT: "models"}
    plain_scopes: ClassVar[Mapping[str, str]] = dict.fromkeys(("agents", "model", "allowedmodels"), AGENT)

    name: KeyName
    #: `admin`, `ingest` or `read`.
    preset: str | None = None
    capabilities: Names | None = None
    #: The only buckets that the key may access: ids or slugs; slugs are stored as ids.
    buckets: Names | None = None
    #: The only models that the key may use, as model ids or agent ids.
    models: Names | None = None
    #: ISO 8601 with a time zone.
    expires_at: str | None = None


class KeyCreate(KeyFields):
    """Body of `POST /v1/keys`."""

    #: Only validate the request; nothing is created, and no idempotency key is used up.
    dry_run: bool = False


class Key(WireModel):
    id: str
    object: Literal["api_key"] = "api_key"
    name: str
    #: The beginning of the key, without its secret.
    hint: str
    capabilities: list[str]
    #: Bucket ids; null means all buckets.
    buckets: list[str] | None
    #: Null means all models.
    models: list[str] | None
    expires_at: str | None
    revoked_at: str | None
    created_at: str


class KeyAnswer(Key):
    request_id: str


class NewKey(Key):
    #: The key itself, which is never shown again; null if the response is a replay.
    key: str | None


class KeyCreated(NewKey):
    request_id: str


class KeyList(WireModel):
    team_id: str
    keys: list[Key]
    has_more: bool | None = None
    last_id: str | None = None
    request_id: str
