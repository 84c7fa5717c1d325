"""The bucket sync worker: tells the index which buckets a source is in, then lets the membership be active.

It is alone in telling the index about buckets, and does one thing after the other, so that no older word overwrites a
newer one.
"""

import asyncio
import logging
import random
from functools import partial

from svc_daemon.operations.syncing import (
    Sync,
    claim_syncs,
    clean_detachments,
    complete_syncs,
    fail_sync,
    postpone_syncs,
    reindex_missing,
)
from svc_daemon.process.contexts import Context
from svc_daemon.process.shortages import Short
from svc_daemon.provider.errors import DocumentMissing, ProviderError
from svc_daemon.store.memberships import next_sync_due
from svc_daemon.workers.waiting import wait

log = logging.getLogger(__name__)

#: After an error of ours the loop waits this long, so that it can't spin.
PAUSE_AFTER_ERROR_S = 1.0


class SyncingWorker:
    """Runs until it is cancelled; a sync that was cut off is claimed again after the next start."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def run(self) -> None:
        while True:
            self._context.wakes.syncing.clear()
            try:
                busy = await self._sync_some()
                due_at = self._context.read(next_sync_due)
            except Exception as error:
                if await self._context.shortages.is_cause_of(error):
                    await self._context.shortages.passed()
                    continue
                log.exception("bucket sync went wrong")
                await asyncio.sleep(PAUSE_AFTER_ERROR_S)
                continue
            if not busy:
                await wait(self._context.wakes.syncing, due_at, self._context.clock)

    async def _sync_some(self) -> bool:
        """One round; False when there was nothing to do."""
        syncs = await claim_syncs(self._context)
        try:
            done = [sync for sync in syncs if await self._tell_index(sync)]
            if done:
                await complete_syncs(self._context, done)
        except Exception as error:
            if await self._context.shortages.is_cause_of(error):
                await self._context.shortages.get_through(partial(postpone_syncs, self._context, syncs))
                raise Short from error
            raise
        # After each round, or a stream of syncs would keep them waiting for ever.
        cleaned = await clean_detachments(self._context)
        return bool(syncs) or cleaned > 0

    async def _tell_index(self, sync: Sync) -> bool:
        try:
            await asyncio.to_thread(self._set_buckets, sync)
        except DocumentMissing:
            await reindex_missing(self._context, sync)
            return False
        except ProviderError as error:
            if await self._context.shortages.is_cause_of(error):
                raise Short from error
            log.warning("bucket sync of %s was refused: %s", sync.source.id, error)
            await fail_sync(self._context, sync, jitter=random.SystemRandom().random())
            return False
        return True

    def _set_buckets(self, sync: Sync) -> None:
        source = sync.source
        self._context.provider.set_buckets(source.team_id, source.id, source.generation, source.searched_places)
