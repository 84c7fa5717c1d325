"""Models of the operator's routes for `svc-daemon team` and `svc-daemon key`."""

from typing import Final, Literal

from typing_extensions import TypedDict

from svc_daemon.wire.keys import KeyFields, KeyName, NewKey
from svc_daemon.wire.requests import NoDryRunBody


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
