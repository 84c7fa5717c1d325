"""The indexing worker: claims tasks, has their documents read in the cage, gives the text to the provider.

    claim (one transaction)  ->  extract (child process)  ->  put (provider, durable)  ->  complete (one transaction)

At any kill the state says `running`; the next start puts the task back. Putting the same document twice is harmless: it
is keyed by source and generation. Teams take turns, so that one team's thousand files don't starve another's one.
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
    IndexingClaim,
    claim_indexing,
    complete_indexing,
    fail_indexing,
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
from svc_daemon.workers.waiting import keep_lease, wait

log = logging.getLogger(__name__)

#: After an error of ours the loop waits this long, so that it can't spin.
PAUSE_AFTER_ERROR_S = 1.0
#: What has met a shortage lets others go first for so long.
PAUSE_IN_SHORTAGE_S = 1.0


class IndexingWorker:
    """Runs until it is cancelled; what is in flight then is parked."""

    def __init__(self, context: Context, extractor: Extractor) -> None:
        self._context = context
        self._extractor = extractor
        self._slots = asyncio.Semaphore(context.limits.extract_children)
        self._running: set[asyncio.Task[None]] = set()
        self._turns: deque[str] = deque()

    async def run(self) -> None:
        try:
            while True:
                await self._slots.acquire()
                # A burst is taken in at full speed; reading its documents can wait a moment.
                await self._context.gates.let_uploads_go_first()
                self._start(await self._next_claim())
        finally:
            await self._park_all()
            # A claim that was being made when the stop came is nobody's now.
            await park_claimed(self._context)

    def _start(self, claim: IndexingClaim) -> None:
        running = asyncio.create_task(self._index_in_slot(claim))
        self._running.add(running)
        running.add_done_callback(self._running.discard)

    async def _next_claim(self) -> IndexingClaim:
        """Wait for work, team by team in turn."""
        while True:
            await self._outlast_shortage()
            self._context.wakes.indexing.clear()
            try:
                claim = await self._claim()
                due_at = None if claim else self._context.read(partial(next_attempt_due, task_type=INDEXING))
            except Exception as error:
                # A full disk, say: it must not end the worker.
                if not await self._context.shortages.is_cause_of(error):
                    log.exception("claiming went wrong")
                    await asyncio.sleep(PAUSE_AFTER_ERROR_S)
                continue
            if claim is not None:
                return claim
            await wait(self._context.wakes.indexing, due_at, self._context.clock)

    async def _outlast_shortage(self) -> None:
        """While something is short, one document at a time shows whether it is still."""
        if self._context.shortages.now is None:
            return
        if self._running:
            await asyncio.wait(self._running)
        await self._context.shortages.passed()

    async def _claim(self) -> IndexingClaim | None:
        claim = await claim_indexing(self._context, self._teams_in_turn())
        if claim is not None:
            self._pass_turn(claim.task.team_id)
        return claim

    def _teams_in_turn(self) -> list[str]:
        known = self._context.read(list_team_ids)
        self._turns.extend(team_id for team_id in known if team_id not in self._turns)
        return list(self._turns)

    def _pass_turn(self, team_id: str) -> None:
        self._turns.remove(team_id)
        self._turns.append(team_id)

    async def _index_in_slot(self, claim: IndexingClaim) -> None:
        beat = asyncio.create_task(keep_lease(self._context, claim.task))
        try:
            await self._attempt(claim)
        except asyncio.CancelledError:
            await park_indexing(self._context, claim)
            raise
        finally:
            beat.cancel()
            self._slots.release()

    async def _attempt(self, claim: IndexingClaim) -> None:
        shortages = self._context.shortages
        try:
            await self._index(claim)
        except Exception as error:
            failure = _failure_of(error)
            if failure.retryable and await shortages.is_cause_of(error, claim.source.id):
                await shortages.get_through(partial(park_indexing, self._context, claim, PAUSE_IN_SHORTAGE_S))
                return
            # A bug of ours costs this source an attempt, never the worker.
            is_known = isinstance(error, ExtractionFailed | ProviderError)
            level, trace = (logging.INFO, None) if is_known else (logging.ERROR, error)
            log.log(
                level, "indexing of %s failed: %s %s", claim.source.id, failure.code, failure.message, exc_info=trace
            )
            jitter = random.SystemRandom().random()
            await shortages.get_through(partial(fail_indexing, self._context, claim, failure, jitter))

    async def _index(self, claim: IndexingClaim) -> None:
        extraction = await documents.read(self._context, self._extractor, claim.reading)
        await note_progress(self._context, claim, "index", len(extraction.chunks))
        await asyncio.to_thread(documents.put, self._context, claim.source, extraction)
        if not await complete_indexing(self._context, claim, extraction):
            await asyncio.to_thread(documents.undo, self._context, claim.source)

    async def _park_all(self) -> None:
        for running in self._running:
            running.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)


def _failure_of(error: Exception) -> Failure:
    if isinstance(error, ExtractionFailed):
        return Failure(error.code, error.message, error.retryable)
    if isinstance(error, ProviderError):
        return Failure(SourceErrorCode.PROVIDER_FAILED, str(error), error.retryable)
    return Failure(SourceErrorCode.EXTRACTION_CRASHED, "Something unexpected went wrong.", retryable=True)
