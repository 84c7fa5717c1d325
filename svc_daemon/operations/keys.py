"""API keys: authenticates requests, checks what a key may reach, and creates, lists and revokes keys.

The rule that a key can't grant more than it has itself is in `core.access.api_keys`.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

from svc_daemon.core import ids, readiness
from svc_daemon.core.access import api_keys
from svc_daemon.core.access.api_keys import Grant, check_name, choose_capabilities, choose_expiry, covers, narrow
from svc_daemon.core.ids import Ids, is_allowed
from svc_daemon.core.times import to_text
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import NotFound, ServiceError
from svc_daemon.operations.replays import Outcome, Repeatable, replaying, store_answer
from svc_daemon.process.contexts import Context
from svc_daemon.store.buckets import BucketRow, get_bucket
from svc_daemon.store.cascades import find_cascade
from svc_daemon.store.keys import KeyRow, create_key, find_key, get_key, list_keys, revoke_key
from svc_daemon.store.sources import SourceRow, find_source, get_source
from svc_daemon.store.tasks import TaskRow, get_task
from svc_daemon.wire import keys as wire
from svc_daemon.wire.codes import ErrorCode
from svc_daemon.wire.tasks import REBUILD


def authenticate(context: Context, authorization: str | None) -> KeyRow:
    """Return the API key in the `Authorization` header; raises `invalid_project_key` if there is no valid one."""
    scheme, _, token = (authorization or "").partition(" ")
    if not token:
        raise ServiceError(ErrorCode.INVALID_PROJECT_KEY, "Send the header Authorization: Bearer <API_KEY>.")
    parts = api_keys.parse(token.strip()) if scheme.lower() == "bearer" else None
    if parts is None:
        raise ServiceError(ErrorCode.INVALID_PROJECT_KEY, "This is not an API key of this service.")
    key = context.look(lambda connection: find_key(connection, parts.key_id))
    if key is None or not api_keys.matches(key.secret_hash, parts):
        raise ServiceError(ErrorCode.INVALID_PROJECT_KEY, "There is no such API key.")
    if not key.is_live(context.clock.timestamp()):
        raise ServiceError(ErrorCode.INVALID_PROJECT_KEY, "This API key has expired or was revoked.")
    return key


def is_live(context: Context, key: KeyRow) -> bool:
    """Return whether the key is still valid; a request that lasts long, such as a stream, checks this repeatedly."""
    found = context.look(lambda connection: find_key(connection, key.id))
    return found is not None and found.is_live(context.clock.timestamp())


def require(key: KeyRow, capability: str) -> None:
    """Raise `forbidden_project_key` unless the key has the capability."""
    if capability not in key.capabilities:
        raise ServiceError(
            ErrorCode.FORBIDDEN_PROJECT_KEY,
            f"This needs a key with the capability {capability}.",
            required_capability=capability,
        )


def require_model(key: KeyRow, agent_id: str) -> None:
    """Raise `model_not_allowed` unless the key may use this agent."""
    if not is_allowed(key.models, agent_id):
        raise ServiceError(ErrorCode.MODEL_NOT_ALLOWED, f"This key may not use the agent {agent_id!r}.")


def get_reachable_bucket(connection: Connection, key: KeyRow, bucket: str) -> BucketRow:
    """Find a bucket by id or slug, whatever its status. Raises NotFound, also if the key can't reach the bucket."""
    found = get_bucket(connection, key.team_id, bucket)
    if key.buckets is not None and found.id not in key.buckets:
        raise NotFound(ErrorCode.BUCKET_NOT_FOUND, f"There is no bucket {bucket!r}.", bucket=bucket)
    return found


def get_usable_bucket(connection: Connection, key: KeyRow, bucket: str) -> BucketRow:
    """Return an active bucket. Raises NotFound if it is archived or being deleted, or if the key can't reach it."""
    found = get_reachable_bucket(connection, key, bucket)
    if found.status != readiness.ACTIVE:
        raise _not_usable(found, bucket)
    return found


def get_lasting_bucket(connection: Connection, key: KeyRow, bucket: str) -> BucketRow:
    """Return an active or archived bucket. Raises NotFound if it is being deleted, or the key can't reach it."""
    found = get_reachable_bucket(connection, key, bucket)
    if found.status == readiness.DELETING:
        raise _not_usable(found, bucket)
    return found


def get_reachable_source(connection: Connection, key: KeyRow, source_id: str) -> SourceRow:
    """Return a source in a bucket that the key can reach. Raises NotFound otherwise."""
    source = get_source(connection, key.team_id, source_id)
    if key.buckets is not None and not set(key.buckets) & set(source.places):
        raise NotFound(ErrorCode.SOURCE_NOT_FOUND, f"There is no source {source_id!r}.")
    return source


def get_changeable_source(connection: Connection, key: KeyRow, source_id: str) -> SourceRow:
    """Return a source that the key may change, which requires access to all of the source's buckets.

    Raises NotFound if the key can reach none of the buckets, and `forbidden_project_key` if it can reach only some.
    """
    source = get_reachable_source(connection, key, source_id)
    refuse_out_of_reach(key, source.places, "source", api_keys.FILE_CREATE)
    return source


def get_reachable_task(connection: Connection, key: KeyRow, task_id: str) -> TaskRow:
    """Return a task.

    A key limited to some buckets sees rebuilds, and the tasks that concern these buckets and their sources.
    """
    task = get_task(connection, key.team_id, task_id)
    if key.buckets is None or task.type == REBUILD:
        return task
    cascade = find_cascade(connection, task.id)
    if cascade is not None and cascade.bucket_id in key.buckets:
        return task
    source = find_source(connection, key.team_id, task.source_id or "")
    if source is None or not set(key.buckets) & set(source.places):
        raise NotFound(ErrorCode.TASK_NOT_FOUND, f"There is no task {task_id!r}.")
    return task


def refuse_out_of_reach(key: KeyRow, bucket_ids: Collection[str], noun: str, capability: str) -> None:
    """Raise `forbidden_project_key` unless the key can reach all of the buckets that the object to change is in."""
    if key.buckets is not None and not set(bucket_ids) <= set(key.buckets):
        raise ServiceError(
            ErrorCode.FORBIDDEN_PROJECT_KEY,
            f"The {noun} is also in buckets that this key can't reach; this needs a key that reaches all of them.",
            required_capability=capability,
        )


def _not_usable(found: BucketRow, bucket: str) -> NotFound:
    return NotFound(
        ErrorCode.BUCKET_NOT_FOUND, f"The bucket {bucket!r} is {found.status}.", bucket=bucket, status=found.status
    )


@dataclass(frozen=True, slots=True)
class Minted:
    """A key that was just created, and its text, which is shown once and not stored."""

    key: KeyRow
    text: str


def mint_key(make_ids: Ids, team_id: str, name: str, grant: Grant) -> Minted:
    """Generate a new API key without storing it."""
    text = api_keys.mint(make_ids.make(ids.KEY), make_ids.random(32))
    parts = api_keys.parse(text)
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
    """Build the key that the key `maker` asks for, without storing it. Raises the errors of creating a key."""
    check_name(fields.name)
    buckets = (get_lasting_bucket(connection, maker, bucket).id for bucket in fields.buckets or ())
    asked = Grant(
        capabilities=choose_capabilities(fields.preset, fields.capabilities),
        buckets=None if fields.buckets is None else tuple(dict.fromkeys(buckets)),
        models=None if fields.models is None else tuple(dict.fromkeys(fields.models)),
        expires_at=choose_expiry(fields.expires_at, make_ids.now()),
    )
    return mint_key(make_ids, maker.team_id, fields.name, narrow(_grant_of(maker), asked))


async def create_new_key(context: Context, request: Repeatable, fields: wire.KeyCreate) -> Outcome:
    """Create a key. Only the first response contains its text; the response stored for repeated requests does not."""

    def work(connection: Connection) -> Outcome:
        minted = plan_key(connection, context.ids, request.key, fields)
        create_key(connection, minted.key)
        store_answer(connection, context, request, view_new_key(replace(minted, text="")).model_dump())
        return Outcome(view_new_key(minted).model_dump())

    async with replaying(context, request) as earlier:
        if earlier is not None:
            return earlier
        return await context.write(work)


async def list_visible_keys(context: Context, key: KeyRow) -> list[KeyRow]:
    """List the key itself and the team's keys that it could have created, oldest first."""
    found = await context.read_aside(lambda connection: list_keys(connection, key.team_id))
    return [each for each in found if _is_visible(key, each)]


async def revoke(context: Context, key: KeyRow, key_id: str) -> KeyRow:
    """Revoke a key, so that later requests with it are refused; does nothing if it is revoked already.

    Raises NotFound.
    """
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
    return wire.NewKey(**view_key(minted.key).model_dump(), key=minted.text or None)


def _grant_of(key: KeyRow) -> Grant:
    return Grant(capabilities=key.capabilities, buckets=key.buckets, models=key.models, expires_at=key.expires_at)


def _is_visible(key: KeyRow, other: KeyRow) -> bool:
    return other.id == key.id or covers(_grant_of(key), _grant_of(other))
