"""The cascade worker: empties buckets that are being deleted, one after the other, a step at a time.

A step that goes wrong is tried again member by member, so that one that can't be deleted keeps no other from it.
"""

import asyncio
import logging
import random
from functools import partial

from svc_daemon.operations.cascades import (
    CascadeClaim,
    claim_cascade,
    end_uploads,
    finish_cascade,
    give_back_cascade,
    next_members,
    park_cascade,
    remove_members,
    skip_member,
)
from svc_daemon.process.contexts import Context
from svc_daemon.store.tasks import next_attempt_due
from svc_daemon.wire.tasks import CASCADE
from svc_daemon.workers.waiting import wait

log = logging.getLogger(__name__)

#: After an error of ours the loop waits this long, so that it can't spin.
PAUSE_AFTER_ERROR_S = 1.0


class CascadingWorker:
    """Runs until it is cancelled; a cascade that was cut off goes on after the next start."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def run(self) -> None:
        while True:
            self._context.wakes.cascading.clear()
            try:
                busy = await self._run_next()
            except Exception as error:
                if not await self._is_short(error):
                    log.exception("deleting a bucket went wrong")
                await asyncio.sleep(PAUSE_AFTER_ERROR_S)
                continue
            if not busy:
                due_at = self._context.read(partial(next_attempt_due, task_type=CASCADE))
                await wait(self._context.wakes.cascading, due_at, self._context.clock)

    async def _run_next(self) -> bool:
        """One cascade; False when none waits."""
        claim = await claim_cascade(self._context)
        if claim is None:
            return False
        try:
            await self._cascade(claim)
        except asyncio.CancelledError:
            await park_cascade(self._context, claim)
            raise
        except Exception as error:
            await self._context.shortages.get_through(partial(self._give_back, claim, error))
        return True

    async def _give_back(self, claim: CascadeClaim, error: Exception) -> None:
        if await self._is_short(error):
            await park_cascade(self._context, claim)
            await asyncio.sleep(PAUSE_AFTER_ERROR_S)
            return
        log.error("deleting the bucket %s went wrong", claim.cascade.bucket_id, exc_info=error)
        jitter = random.SystemRandom().random()
        await give_back_cascade(self._context, claim, str(error), jitter)

    async def _is_short(self, error: Exception) -> bool:
        """Only what the error names: a deletion makes room, and does not wait for what others lack."""
        return await self._context.shortages.is_cause_of(error, lacks=())

    async def _cascade(self, claim: CascadeClaim) -> None:
        while source_ids := next_members(self._context, claim):
            await self._remove(claim, source_ids)
        await end_uploads(self._context, claim)
        await finish_cascade(self._context, claim)

    async def _remove(self, claim: CascadeClaim, source_ids: list[str]) -> None:
        try:
            await remove_members(self._context, claim, source_ids)
        except Exception as error:
            if await self._is_short(error):
                raise
            log.exception("a step of deleting %s went wrong; member by member now", claim.cascade.bucket_id)
            for source_id in source_ids:
                await self._remove_one(claim, source_id)

    async def _remove_one(self, claim: CascadeClaim, source_id: str) -> None:
        try:
            await remove_members(self._context, claim, [source_id])
        except Exception as error:
            if await self._is_short(error):
                raise
            log.warning("%s can't be deleted: %s", source_id, error)
            await skip_member(self._context, claim, source_id, str(error))
