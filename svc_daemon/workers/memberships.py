"""The workers that keep the index in step with the buckets: one syncs memberships, one empties deleted buckets."""

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
from svc_daemon.store.tasks import next_attempt_due
from svc_daemon.wire.tasks import CASCADE
from svc_daemon.workers.runners import PAUSE_AFTER_ERROR_S, Worker

log = logging.getLogger(__name__)


class SyncingWorker(Worker):
    """Has the index name a source's buckets, then makes the membership active.

    Only this worker sets buckets in the index, one source after the other, so that nothing older overwrites what is
    newer.
    """

    doing = "bucket sync"

    def __init__(self, context: Context) -> None:
        super().__init__(context, context.wakes.syncing)

    async def work(self) -> float:
        syncs = await claim_syncs(self.context)
        try:
            done = [sync for sync in syncs if await self._set_buckets(sync)]
            if done:
                await complete_syncs(self.context, done)
        except Exception as error:
            if await self.context.shortages.is_cause_of(error):
                await self.context.shortages.get_through(partial(postpone_syncs, self.context, syncs))
                raise Short from error
            raise
        # Done after each round, since a stream of syncs would delay it for ever.
        cleaned = await clean_detachments(self.context)
        return 0 if syncs or cleaned else self.seconds_until(self.context.read(next_sync_due))

    async def _set_buckets(self, sync: Sync) -> bool:
        """False where the membership can't become active yet."""
        source = sync.source
        try:
            await asyncio.to_thread(
                self.context.provider.set_buckets,
                source.team_id,
                source.id,
                source.generation,
                source.searched_places,
            )
        except DocumentMissing:
            await reindex_missing(self.context, sync)
            return False
        except ProviderError as error:
            if await self.context.shortages.is_cause_of(error):
                raise Short from error
            log.warning("bucket sync of %s was refused: %s", source.id, error)
            await fail_sync(self.context, sync, jitter=random.SystemRandom().random())
            return False
        return True


class CascadingWorker(Worker):
    """Empties buckets that are being deleted, one after the other, a step at a time.

    A step that fails is repeated member by member, so that one that can't be deleted keeps no other from it.
    """

    doing = "deleting a bucket"

    def __init__(self, context: Context) -> None:
        super().__init__(context, context.wakes.cascading)

    async def work(self) -> float:
        claim = await claim_cascade(self.context)
        if claim is None:
            return self.seconds_until(self.context.read(partial(next_attempt_due, task_type=CASCADE)))
        try:
            while source_ids := next_members(self.context, claim):
                await self._remove(claim, source_ids)
            await end_uploads(self.context, claim)
            await finish_cascade(self.context, claim)
        except asyncio.CancelledError:
            await park_cascade(self.context, claim)
            raise
        except Exception as error:
            await self.context.shortages.get_through(partial(self._give_back, claim, error))
        return 0

    async def outlast(self, error: Exception, doing: str) -> None:
        """A deletion makes room, and does not wait for the end of a shortage."""
        if not await self._is_short(error):
            log.error("%s went wrong", doing, exc_info=error)
        await asyncio.sleep(PAUSE_AFTER_ERROR_S)

    async def _is_short(self, error: Exception) -> bool:
        """Only if the error names a shortage: other shortages don't stop a deletion."""
        return await self.context.shortages.is_cause_of(error, lacks=())

    async def _remove(self, claim: CascadeClaim, source_ids: list[str], *, singly: bool = False) -> None:
        try:
            await remove_members(self.context, claim, source_ids)
        except Exception as error:
            if await self._is_short(error):
                raise
            if singly:
                log.warning("%s can't be deleted: %s", source_ids[0], error)
                await skip_member(self.context, claim, source_ids[0], str(error))
                return
            log.exception("a step of deleting %s went wrong; member by member now", claim.cascade.bucket_id)
            for source_id in source_ids:
                await self._remove(claim, [source_id], singly=True)

    async def _give_back(self, claim: CascadeClaim, error: Exception) -> None:
        if await self._is_short(error):
            await park_cascade(self.context, claim)
            await asyncio.sleep(PAUSE_AFTER_ERROR_S)
            return
        log.error("deleting the bucket %s went wrong", claim.cascade.bucket_id, exc_info=error)
        jitter = random.SystemRandom().random()
        await give_back_cascade(self.context, claim, str(error), jitter)
