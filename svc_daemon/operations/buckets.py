"""Creates, lists, shows and updates buckets."""

from dataclasses import asdict, replace

from pydantic import ValidationError

from svc_daemon.core import ids, readiness
from svc_daemon.core.json_bodies import refusal
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import ServiceError
from svc_daemon.operations.shared.events import bucket_event, record_events
from svc_daemon.operations.shared.idempotency import Creation, replaying, store_answer
from svc_daemon.operations.shared.reachable_rows import get_reachable_bucket
from svc_daemon.operations.shared.response_objects import view_bucket
from svc_daemon.process.contexts import Context
from svc_daemon.store.rows import buckets
from svc_daemon.store.rows.keys import KeyRow
from svc_daemon.store.rows.sources.memberships import mark_rechunks
from svc_daemon.wire import buckets as wire
from svc_daemon.wire.events import EventType
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.light.field_errors import plain


async def put_bucket(context: Context, key: KeyRow, slug: str, fields: wire.BucketFields) -> tuple[wire.Bucket, bool]:
    """Get or create the bucket with this slug. Returns the bucket, and whether this call created the bucket.

    Raises `bucket_slug_exists` if the bucket exists but is not active.
    """
    existing = context.read(lambda connection: check_put(connection, key, slug))
    if existing is not None:
        return await context.read_in_thread(lambda connection: _view(connection, existing)), False
    wanted = new_bucket(context, key, slug, fields)

    def work(connection: Connection) -> tuple[wire.Bucket, bool]:
        created = buckets.create_bucket(connection, wanted)
        if created:
            made = bucket_event(EventType.BUCKET_CREATED, wanted, key.id)
            record_events(connection, context.ids, key.team_id, [made])
        bucket = check_put(connection, key, slug) or wanted
        return _view(connection, bucket), created

    return await context.write(work)


def check_put(connection: Connection, key: KeyRow, slug: str) -> buckets.BucketRow | None:
    """Return the existing bucket, or None if `put_bucket` would create it; raises the errors of `put_bucket`."""
    existing = buckets.find_bucket(connection, key.team_id, slug)
    if key.is_limited and (existing is None or not key.reaches([existing.id])):
        raise _limited()
    if existing is not None and existing.status != readiness.ACTIVE:
        raise _slug_taken(existing)
    return existing


def check_create(connection: Connection, key: KeyRow, slug: str) -> None:
    """Raise the errors that creating a bucket with this slug would raise."""
    if key.is_limited:
        raise _limited()
    existing = buckets.find_bucket(connection, key.team_id, slug)
    if existing is not None:
        raise _slug_taken(existing)


async def create_new_bucket(context: Context, request: Creation, fields: wire.BucketCreate) -> Creation:
    """Create a bucket; raises `bucket_slug_exists`, unless this repeats an earlier request."""
    wanted = new_bucket(context, request.key, fields.slug, fields)

    def work(connection: Connection) -> Creation:
        check_create(connection, request.key, wanted.slug)
        buckets.create_bucket(connection, wanted)
        made = bucket_event(EventType.BUCKET_CREATED, wanted, request.key.id)
        record_events(connection, context.ids, wanted.team_id, [made])
        body = _view(connection, wanted)
        return store_answer(connection, context, request, body)

    async with replaying(context, request) as earlier:
        if earlier is not None:
            return earlier
        return await context.write(work)


async def list_reachable_buckets(
    context: Context, key: KeyRow, *, include_archived: bool, members: bool
) -> list[wire.Bucket]:
    """List the buckets that the key can reach, oldest first, without buckets that are being deleted."""
    statuses = (readiness.ACTIVE, readiness.ARCHIVED) if include_archived else (readiness.ACTIVE,)

    def work(connection: Connection) -> list[wire.Bucket]:
        found = buckets.list_buckets(connection, key.team_id, statuses)
        reachable = [bucket for bucket in found if key.reaches([bucket.id])]
        return [_view(connection, bucket, members=members) for bucket in reachable]

    return await context.read_in_thread(work)


async def show_bucket(context: Context, key: KeyRow, bucket: str, *, members: bool) -> wire.Bucket:
    """Return the bucket, even if it is archived or being deleted."""

    def work(connection: Connection) -> wire.Bucket:
        found = get_reachable_bucket(connection, key, bucket)
        return _view(connection, found, members=members)

    return await context.read_in_thread(work)


async def change_bucket(context: Context, key: KeyRow, bucket: str, change: wire.BucketUpdate) -> wire.Bucket:
    """Update the fields that were sent; raises `delete_in_progress`."""
    sent = change.model_dump(exclude_unset=True, exclude_none=True)

    def work(connection: Connection) -> wire.Bucket:
        found = get_reachable_bucket(connection, key, bucket)
        if found.status == readiness.DELETING:
            raise ServiceError(ErrorCode.DELETE_IN_PROGRESS, f"The bucket {bucket!r} is being deleted.")
        if not sent:
            return _view(connection, found)
        # Start from the row as stored now, because another request may have changed the bucket meanwhile.
        fields = sent | ({} if change.chunking is None else {"chunking": _change_chunking(found, sent["chunking"])})
        changed = replace(found, **fields, updated_at=context.clock.timestamp())
        buckets.update_bucket(connection, changed)
        if buckets.chunking_of(changed) != buckets.chunking_of(found):
            mark_rechunks(connection, key.team_id, found.id)
        buckets.touch_bucket(connection, found.id)
        is_archived = changed.status == readiness.ARCHIVED != found.status
        kind = EventType.BUCKET_ARCHIVED if is_archived else EventType.BUCKET_UPDATED
        record_events(connection, context.ids, key.team_id, [bucket_event(kind, changed, key.id)])
        return _view(connection, changed)

    shown = await context.write(work)
    context.wakes.rechunking.set()
    return shown


def _view(connection: Connection, bucket: buckets.BucketRow, *, members: bool = True) -> wire.Bucket:
    """Convert a bucket to its API form, without the ids of its members unless `members` is set."""
    shown = view_bucket(bucket, buckets.take_census(connection, bucket.id, members=members))
    if not members:
        del shown["knowledgeIds"]
    return shown


def _change_chunking(bucket: buckets.BucketRow, sent: dict[str, int]) -> wire.ChunkSizes:
    """Return the bucket's chunk sizes, updated by the sent sizes. If no sizes are sent, return the default sizes.

    Raises `invalid_request` if the sizes contradict each other.
    """
    sizes = {**asdict(buckets.chunking_of(bucket)), **sent} if sent else {}
    try:
        return wire.Chunking(**sizes).sizes()
    except ValidationError as error:
        merged = ", ".join(f"{name} {size}" for name, size in sizes.items())
        reason = plain(error.errors()[0]["msg"]).removesuffix(".")
        raise refusal("chunking", f"{reason}; with what is stored: {merged}.") from error


def new_bucket(context: Context, key: KeyRow, slug: str, fields: wire.BucketFields) -> buckets.BucketRow:
    now = context.clock.timestamp()
    return buckets.BucketRow(
        id=context.ids.make(ids.BUCKET),
        team_id=key.team_id,
        slug=slug,
        name=fields.name or slug,
        description=fields.description or "",
        metadata=fields.metadata,
        chunking=fields.chunking.sizes() if fields.chunking else None,
        created_at=now,
        updated_at=now,
    )


def _slug_taken(bucket: buckets.BucketRow) -> ServiceError:
    return ServiceError(
        ErrorCode.BUCKET_SLUG_EXISTS,
        f"The team has a bucket {bucket.slug!r} ({bucket.status}).",
        slug=bucket.slug,
        bucket_id=bucket.id,
        status=bucket.status,
    )


def _limited() -> ServiceError:
    """Build the error for a key that is limited to some buckets, and therefore can't create a bucket."""
    return ServiceError(
        ErrorCode.FORBIDDEN_PROJECT_KEY,
        "This key is limited to certain buckets and can't create others.",
        required_capability="knowledge:bucket:create",
    )
