"""Deletes a team with all its buckets, sources, keys, agents, files and index.

First, the team's keys are revoked and a task is queued. A worker then repeats all steps until nothing is left, because
requests that began earlier may still add something. The last transaction deletes the team.
"""

import asyncio
from functools import partial

from svc_daemon.core import ids
from svc_daemon.core.ids import Ids
from svc_daemon.core.json_bodies import refusal
from svc_daemon.core.times import to_text
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import NotFound, ServiceError
from svc_daemon.operations.keys import get_team, view_team
from svc_daemon.operations.remove.bucket_deletions import end_session
from svc_daemon.operations.remove.setting_aside import count_set_aside_files
from svc_daemon.operations.remove.source_deletions import delete_source
from svc_daemon.operations.remove.sweeping import clean_tombstones
from svc_daemon.operations.shared.leases import claim_next
from svc_daemon.process.contexts import Context
from svc_daemon.provider.errors import IndexDamaged
from svc_daemon.store.migrations import list_tables
from svc_daemon.store.rows import sessions, tasks
from svc_daemon.store.rows import teams as store
from svc_daemon.store.rows.sources.sources import find_source
from svc_daemon.store.rows.tasks import TaskRow
from svc_daemon.store.rows.teams import list_team_ids
from svc_daemon.wire import keys as wire
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.tasks import TEAM_REMOVAL

#: Removals are retried without limit, but clients see no higher attempt number than this.
ATTEMPTS = 3
#: The name of the task's only stage, shown in its progress.
STAGE = "delete"
#: Maximum number of sources, and of other database rows, deleted in one transaction.
SOURCES_PER_STEP, ROWS_PER_STEP = 200, 1000


def queue_removal(connection: Connection, make_ids: Ids, team: str) -> wire.Team:
    """Revoke the team's keys and queue its removal, unless the removal is already queued. `team` is an id or name.

    Raises NotFound, and `invalid_request` if there is no other team.
    """
    found = get_team(connection, team)
    if store.find_removal(connection, found.id) is None:
        remaining = [each for each in list_team_ids(connection) if store.find_removal(connection, each) is None]
        if remaining == [found.id]:
            raise refusal("team", f"{found.name!r} is the only team; `svc-daemon team create` makes another one.")
        now = to_text(make_ids.now())
        task = TaskRow(
            id=make_ids.make(ids.TASK),
            team_id=found.id,
            type=TEAM_REMOVAL,
            source_id=None,
            max_attempts=ATTEMPTS,
            created_at=now,
        )
        tasks.create_tasks(connection, [task])
        store.revoke_keys(connection, found.id, now)
    return view_team(connection, found)


async def claim_removal(context: Context) -> TaskRow | None:
    """Claim a team's removal that is due, or return None."""

    return await claim_next(context, TEAM_REMOVAL, STAGE)


def is_removing(context: Context, task: TaskRow) -> bool:
    """Return whether this worker still holds the task, and the team still exists."""
    return context.read(partial(tasks.is_held, task=task))


async def delete_contents(context: Context, team_id: str) -> bool:
    """Cancel the team's upload sessions and delete its sources.

    Returns whether the team still has sources, open uploads or unfinished tasks.
    """
    gone, after_id = NotFound(ErrorCode.NOT_FOUND, "The team was removed.").as_error(), ""
    while found := context.read(
        partial(sessions.list_open_of_team, team_id=team_id, after_id=after_id, limit=SOURCES_PER_STEP)
    ):
        for session in found:
            await end_session(context, session, gone)
        after_id = found[-1].id

    def work(connection: Connection) -> int:
        source_ids = store.list_idle_sources(connection, team_id, SOURCES_PER_STEP)
        for source_id in source_ids:
            source = find_source(connection, team_id, source_id)
            if source is not None:
                delete_source(connection, context, source)
        return len(source_ids)

    while await context.write(work):
        pass
    return context.read(partial(store.is_busy, team_id=team_id)) and not await _cancel_rebuild(context, team_id)


async def _cancel_rebuild(context: Context, team_id: str) -> bool:
    """Cancel the team's queued rebuild, which might never succeed.

    Returns whether a rebuild was canceled and the team is no longer in use.
    """

    def work(connection: Connection) -> bool:
        rebuild = tasks.find_open_rebuild(connection, team_id)
        if rebuild is None or rebuild.status != "queued":
            return False
        tasks.cancel_task(connection, rebuild.id, context.clock.timestamp())
        return not store.is_busy(connection, team_id)

    return await context.write(work)


async def delete_index(context: Context, team_id: str) -> None:
    """Delete the team's files that were moved aside, and then the team's index, which names these files."""
    names = await asyncio.to_thread(context.set_aside_files.list_names)
    if names:
        try:
            listed = await asyncio.to_thread(lambda: list(context.provider.list_documents(team_id)))
        except IndexDamaged:
            # A damaged index doesn't show which files are the team's. They are deleted after some days anyway.
            listed = []
        known = {document.source_id for document in listed}
        await asyncio.to_thread(
            context.set_aside_files.remove, [name for name in names if ids.source_of(name) in known]
        )
        await count_set_aside_files(context)
    await asyncio.to_thread(context.provider.delete_team, team_id)


async def delete_rows(context: Context, task: TaskRow) -> None:
    """Clean up the bytes of the deleted sources, then delete all rows of the team.

    Stops if the team is in use again, or if some bytes could not be removed. The worker then repeats all steps.
    """
    await clean_tombstones(context)
    # Delete the bytes of ended sessions before their rows: without the rows, the bytes could not be found.
    parts = await asyncio.to_thread(context.parts.list_ids)
    if context.read(partial(store.is_busy, team_id=task.team_id)):
        return
    ended = context.read(partial(sessions.list_of_team_among, team_id=task.team_id, session_ids=parts))
    await context.parts.delete(*ended)
    tables = list_tables()

    def work(connection: Connection) -> bool:
        team_id = task.team_id
        is_held = tasks.is_held(connection, task)
        if not is_held or store.is_busy(connection, team_id) or store.has_uncleaned(connection, team_id):
            return False
        if store.delete_most_rows(connection, tables, team_id, ROWS_PER_STEP):
            return True
        store.delete_team(connection, team_id)
        return False

    while await context.write(work):
        pass


async def give_back_removal(context: Context, task: TaskRow, reason: str, pause_s: float) -> None:
    """Schedule another attempt after a pause."""
    error = ServiceError(ErrorCode.INTERNAL_ERROR, reason).as_error()
    due_at = context.clock.timestamp(pause_s)
    await context.write(lambda connection: tasks.retry_task(connection, task, due_at, error, is_endless=True))
