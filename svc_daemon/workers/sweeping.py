"""Two workers: one cleans up after deletes and expired leases, one records how many answers were given."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from svc_daemon.operations.indexing import release_expired
from svc_daemon.operations.setting_aside import forget_asides
from svc_daemon.operations.sweeping import (
    clean_tombstones,
    expire_uploads,
    forget_ended,
    forget_old_keys,
    recall_far_pauses,
    reconcile_index,
)
from svc_daemon.operations.syncing import release_expired_syncs
from svc_daemon.operations.usage import record_usage
from svc_daemon.process.contexts import Context
from svc_daemon.workers.runners import LONGEST_S, Worker

log = logging.getLogger(__name__)

#: Leases are checked, and what an error left over is tried again, this often in seconds.
ROUND_S = 10.0
#: Old keys and what ended long ago are purged once in so many rounds: about an hour.
ROUNDS_PER_PURGE = 360
#: The least time between two commits of counts, seconds.
COUNT_PAUSE_S = 1.0


class SweepingWorker(Worker):
    """Clears what deletes left, puts back what expired leases hold, and forgets what has ended.

    Every step can be repeated.
    """

    doing = "sweeping"

    def __init__(self, context: Context) -> None:
        super().__init__(context, context.wakes.sweeping)
        self._rounds = 0
        self._due_s: float | None = None

    async def work(self) -> float:
        monotonic = self.context.clock.monotonic
        if self._due_s is None:
            await _try(self, reconcile_index)
            self._due_s = monotonic() + ROUND_S
        await _try(self, clean_tombstones)
        now_s = monotonic()
        # Deletes without a pause must not put off the round.
        if now_s < self._due_s:
            return self._due_s - now_s
        # In a shortage workers may be alive that could not extend their lease.
        if self.context.shortages.now is None:
            await _try(self, lambda context: release_expired(context, now_s))
        await _try(self, lambda context: release_expired_syncs(context, now_s))
        await _try(self, expire_uploads)
        await _try(self, recall_far_pauses)
        if self._rounds % ROUNDS_PER_PURGE == 0:
            await _try(self, forget_old_keys)
            await _try(self, forget_ended)
            if self._rounds:
                # Not right after a start: a clock that is wrong then is often set a moment later, and these files may
                # be the only copies.
                await _try(self, forget_asides)
        self._rounds, self._due_s = self._rounds + 1, monotonic() + ROUND_S
        return ROUND_S


class CountingWorker(Worker):
    """Records how many answers and searches there were, many with one commit, and the rest at a stop."""

    doing = "counting answers"

    def __init__(self, context: Context) -> None:
        super().__init__(context, context.wakes.counting)

    async def work(self) -> float:
        await self.stop()
        if self.is_woken:
            await asyncio.sleep(COUNT_PAUSE_S)
        return LONGEST_S

    async def stop(self) -> None:
        recording = asyncio.create_task(_try(self, record_usage))
        try:
            await asyncio.shield(recording)
        except asyncio.CancelledError:
            # Not interrupted while writing: otherwise it would be unknown whether the counts were recorded.
            await recording
            raise


async def _try(worker: Worker, step: Callable[[Context], Awaitable[object]]) -> None:
    """Take a step that keeps no other from being taken; one that fails is repeated with the next round or answer."""
    try:
        await step(worker.context)
    except Exception as error:
        if not await worker.context.shortages.is_cause_of(error):
            log.exception("%s went wrong", worker.doing)
