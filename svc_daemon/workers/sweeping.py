"""The sweeper: clears what deletes left, puts back what expired leases hold, and forgets what has ended."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from svc_daemon.operations.indexing import release_expired
from svc_daemon.operations.leftovers import forget_asides
from svc_daemon.operations.sweeping import (
    clean_tombstones,
    expire_uploads,
    forget_ended,
    forget_old_keys,
    recall_far_pauses,
    reconcile_index,
)
from svc_daemon.operations.syncing import release_expired_syncs
from svc_daemon.process.contexts import Context

log = logging.getLogger(__name__)

#: The look-round: leases are checked, and what an error left over is tried again, this often in seconds.
ROUND_S = 10.0
#: Old keys and what ended long ago are purged once in so many rounds: about an hour.
ROUNDS_PER_PURGE = 360


class SweepingWorker:
    """Runs until it is cancelled; every step can be repeated."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def run(self) -> None:
        await self._step(reconcile_index)
        monotonic = self._context.clock.monotonic
        rounds, due_s = 0, monotonic() + ROUND_S
        while True:
            self._context.wakes.sweeping.clear()
            await self._step(clean_tombstones)
            await self._wait_until(due_s)
            # Deletes without a pause must not put off the look-round.
            if monotonic() >= due_s:
                await self._look_round(rounds)
                rounds, due_s = rounds + 1, monotonic() + ROUND_S

    async def _wait_until(self, due_s: float) -> None:
        """Wait for a delete or for the look-round, whichever comes first."""
        with suppress(TimeoutError):
            async with asyncio.timeout(due_s - self._context.clock.monotonic()):
                await self._context.wakes.sweeping.wait()

    async def _look_round(self, rounds: int) -> None:
        await self._step(_release_tasks)
        await self._step(_release_syncs)
        await self._step(expire_uploads)
        await self._step(recall_far_pauses)
        if rounds % ROUNDS_PER_PURGE:
            return
        await self._step(forget_old_keys)
        await self._step(forget_ended)
        if rounds:
            # Not right after a start: a clock that is wrong then is often set a moment later, and these files may be
            # the only copies.
            await self._step(forget_asides)

    async def _step(self, step: Callable[[Context], Awaitable[int]]) -> int:
        try:
            return await step(self._context)
        except Exception as error:
            # Whatever it is, the next round tries again; the other steps must go on.
            if not await self._context.shortages.is_cause_of(error):
                log.exception("sweeping went wrong")
            return 0


async def _release_tasks(context: Context) -> int:
    if context.shortages.now is not None:
        # Workers may be alive that could not write it down.
        return 0
    return await release_expired(context, context.clock.monotonic())


async def _release_syncs(context: Context) -> int:
    return await release_expired_syncs(context, context.clock.monotonic())
