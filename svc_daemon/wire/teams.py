"""Requests and responses of the operator's routes that `svc-daemon team` and `svc-daemon key` use."""

from typing import Final, Literal

from svc_daemon.wire.keys import KeyFields, KeyName, NewKey
from svc_daemon.wire.models import WireModel
from svc_daemon.wire.requests import NoDryRunBody


class TeamCreate(NoDryRunBody):
    """Body of `POST /admin/teams`."""

    name: KeyName


class OperatorKeyCreate(KeyFields, NoDryRunBody):
    """Body of `POST /admin/keys`."""

    name: KeyName = "operator"
    #: The team's id or name.
    team: str


#: The statuses of teams.
ACTIVE: Final = "active"
REMOVING: Final = "removing"


class Team(WireModel):
    id: str
    object: Literal["team"] = "team"
    name: str
    #: `removing` from the request to remove it until nothing of it is left.
    status: Literal["active", "removing"]
    #: Number of its sources, and the total size of their stored files.
    sources: int
    size_bytes: int
    created_at: str


class TeamKey(WireModel):
    """A team, and one of its API keys, which is shown only in this response."""

    team: Team
    key: NewKey


class TeamList(WireModel):
    teams: list[Team]
