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


#: The statuses that a team can have.
ACTIVE: Final = "active"
REMOVING: Final = "removing"


class Team(WireModel):
    id: str
    object: Literal["team"] = "team"
    name: str
    #: `removing` once the removal of the team was requested, until all of its data is deleted.
    status: Literal["active", "removing"]
    #: Number of the team's sources, and the total size of their stored files.
    sources: int
    size_bytes: int
    created_at: str


class TeamKey(WireModel):
    """A team and its new API key, which is only shown in this response."""

    team: Team
    key: NewKey


class TeamList(WireModel):
    teams: list[Team]
