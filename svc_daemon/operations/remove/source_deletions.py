"""Deletes sources, or detaches them from a bucket.

A deletion first takes the source's database rows away, so that no search finds the source. The sweeper later cleans up
the stored file and the index rows.
"""

from collections.abc import Collection

from svc_daemon.core import readiness
from svc_daemon.core.access import api_keys
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import NotFound, ServiceError
from svc_daemon.operations.agents import list_agents_of, replace_in_policies
from svc_daemon.operations.shared.authorization import refuse_out_of_reach
from svc_daemon.operations.shared.batch_items import end_batches
from svc_daemon.operations.shared.events import record_events, source_event
from svc_daemon.operations.shared.outcomes import record_outcomes
from svc_daemon.operations.shared.reachable_rows import get_reachable_bucket, get_reachable_source
from svc_daemon.process.contexts import Context
from svc_daemon.store.rows.keys import KeyRow
from svc_daemon.store.rows.sources import sources
from svc_daemon.store.rows.sources.detachments import create_detachment
from svc_daemon.store.rows.sources.memberships import delete_membership, delete_memberships, schedule_syncs
from svc_daemon.store.rows.sources.sources import SourceRow, find_source
from svc_daemon.store.rows.tasks import cancel_tasks
from svc_daemon.store.rows.tombstones import create_tombstone
from svc_daemon.wire.events import EventType
from svc_daemon.wire.light.error_codes import ErrorCode


async def delete_everywhere(context: Context, key: KeyRow, source_id: str, *, force: bool) -> None:
    """Delete the source from all of its buckets.

    Raises `forbidden_project_key` if the key can't reach all of these buckets. Unless `force` is set, raises
    `delete_blocked` if an agent's policy names the source.
    """

    def work(connection: Connection) -> None:
        source = get_reachable_source(connection, key, source_id)
        refuse_out_of_reach(key, source.places, "source", api_keys.SOURCE_DELETE)
        agents = [] if force else [agent.id for agent in list_agents_of(connection, source.team_id, source.id)]
        if agents:
            raise ServiceError(
                ErrorCode.DELETE_BLOCKED,
                f"Agents name the source {source.id!r}: {', '.join(agents)}. force=true deletes it anyway.",
                agents=agents,
            )
        delete_source(connection, context, source, key_id=key.id)

    await context.write(work)
    context.wakes.sweeping.set()


async def detach_source(context: Context, key: KeyRow, bucket: str, source_id: str) -> tuple[str, list[str]]:
    """Detach the source from this bucket. Returns the bucket's id, and the ids of the source's other buckets."""

    def work(connection: Connection) -> tuple[str, list[str]]:
        found = get_reachable_bucket(connection, key, bucket)
        source = get_reachable_source(connection, key, source_id)
        if found.id not in source.places:
            raise NotFound(
                ErrorCode.SOURCE_NOT_FOUND, f"The source {source_id!r} is not a member of the bucket {bucket!r}."
            )
        detach_from(connection, context, source, found.id, key.id)
        return found.id, [other for other in source.places if other != found.id]

    left = await context.write(work)
    context.wakes.syncing.set()
    context.wakes.delivering.set()
    return left


def detach_from(
    connection: Connection, context: Context, source: SourceRow, bucket_id: str, key_id: str | None = None
) -> None:
    """Take the source out of the bucket, and schedule an update of the index.

    If only this bucket kept the source from being ready, the source is ready now, and `source.ready` is recorded.
    """
    was_active = delete_membership(connection, source.id, bucket_id) in (readiness.ACTIVE, None)
    create_detachment(connection, source.team_id, source.id)
    detached = source_event(EventType.SOURCE_DETACHED, source, [bucket_id], key_id)
    record_events(connection, context.ids, source.team_id, [detached])
    left = find_source(connection, source.team_id, source.id)
    if left is None or not left.places:
        end_batches(connection, context, source.team_id, [source.batch_id], key_id)
    if left is None or not left.is_complete or was_active:
        return
    if not left.in_maintenance:
        record_outcomes(connection, context, [left])
    else:
        # The index is being rebuilt. After that, the sync worker writes the buckets to the index and records the event.
        schedule_syncs(connection, source.id, context.clock.timestamp())


def remove_replaced(
    connection: Connection, context: Context, old: SourceRow, bucket_ids: Collection[str], successor_id: str
) -> None:
    """Detach the replaced source `old` from these buckets, or delete it if it has no other one."""
    if set(old.places) <= set(bucket_ids):
        delete_source(connection, context, old, replaced_by=successor_id)
        return
    for bucket_id in set(old.places) & set(bucket_ids):
        detach_from(connection, context, old, bucket_id)


def delete_source(
    connection: Connection,
    context: Context,
    source: SourceRow,
    replaced_by: str | None = None,
    key_id: str | None = None,
) -> None:
    """Delete the source's rows, and add a tombstone: a row that says what the sweeper has to clean up."""
    now = context.clock.timestamp()
    if replaced_by is not None:
        replace_in_policies(connection, source.team_id, source.id, replaced_by)
    delete_memberships(connection, source.id)
    cancel_tasks(connection, source.id, now)
    sources.delete_source(connection, source.team_id, source.id)
    create_tombstone(connection, source.team_id, source.id, replaced_by, now, source.blob)
    kind = EventType.SOURCE_DELETED if replaced_by is None else EventType.SOURCE_REPLACED
    facts = {} if replaced_by is None else {"replaced_by": replaced_by}
    record_events(connection, context.ids, source.team_id, [source_event(kind, source, key_id=key_id, **facts)])
    end_batches(connection, context, source.team_id, [source.batch_id], key_id)
