"""Types of keys. Made from `svc_daemon.wire` by `python -m tests.rules.client_types`."""

from typing import Literal, NotRequired, TypedDict


class KeyFieldsDict(TypedDict):
    """The fields of a new key, with either `capabilities` or `preset`.

    Omitted limits, such as `buckets`, are those of the key that makes the request.
    """

    name: str
    preset: NotRequired[str | None]
    """A named set of capabilities: `admin`, `ingest` or `read`."""
    capabilities: NotRequired[list[str] | None]
    buckets: NotRequired[list[str] | None]
    """The only buckets that the key may access (ids or slugs)."""
    models: NotRequired[list[str] | None]
    """The only models that the key may use (model ids or agent ids)."""
    expires_at: NotRequired[str | None]
    """When the key expires, in ISO 8601 with a time zone."""


class KeyDict(TypedDict):
    id: str
    object: Literal["api_key"]
    name: str
    hint: str
    """The first characters of the key, which contain no part of the secret."""
    capabilities: list[str]
    buckets: list[str] | None
    """Ids of the only buckets that the key may access; null means all."""
    models: list[str] | None
    """Ids of the only models that the key may use; null means all."""
    expires_at: str | None
    revoked_at: str | None
    created_at: str


class KeyAnswerDict(KeyDict):
    request_id: str


class NewKeyDict(KeyDict):
    key: str | None
    """The secret key, which is shown only once; null in the response to a repeated request."""


class KeyCreatedDict(NewKeyDict):
    request_id: str


class KeyListDict(TypedDict):
    team_id: str
    keys: list[KeyDict]
    has_more: NotRequired[bool]
    last_id: NotRequired[str | None]
    request_id: str
