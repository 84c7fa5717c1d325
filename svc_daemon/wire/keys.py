"""Models of API keys and of the operator's routes. Only the first response to a create request has the secret key."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field
from typing_extensions import TypedDict

from svc_daemon.wire.requests import AGENT, BUCKETS, NoDryRunBody, Paging, ScopedBody

KeyName = Annotated[str, Field(min_length=1, max_length=200)]
#: An empty list is refused: the key could access nothing.
Names = Annotated[list[Annotated[str, Field(min_length=1, max_length=200)]], Field(min_length=1, max_length=1000)]


class KeyFields(ScopedBody):
    """The fields of a new key, with either `capabilities` or `preset`.

    Omitted limits, such as `buckets`, are those of the key that makes the request.
    """

    scopes: ClassVar[Mapping[str, str]] = {BUCKETS: "buckets", AGENT: "models"}
    plain_scopes: ClassVar[Mapping[str, str]] = dict.fromkeys(("agents", "model", "allowedmodels"), AGENT)
    #: What may be meant to limit the key in time or rights.
    foreign_scopes: ClassVar[Mapping[str, str]] = dict.fromkeys(
        (
            *("expire", "expires", "expireat", "expiresat", "expiresin", "expiry", "expiration", "ttl"),
            *("capability", "right", "rights", "permission", "permissions", "role", "roles"),
        ),
        "limits",
    )
    refusal: ClassVar[str] = "There is no such field. A key is limited by `capabilities` or `preset`, and `expires_at`."

    name: KeyName
    #: A named set of capabilities: `admin`, `ingest` or `read`.
    preset: str | None = None
    capabilities: Names | None = None
    #: The only buckets that the key may access (ids or slugs).
    buckets: Names | None = None
    #: The only models that the key may use (model ids or agent ids).
    models: Names | None = None
    #: When the key expires, in ISO 8601 with a time zone.
    expires_at: str | None = None


class KeyCreate(KeyFields):
    """Body of `POST /v1/keys`."""

    #: Only validate the request; nothing is created.
    dry_run: bool = False


class Key(TypedDict):
    id: str
    object: Literal["api_key"]
    name: str
    #: The first characters of the key, which contain no part of the secret.
    hint: str
    capabilities: list[str]
    #: Ids of the only buckets that the key may access; null means all.
    buckets: list[str] | None
    #: Ids of the only models that the key may use; null means all.
    models: list[str] | None
    expires_at: str | None
    revoked_at: str | None
    created_at: str


class KeyAnswer(Key):
    request_id: str


class NewKey(Key):
    #: The secret key, which is shown only once; null in the response to a repeated request.
    key: str | None


class KeyCreated(NewKey):
    request_id: str


class KeyList(Paging):
    team_id: str
    keys: list[Key]
    request_id: str


class ConsoleSession(TypedDict):
    """The code with which the console in a browser gets a key of its own."""

    object: Literal["console_session"]
    #: Can be exchanged once.
    code: str
    #: Until when it can be exchanged.
    expires_at: str
    request_id: str


class ConsoleExchange(NoDryRunBody):
    """Body of `POST /v1/console/sessions/exchange`."""

    code: Annotated[str, Field(min_length=1, max_length=200)]


class TeamCreate(NoDryRunBody):
    """Body of `POST /admin/teams`."""

    name: KeyName


class OperatorKeyCreate(KeyFields, NoDryRunBody):
    """Body of `POST /admin/keys`."""

    name: KeyName = "operator"
    #: The team's id or name.
    team: str


#: The statuses of a team.
ACTIVE: Final = "active"
REMOVING: Final = "removing"


class Team(TypedDict):
    id: str
    object: Literal["team"]
    name: str
    #: `removing` until all data of a removed team is deleted.
    status: Literal["active", "removing"]
    #: Number of sources, and total size of their stored files.
    sources: int
    size_bytes: int
    created_at: str


class TeamKey(TypedDict):
    """A team and its new API key, which is shown only once."""

    team: Team
    key: NewKey


class TeamList(TypedDict):
    teams: list[Team]


class RestoreMark(TypedDict):
    """Confirms that the service has recorded a restore and has raised the revisions of all buckets."""

    object: Literal["restore_mark"]
    restored_at: str
    #: The revision of every bucket is at least this number now.
    revision: int
