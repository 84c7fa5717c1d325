"""Creates, lists and revokes API keys and those of the console, and lets the operator create teams and their keys."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from svc_daemon.core import ids
from svc_daemon.core.access import api_keys
from svc_daemon.core.access.api_keys import Grant, check_name, choose_capabilities, choose_expiry, covers, narrow
from svc_daemon.core.ids import Ids
from svc_daemon.core.json_bodies import refusal
from svc_daemon.core.times import to_text
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import NotFound, ServiceError
from svc_daemon.operations.shared.idempotency import Creation, replaying, store_answer
from svc_daemon.operations.shared.reachable_rows import get_lasting_bucket
from svc_daemon.process.contexts import Context
from svc_daemon.store.rows import teams as store
from svc_daemon.store.rows.keys import (
    KeyRow,
    create_key,
    find_key,
    forget_console_keys,
    get_key,
    list_keys,
    replace_secret,
    revoke_key,
)
from svc_daemon.store.rows.teams import TeamRow, find_removal
from svc_daemon.wire import JsonMapping
from svc_daemon.wire import keys as wire
from svc_daemon.wire.light.error_codes import ErrorCode

#: The name of the console's keys.
CONSOLE = "console"


@dataclass(frozen=True, slots=True)
class Minted:
    """A new API key, and its text, which is shown only once and not stored."""

    key: KeyRow
    text: str


def mint_key(make_ids: Ids, team_id: str, name: str, grant: Grant, prefix: str = api_keys.PREFIX) -> Minted:
    """Generate a new API key, or the code of a console session, without storing it."""
    text = api_keys.mint(make_ids.make(ids.KEY), make_ids.random(32), prefix)
    parts = api_keys.parse(text, prefix)
    if parts is None:
        raise AssertionError("a minted key is well-formed")
    key = KeyRow(
        id=parts.key_id,
        team_id=team_id,
        name=name,
        secret_hash=parts.secret_hash,
        capabilities=grant.capabilities,
        buckets=grant.buckets,
        models=grant.models,
        expires_at=grant.expires_at,
        created_at=to_text(make_ids.now()),
    )
    return Minted(key, text)


def plan_key(connection: Connection, make_ids: Ids, maker: KeyRow, fields: wire.KeyFields) -> Minted:
    """Build the key that a request with the key `maker` would create; raises that request's errors."""
    check_name(fields.name)
    buckets = (get_lasting_bucket(connection, maker, bucket).id for bucket in fields.buckets or ())
    asked = Grant(
        capabilities=choose_capabilities(fields.preset, fields.capabilities),
        buckets=None if fields.buckets is None else tuple(dict.fromkeys(buckets)),
        models=None if fields.models is None else tuple(dict.fromkeys(fields.models)),
        expires_at=choose_expiry(fields.expires_at, make_ids.now()),
    )
    return mint_key(make_ids, maker.team_id, fields.name, narrow(_grant_of(maker), asked))


async def create_new_key(context: Context, request: Creation, fields: wire.KeyCreate) -> Creation:
    """Create a key. Only the first response has the key's text; responses to repeated requests don't."""

    def work(connection: Connection) -> Creation:
        minted = plan_key(connection, context.ids, request.key, fields)
        create_key(connection, minted.key)
        store_answer(connection, context, request, view_new_key(replace(minted, text="")))
        return replace(request, body=view_new_key(minted))

    async with replaying(context, request) as earlier:
        if earlier is not None:
            return earlier
        return await context.write(work)


async def start_console(context: Context, maker: KeyRow) -> Minted:
    """Store a key of the console, which is a code for now, and return it. Raises `invalid_project_key`."""
    now = context.ids.now()
    code_end = min(to_text(now + api_keys.CODE_LIFE), maker.expires_at or to_text(now + api_keys.CODE_LIFE))
    grant = replace(_grant_of(maker), expires_at=code_end)
    minted = mint_key(context.ids, maker.team_id, CONSOLE, grant, api_keys.CODE_PREFIX)
    minted = replace(minted, key=replace(minted.key, parent_id=maker.id))

    def work(connection: Connection) -> Minted:
        # The maker may have been revoked since the request was authenticated.
        if not get_key(connection, maker.team_id, maker.id).is_live(to_text(now)):
            raise ServiceError(ErrorCode.INVALID_PROJECT_KEY, "This API key has expired or was revoked.")
        forget_console_keys(connection, maker.team_id, to_text(now))
        create_key(connection, minted.key)
        return minted

    return await context.write(work)


async def exchange_code(context: Context, code: str) -> Minted:
    """Turn the code of a console session into its key. Raises `invalid_project_key`, also for a code that was used."""
    refused = ServiceError(
        ErrorCode.INVALID_PROJECT_KEY,
        f"This is no code of this service, or it was used before, or is older than {api_keys.CODE_LIFE.seconds} s.",
    )
    parts = api_keys.parse(code, api_keys.CODE_PREFIX)
    if parts is None:
        raise refused
    now = context.ids.now()
    text = api_keys.mint(parts.key_id, context.ids.random(32))
    secret = api_keys.parse(text)

    def work(connection: Connection) -> Minted:
        key = find_key(connection, parts.key_id)
        parent = find_key(connection, key.parent_id) if key and key.parent_id else None
        if key is None or parent is None or secret is None or not key.is_live(to_text(now)):
            raise refused
        end = to_text(now + api_keys.CONSOLE_LIFE)
        expires_at = min(end, parent.expires_at or end)
        if not replace_secret(connection, key.id, parts.secret_hash, secret.secret_hash, expires_at):
            raise refused
        return Minted(replace(key, secret_hash=secret.secret_hash, expires_at=expires_at), text)

    return await context.write(work)


async def list_visible_keys(context: Context, key: KeyRow) -> list[KeyRow]:
    """List the key itself and the keys that it could have created, oldest first."""
    found = await context.read_in_thread(lambda connection: list_keys(connection, key.team_id))
    return [each for each in found if _is_visible(key, each)]


async def revoke(context: Context, key: KeyRow, key_id: str) -> KeyRow:
    """Revoke a key, so that later requests with it are refused. Raises NotFound."""
    now = context.clock.timestamp()

    def work(connection: Connection) -> KeyRow:
        found = get_key(connection, key.team_id, key_id)
        if not _is_visible(key, found):
            raise NotFound(ErrorCode.KEY_NOT_FOUND, f"There is no key {key_id!r}.")
        revoke_key(connection, key.team_id, key_id, now)
        return get_key(connection, key.team_id, key_id)

    return await context.write(work)


def view_key(key: KeyRow) -> wire.Key:
    """Convert a key to its API form, without its hash."""
    return wire.Key(
        id=key.id,
        object="api_key",
        name=key.name,
        hint=api_keys.hint(key.id),
        capabilities=list(key.capabilities),
        buckets=None if key.buckets is None else list(key.buckets),
        models=None if key.models is None else list(key.models),
        expires_at=key.expires_at,
        revoked_at=key.revoked_at,
        created_at=key.created_at,
    )


def view_new_key(minted: Minted) -> wire.NewKey:
    return wire.NewKey(**view_key(minted.key), key=minted.text or None)


def _grant_of(key: KeyRow) -> Grant:
    return Grant(capabilities=key.capabilities, buckets=key.buckets, models=key.models, expires_at=key.expires_at)


def _is_visible(key: KeyRow, other: KeyRow) -> bool:
    return other.id == key.id or covers(_grant_of(key), _grant_of(other))


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
