"""Rebuilds an index that is found damaged, or without what searches need."""

import asyncio
import logging
from datetime import timedelta
from functools import partial

from svc_daemon.core import task_retries
from svc_daemon.core.times import to_text
from svc_daemon.operations.index.rebuilding import INDEX, queue_rebuild
from svc_daemon.process.contexts import Context
from svc_daemon.provider.contract import Building
from svc_daemon.provider.errors import IndexDamaged
from svc_daemon.store.rows import tasks
from svc_daemon.store.rows.tasks import TaskRow, find_last_rebuild
from svc_daemon.store.rows.teams import find_team

log = logging.getLogger(__name__)

#: If an index is damaged again within this time, its disk may be failing, so the rebuild is delayed.
SOON_S = 3600


async def rebuild_damaged(context: Context) -> None:
    """Queue a rebuild for every team whose index was found damaged, or without what searches need."""
    while context.wakes.building:
        team_id = next(iter(context.wakes.building))
        if context.read(partial(find_team, team=team_id)) is not None and await find_building(context, team_id):
            log.warning("the words of %s are indexed again from its texts, and its sources are not ready", team_id)
            await context.write(lambda connection: queue_rebuild(connection, context.ids, team_id, stage=INDEX))  # noqa: B023 - run at once
        context.wakes.building.discard(team_id)
    while context.wakes.damaged:
        team_id = next(iter(context.wakes.damaged))
        await _rebuild_damaged(context, team_id)
        context.wakes.damaged.discard(team_id)


async def _rebuild_damaged(context: Context, team_id: str) -> None:
    soon = to_text(context.clock.now() - timedelta(seconds=SOON_S))
    if context.read(partial(find_team, team=team_id)) is None:
        # The team isn't in the database, so it has no sources to index.
        return
    last = context.read(partial(find_last_rebuild, team_id=team_id))
    if last is not None and last.finished_at is None:
        # The unfinished rebuild will repair this damage too.
        return
    due_at = None
    if last is not None and (last.finished_at or "") > soon:
        due_at = context.clock.timestamp(task_retries.LONGEST_PAUSE_S)
        log.error(
            "the index of %s is damaged again, soon after it was rebuilt (%s): look at the disk; the next try is in"
            " %d s, and its sources are not ready until then",
            team_id,
            last.id,
            task_retries.LONGEST_PAUSE_S,
        )
    else:
        log.error("the index of %s is damaged: it is rebuilt from the stored files", team_id)
    await context.write(lambda connection: queue_rebuild(connection, context.ids, team_id, due_at))


async def find_building(context: Context, team_id: str) -> Building | None:
    """Return how far the index has rebuilt what searches need; None if it rebuilds nothing, or is damaged."""
    try:
        return await asyncio.to_thread(context.provider.find_building, team_id)
    except IndexDamaged:
        return None


async def note_building(context: Context, task: TaskRow, building: Building) -> None:
    """Record how far the index has rebuilt what searches need."""
    await context.write(lambda c: tasks.update_progress(c, task, INDEX, building.done, building.total))
