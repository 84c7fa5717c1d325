"""The indexing worker: claims tasks, extracts documents in child processes, passes the text to the provider.

    claim (one transaction)  ->  extract (child process)  ->  put (provider, durable)  ->  complete (one transaction)

Completing makes the source ready, unless its buckets or title have changed since the claim (`operations.indexing`): the
sync worker then updates the index first. How far a document is in between is kept in memory only.

If the process is killed, the task is still `running`, and the next start queues it again. Putting the same document
twice is harmless, since it is keyed by source and generation. Teams take turns, so that a team with thousands of files
doesn't starve the others.
"""

import asyncio
import logging
import random
from collections import deque
from functools import partial

from svc_daemon.extract.cages import Extractor
from svc_daemon.extract.failures import ExtractionFailed
from svc_daemon.operations import documents
from svc_daemon.operations.indexing import (
    Failure,
    IndexedDocument,
    IndexingClaim,
    claim_indexing,
    complete_indexing,
    fail_indexing,
    forget_progress,
    note_progress,
    park_claimed,
    park_indexing,
)
from svc_daemon.process.contexts import Context
from svc_daemon.provider.errors import ProviderError
from svc_daemon.store.tasks import next_attempt_due
from svc_daemon.store.teams import list_team_ids
from svc_daemon.wire.codes import SourceErrorCode
from svc_daemon.wire.tasks import INDEXING
from svc_daemon.workers.runners import Worker, keep_lease

log = logging.getLogger(__name__)

#: Delay before retrying a document that failed because of a shortage, in seconds.
PAUSE_IN_SHORTAGE_S = 1.0


class IndexingWorker(Worker):
    """Indexes several documents at a time; a stop queues unfinished ones again without counting the attempt."""

    doing = "claiming"

    def __init__(self, context: Context, extractor: Extractor) -> None:
        super().__init__(context, context.wakes.indexing)
        self._extractor = extractor
        self._slots = asyncio.Semaphore(context.limits.extract_children)
        self._turns: deque[str] = deque()

    async def work(self) -> float:
        """Claim one document, and start indexing it when a slot is free."""
        await self._slots.acquire()
        claim = None
        try:
            # Uploads have priority: a burst is stored at full speed before its documents are read.
            await self.context.gates.let_uploads_go_first()
            if self.context.shortages.now is not None:
                # Index one document at a time, to find out whether the shortage is over.
                if self.running:
                    await asyncio.wait(self.running)
                await self.context.shortages.passed()
            known = self.context.read(list_team_ids)
            self._turns.extend(team_id for team_id in known if team_id not in self._turns)
            claim = await claim_indexing(self.context, list(self._turns))
            if claim is None:
                return self.seconds_until(self.context.read(partial(next_attempt_due, task_type=INDEXING)))
            self._turns.remove(claim.task.team_id)
            self._turns.append(claim.task.team_id)
            self.start(claim.task.id, self._index_in_slot(claim))
            return 0
        finally:
            if claim is None:
                self._slots.release()

    async def stop(self) -> None:
        await super().stop()
        # A claim that was being made when the worker was stopped has no task that would release it.
        await park_claimed(self.context)

    async def _index_in_slot(self, claim: IndexingClaim) -> None:
        beat = asyncio.create_task(keep_lease(self.context, claim.task))
        try:
            await self._index(claim)
        except asyncio.CancelledError:
            await park_indexing(self.context, claim)
            raise
        finally:
            forget_progress(self.context, claim)
            beat.cancel()
            self._slots.release()

    async def _index(self, claim: IndexingClaim) -> None:
        try:
            extraction = await documents.read(self.context, self._extractor, claim.reading)
            note_progress(self.context, claim, "index", len(extraction.chunks))
            entry = await asyncio.to_thread(documents.put, self.context, claim.source, extraction)
            if await complete_indexing(self.context, [IndexedDocument(claim, extraction, entry)]):
                await asyncio.to_thread(documents.undo, self.context, claim.source)
        except Exception as error:
            await self._give_back(claim, error)

    async def _give_back(self, claim: IndexingClaim, error: Exception) -> None:
        shortages = self.context.shortages
        trace = None
        if isinstance(error, ExtractionFailed):
            failure = Failure(error.code, error.message, error.retryable)
        elif isinstance(error, ProviderError):
            failure = Failure(SourceErrorCode.PROVIDER_FAILED, str(error), error.retryable)
        else:
            # An unexpected error costs the source an attempt, but doesn't stop the worker.
            trace = error
            failure = Failure(SourceErrorCode.EXTRACTION_CRASHED, "Something unexpected went wrong.", retryable=True)
        if failure.retryable and await shortages.is_cause_of(error, claim.source.id):
            await shortages.get_through(partial(park_indexing, self.context, claim, PAUSE_IN_SHORTAGE_S))
            return
        level = logging.ERROR if trace else logging.INFO
        log.log(level, "indexing of %s failed: %s %s", claim.source.id, failure.code, failure.message, exc_info=trace)
        jitter = random.SystemRandom().random()
        await shortages.get_through(partial(fail_indexing, self.context, claim, failure, jitter))
