"""The sync worker: updates the search index after a source was renamed, or added to or removed from a bucket.

Indexing writes a document with its first buckets; this worker handles later changes. All pending changes are rows in
the state database, so a crash loses nothing.
"""

import asyncio
import logging
import random
from functools import partial

from svc_daemon.operations.index.syncing import (
    UPDATES_AT_ONCE,
    Sync,
    claim_syncs,
    clean_detachments,
    complete_syncs,
    fail_sync,
    postpone_syncs,
    reindex_missing,
)
from svc_daemon.process.contexts import Context
from svc_daemon.process.resource_shortages import Short
from svc_daemon.provider.errors import DocumentMissing, ProviderError
from svc_daemon.store.files.contract import gather
from svc_daemon.store.rows.sources.memberships import next_sync_due
from svc_daemon.workers.runners import Worker

log = logging.getLogger(__name__)


class SyncingWorker(Worker):
    """Updates the buckets of sources in the search index, and then marks the sources as active in these buckets.

    Only this worker changes the buckets of indexed sources, and it begins no change before all earlier ones have ended.
    So an earlier change can't overwrite a later one.
    """

    doing = "bucket sync"
    locks = ("syncing",)

    def __init__(self, context: Context) -> None:
        super().__init__(context, context.wakes.syncing)

    async def work(self) -> float:
        syncs = await claim_syncs(self.context)
        try:
            is_set = await gather(map(self._set_buckets, syncs), UPDATES_AT_ONCE)
            if done := [sync for sync, is_done in zip(syncs, is_set, strict=True) if is_done]:
                await complete_syncs(self.context, done)
        except Exception as error:
            if await self.context.shortages.is_cause_of(error):
                await self.context.shortages.get_through(partial(postpone_syncs, self.context, syncs))
                raise Short from error
            raise
        # Remove old buckets and titles from the index in every round. Otherwise constant syncs would delay this.
        cleaned = await clean_detachments(self.context)
        return 0 if syncs or cleaned else self.seconds_until(self.context.read(next_sync_due))

    async def _set_buckets(self, sync: Sync) -> bool:
        """Write the source's buckets to the index. Returns False if the index lacks the source or refuses the write."""
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
