"""The operator's operations on teams and their keys. The caller must authorize the request."""

from collections.abc import Callable

from svc_daemon.core import ids
from svc_daemon.core.access import api_keys
from svc_daemon.core.access.api_keys import Grant, check_name
from svc_daemon.core.ids import Ids
from svc_daemon.core.json_bodies import refusal
from svc_daemon.core.times import to_text
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import NotFound
from svc_daemon.operations.keys import mint_key, plan_key, view_new_key
from svc_daemon.store import teams as store
from svc_daemon.store.keys import KeyRow, create_key
from svc_daemon.store.team_removals import find_removal
from svc_daemon.store.teams import TeamRow
from svc_daemon.wire import JsonMapping
from svc_daemon.wire import teams as wire
from svc_daemon.wire.error_codes import ErrorCode

#: Carries out an operator's command in one transaction. It runs in the daemon or, without a daemon, in the command's
#: own process.
Verb = Callable[[Connection, Ids], JsonMapping]


def create_team(connection: Connection, make_ids: Ids, fields: wire.TeamCreate) -> wire.TeamKey:
    """Create a team with its first admin key; raises `invalid_request` if the name is taken."""
    check_name(fields.name)
    if ids.is_id(fields.name, ids.TEAM):
        raise refusal("name", f"{fields.name!r} looks like an id.")
    if store.find_team(connection, fields.name) is not None:
        raise refusal("name", f"there is a team {fields.name!r}; `svc-daemon team ls` shows them.")
    team = TeamRow(id=make_ids.make(ids.TEAM), name=fields.name, created_at=to_text(make_ids.now()))
    store.create_team(connection, team.id, team.name, team.created_at)
    minted = mint_key(make_ids, team.id, "admin", Grant(capabilities=api_keys.PRESETS["admin"]))
    create_key(connection, minted.key)
    return wire.TeamKey(team=view_team(connection, team), key=view_new_key(minted))


def create_team_key(connection: Connection, make_ids: Ids, fields: wire.OperatorKeyCreate) -> wire.TeamKey:
    """Create a key in any team; raises `not_found` and the errors of creating a key."""
    team = get_team(connection, fields.team)
    if find_removal(connection, team.id) is not None:
        raise NotFound(ErrorCode.NOT_FOUND, f"The team {fields.team!r} is being removed.")
    # The operator has no API key, so act as a key with every capability.
    maker = KeyRow(
        id="",
        team_id=team.id,
        name="operator",
        secret_hash="",
        capabilities=api_keys.CAPABILITIES,
        created_at=team.created_at,
    )
    minted = plan_key(connection, make_ids, maker, fields)
    create_key(connection, minted.key)
    return wire.TeamKey(team=view_team(connection, team), key=view_new_key(minted))


def get_team(connection: Connection, team: str) -> TeamRow:
    """Find a team by its id or name; raises NotFound."""
    found = store.find_team(connection, team)
    if found is None:
        raise NotFound(ErrorCode.NOT_FOUND, f"There is no team {team!r}; `svc-daemon team ls` shows them.")
    return found


def list_teams(connection: Connection) -> wire.TeamList:
    return wire.TeamList(teams=[view_team(connection, team) for team in store.list_teams(connection)])


def view_team(connection: Connection, team: TeamRow) -> wire.Team:
    """Convert a team to its API form, and count its sources and their bytes."""
    sources, size_bytes = store.measure_sources(connection, team.id)
    return wire.Team(
        id=team.id,
        object="team",
        name=team.name,
        status=wire.ACTIVE if find_removal(connection, team.id) is None else wire.REMOVING,
        sources=sources,
        size_bytes=size_bytes,
        created_at=team.created_at,
    )
