"""The workers that delete buckets and remove teams, with everything that belongs to them."""

import asyncio
import logging
import random

from svc_daemon.core import task_retries
from svc_daemon.errors import ServiceError
from svc_daemon.operations.remove.bucket_deletions import (
    claim_cascade,
    detach_members,
    end_sessions,
    finish_cascade,
    give_back_cascade,
    next_members,
    skip_member,
)
from svc_daemon.operations.remove.team_removals import (
    claim_removal,
    delete_contents,
    delete_index,
    delete_rows,
    give_back_removal,
    is_removing,
)
from svc_daemon.operations.shared.leases import park
from svc_daemon.process.contexts import Context
from svc_daemon.store.rows.tasks import TaskRow
from svc_daemon.wire.tasks import CASCADE, TEAM_REMOVAL
from svc_daemon.workers.runners import PAUSE_AFTER_ERROR_S, TaskWorker

log = logging.getLogger(__name__)


class DeletingWorker(TaskWorker):
    """Deletes buckets one at a time. First, it removes the bucket's sources in batches.

    If a batch fails, its sources are removed one by one, so that one bad source doesn't block the others.
    """

    doing = "deleting a bucket"
    task_type = CASCADE

    def __init__(self, context: Context) -> None:
        super().__init__(context, context.wakes.cascading)

    async def claim(self) -> TaskRow | None:
        return await claim_cascade(self.context)

    async def perform(self, task: TaskRow) -> None:
        while source_ids := next_members(self.context, task):
            await self._remove(task, source_ids)
        await end_sessions(self.context, task)
        await finish_cascade(self.context, task)

    async def outlast(self, error: Exception, doing: str) -> None:
        """Wait briefly after an error, even during a shortage, because deleting a bucket frees disk space."""
        if not await self._is_short(error):
            log.error("%s failed", doing, exc_info=error)
        await asyncio.sleep(PAUSE_AFTER_ERROR_S)

    async def _is_short(self, error: Exception) -> bool:
        """Return whether this error was caused by a shortage of memory or disk space."""
        return await self.context.shortages.is_cause_of(error, kinds=())

    async def _remove(self, task: TaskRow, source_ids: list[str], *, singly: bool = False) -> None:
        try:
            await detach_members(self.context, task, source_ids)
        except Exception as error:
            if await self._is_short(error):
                raise
            if singly:
                log.warning("%s can't be deleted: %s", source_ids[0], error)
                await skip_member(self.context, task, source_ids[0], _explain(error))
                return
            log.exception("a step of %s failed; the bucket's members are now deleted one by one", task.id)
            for source_id in source_ids:
                await self._remove(task, [source_id], singly=True)

    async def give_back(self, task: TaskRow, error: Exception) -> None:
        if await self._is_short(error):
            await park(self.context, task)
            await asyncio.sleep(PAUSE_AFTER_ERROR_S)
            return
        log.error("deleting a bucket (%s) failed", task.id, exc_info=error)
        jitter = random.SystemRandom().random()
        await give_back_cascade(self.context, task, _explain(error), jitter)


def _explain(error: Exception) -> str:
    """Return a sentence about the error for API users.

    Database errors are only logged, because their texts may contain data.
    """
    return (
        error.message if isinstance(error, ServiceError) else "Something unexpected went wrong; the log has the cause."
    )


#: Interval in seconds for checking whether the team's other work has ended.
PAUSE_S = 0.2


class RemovingWorker(TaskWorker):
    """Removes teams, one at a time."""

    doing = "removing a team"
    task_type = TEAM_REMOVAL

    def __init__(self, context: Context) -> None:
        super().__init__(context, context.wakes.removing)

    async def claim(self) -> TaskRow | None:
        return await claim_removal(self.context)

    async def perform(self, task: TaskRow) -> None:
        log.info("the team %s is being removed (%s)", task.team_id, task.id)
        while is_removing(self.context, task):
            if await delete_contents(self.context, task.team_id):
                await asyncio.sleep(PAUSE_S)
                continue
            await delete_index(self.context, task.team_id)
            await delete_rows(self.context, task)
            if is_removing(self.context, task):
                await asyncio.sleep(PAUSE_S)
        log.info("the team %s is removed", task.team_id)

    async def give_back(self, task: TaskRow, error: Exception) -> None:
        if await self.context.shortages.is_cause_of(error, kinds=()):
            await park(self.context, task)
            await asyncio.sleep(PAUSE_S)
            return
        log.error("removing the team %s failed, tried again", task.team_id, exc_info=error)
        pause_s = task_retries.pause_s(task.attempt, random.SystemRandom().random())
        await give_back_removal(self.context, task, "Removing the team failed; the log has the cause.", pause_s)
