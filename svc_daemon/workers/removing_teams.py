"""The removing worker: removes teams with everything that belongs to them."""

import asyncio
import logging
import random
from functools import partial

from svc_daemon.core import task_retries
from svc_daemon.operations.team_removals import (
    claim_removal,
    give_back_removal,
    is_removing,
    park_removal,
    remove_contents,
    remove_index,
    remove_rows,
)
from svc_daemon.process.contexts import Context
from svc_daemon.store.tasks import TaskRow, next_attempt_due
from svc_daemon.wire.tasks import TEAM_REMOVAL
from svc_daemon.workers.runners import Worker, keep_leases

log = logging.getLogger(__name__)

#: Interval in seconds for checking whether the team's other work has ended.
PAUSE_S = 0.2


class RemovingWorker(Worker):
    """Removes teams, one at a time."""

    doing = "removing a team"

    def __init__(self, context: Context) -> None:
        super().__init__(context, context.wakes.removing)

    async def work(self) -> float:
        task = await claim_removal(self.context)
        if task is None:
            return self.seconds_until(self.context.read(partial(next_attempt_due, task_type=TEAM_REMOVAL)))
        beat = asyncio.create_task(keep_leases(self.context, [task]))
        try:
            await self._remove(task)
        except asyncio.CancelledError:
            await park_removal(self.context, task)
            raise
        except Exception as error:
            await self.context.shortages.get_through(partial(self._give_back, task, error))
        finally:
            beat.cancel()
        return 0

    async def _remove(self, task: TaskRow) -> None:
        log.info("the team %s is being removed (%s)", task.team_id, task.id)
        while is_removing(self.context, task):
            if await remove_contents(self.context, task.team_id):
                await asyncio.sleep(PAUSE_S)
                continue
            await remove_index(self.context, task.team_id)
            await remove_rows(self.context, task)
            if is_removing(self.context, task):
                await asyncio.sleep(PAUSE_S)
        log.info("the team %s is removed", task.team_id)

    async def _give_back(self, task: TaskRow, error: Exception) -> None:
        if await self.context.shortages.is_cause_of(error, lacks=()):
            await park_removal(self.context, task)
            await asyncio.sleep(PAUSE_S)
            return
        log.error("removing the team %s failed, tried again", task.team_id, exc_info=error)
        pause_s = task_retries.pause_s(task.attempt, random.SystemRandom().random())
        await give_back_removal(self.context, task, "Removing the team failed; the log has the cause.", pause_s)
