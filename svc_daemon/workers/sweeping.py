"""The sweeper: clears what deletes left, puts back what expired leases hold, and at boot removes what a kill left."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from svc_daemon.operations.contexts import Context
from svc_daemon.operations.indexing import release_expired
from svc_daemon.operations.sweeping import STEP_LIMIT, clean_tombstones, forget_old_keys, remove_index_orphans
from svc_daemon.operations.syncing import release_expired_syncs

log = logging.getLogger(__name__)

#: The look-round: leases are checked, and what an error left over is tried again, this often in seconds.
ROUND_S = 10.0
#: Idempotency keys are purged once in so many rounds: about an hour.
ROUNDS_PER_PURGE = 360


class SweepingWorker:
    """Runs until it is cancelled; every step can be repeated."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def run(self) -> None:
        await self._step(remove_index_orphans)
        rounds = 0
        while True:
            self._context.wakes.sweeping.clear()
            while await self._step(clean_tombstones) == STEP_LIMIT:
                pass
            if not await self._is_woken():
                await self._look_round(purge=rounds % ROUNDS_PER_PURGE == 0)
                rounds += 1

    async def _is_woken(self) -> bool:
        """Wait for a delete or for the look-round; True for a delete."""
        try:
            async with asyncio.timeout(ROUND_S):
                return await self._context.wakes.sweeping.wait()
        except TimeoutError:
            return False

    async def _look_round(self, *, purge: bool) -> None:
        await self._step(_release_tasks)
        await self._step(_release_syncs)
        if purge:
            await self._step(forget_old_keys)

    async def _step(self, step: Callable[[Context], Awaitable[int]]) -> int:
        try:
            return await step(self._context)
        except Exception:
            # Whatever it is, the next round tries again; the other steps must go on.
            log.exception("sweeping went wrong")
            return 0


async def _release_tasks(context: Context) -> int:
    return await release_expired(context, context.clock.monotonic())


async def _release_syncs(context: Context) -> int:
    return await release_expired_syncs(context, context.clock.monotonic())
