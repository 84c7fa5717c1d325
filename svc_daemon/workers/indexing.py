"""The indexing worker: lets child processes extract the text of documents, and writes the text to the search index.

    claim (one transaction)  ->  extract (one child)  ->  put (provider, durable)  ->  complete (one transaction)

The last step makes the sources ready. A child process reads one document, or a wave: up to 64 small documents of one
team.

What happens to a wave if something fails:

    a document can't be read        an attempt is counted for this document, and it is tried again or fails
    the child dies, or is too slow  the same for the document that the child was reading; the child's earlier documents
                                    are indexed, and each later document is read by a child process of its own
    the index fails                 no attempt is counted, and each document is read by a child process of its own
    the daemon stops                no attempt is counted, and all documents are queued again
    the daemon is killed            the next start reads the documents one at a time, in the lane `suspect`

Pages that are pictures are recognised in the lane `scan` (see `operations.index.scans`).

Each attempt writes a new generation of the document, which replaces the earlier one in the index.
"""

import asyncio
import logging
import random
from collections.abc import Sequence
from functools import partial

from svc_daemon.core import lanes
from svc_daemon.core.text.chunking import Extraction
from svc_daemon.extract.documents import WAVE_DOCUMENTS, ExtractionFailed, NeedsRecognition, NotRead
from svc_daemon.extract.extractors import Extractor
from svc_daemon.operations.index import documents, indexing, scans
from svc_daemon.operations.index import extraction as extracting
from svc_daemon.operations.shared.leases import UNREADABLE, abandon
from svc_daemon.process.contexts import Context
from svc_daemon.process.indexing_scheduler import IndexingScheduler
from svc_daemon.provider.errors import IndexDamaged, ProviderError
from svc_daemon.store.rows.tasks import next_attempt_due
from svc_daemon.wire.light.error_codes import SourceErrorCode
from svc_daemon.wire.tasks import INDEXING
from svc_daemon.workers.runners import Worker, keep_leases

log = logging.getLogger(__name__)

#: Delay before a retry after a shortage, in seconds.
PAUSE_IN_SHORTAGE_S = 1.0
#: Delay before a retry if the index is damaged, in seconds. Retries fail until the rebuild of the index has
#: begun, which can take a minute.
PAUSE_IN_REBUILD_S = 5.0


class IndexingWorker(Worker):
    """Indexes several documents at the same time, one by one or in waves (groups of small documents).

    When the worker is stopped, unfinished documents are queued again, and their attempts aren't counted.
    """

    doing = "claiming"

    def __init__(self, context: Context, extractor: Extractor) -> None:
        super().__init__(context, context.wakes.indexing)
        self._extractor = extractor
        # Each child process needs a slot. One lane (queue) can occupy up to `extract_children` slots, so there is one
        # more for the other lanes, and one for the scan that is being read.
        self._slots = asyncio.Semaphore(context.limits.extract_children + 2)
        self._scheduler = IndexingScheduler(context.limits.extract_children)
        #: Claims of the documents in progress, by task id and token.
        self._claims: dict[tuple[str, int], indexing.IndexingClaim] = {}

    async def work(self) -> float:
        """Wait for a free slot, claim the documents for one child process, and start indexing them."""
        await self._slots.acquire()
        claims = None
        try:
            # Storing uploads that arrive now is more urgent than reading documents.
            await self.context.upload_priority.let_uploads_go_first()
            most = WAVE_DOCUMENTS
            if self.context.shortages.now is not None:
                # In a shortage, index one document at a time, to find out whether the shortage is over.
                most = 1
                if self.running:
                    await asyncio.wait(self.running)
                await self.context.shortages.passed()
            now = self.context.clock.timestamp()
            claims = await indexing.claim_indexing(self.context, self._scheduler, most)
            if claims is None:
                # All tasks that are due wait until a child process ends. That wakes this worker.
                return self.seconds_until(self.context.read(partial(next_attempt_due, task_type=INDEXING, after=now)))
            if claims:
                task = claims[0].task
                self._scheduler.begin(task.lane, task.team_id)
                self._claims |= {(claim.task.id, claim.task.token): claim for claim in claims}
                self.start(task.id, self._index_in_slot(claims))
            return 0
        finally:
            if not claims:
                self._slots.release()

    async def stop(self) -> None:
        await super().stop()
        # An asyncio task that is cancelled before it starts can't release its claims.
        if self._claims:
            await indexing.park_indexing(self.context, list(self._claims.values()))

    async def _index_in_slot(self, claims: Sequence[indexing.IndexingClaim]) -> None:
        beat = asyncio.create_task(keep_leases(self.context, [claim.task for claim in claims]))
        try:
            await self._index(claims)
        except asyncio.CancelledError:
            await indexing.park_indexing(self.context, claims)
            raise
        finally:
            beat.cancel()
            for claim in claims:
                del self._claims[claim.task.id, claim.task.token]
                self.context.progress.pop((claim.task.id, claim.task.token), None)
            self._scheduler.end(claims[0].task.lane)
            self._slots.release()

    async def _index(self, claims: Sequence[indexing.IndexingClaim]) -> None:
        failed: list[tuple[indexing.IndexingClaim, Exception]] = []
        try:
            results: list[Extraction | Exception]
            if len(claims) == 1:
                extraction = await self._read(claims[0])
                if extraction is None:
                    return
                results = [extraction]
            else:
                wave = [claim.reading for claim in claims]
                results = await extracting.read_wave(self.context, self._extractor, wave)
            pairs = list(zip(claims, results, strict=True))
            failed = [(claim, result) for claim, result in pairs if isinstance(result, Exception)]
            read = [(claim, result) for claim, result in pairs if isinstance(result, Extraction)]
            if read:
                await self._put(read)
        except Exception as error:
            known = {claim.task.id for claim, _ in failed}
            failed += [(claim, error) for claim in claims if claim.task.id not in known]
        if failed:
            await self._give_back(failed)

    async def _read(self, claim: indexing.IndexingClaim) -> Extraction | None:
        """Extract the document's text. Returns None if its task was queued again, because its pages are pictures."""
        try:
            return await extracting.read(self.context, self._extractor, claim.reading, awaits_recognition=True)
        except NeedsRecognition as needed:
            return await scans.read_scan(self.context, self._extractor, claim, needed.pages)

    async def _put(self, read: Sequence[tuple[indexing.IndexingClaim, Extraction]]) -> None:
        for claim, extraction in read:
            indexing.note_progress(self.context, claim, len(extraction.chunks))
        sources = [(claim.source, extraction) for claim, extraction in read]
        entries = await asyncio.to_thread(documents.put, self.context, sources)
        done = [indexing.IndexedDocument(*each, entry) for each, entry in zip(read, entries, strict=True)]
        if kept := [each for each in done if each.entry.kept_generation is not None]:
            await indexing.queue_kept(self.context, kept)
        # `stale` are documents whose tasks this worker no longer holds, such as those that `queue_kept` queued again.
        if stale := await indexing.complete_indexing(self.context, done):
            await asyncio.to_thread(documents.undo, self.context, [each.claim.source for each in stale])

    async def _give_back(self, failed: Sequence[tuple[indexing.IndexingClaim, Exception]]) -> None:
        """Handle documents that could not be indexed: queue their tasks again, or end the tasks as failed."""
        shortages = self.context.shortages
        unread, failures = [], []
        by_error: dict[int, list[tuple[indexing.IndexingClaim, Exception]]] = {}
        for claim, error in failed:
            by_error.setdefault(id(error), []).append((claim, error))
        for group in by_error.values():
            claims, error = [claim for claim, _ in group], group[0][1]
            if isinstance(error, NotRead):
                unread += claims
                continue
            if isinstance(error, IndexDamaged):
                await shortages.get_through(partial(indexing.park_indexing, self.context, claims, PAUSE_IN_REBUILD_S))
                continue
            failure, is_expected = _explain(error)
            if failure.retryable and await shortages.is_cause_of(error, claims[0].source.id):
                await shortages.get_through(partial(indexing.park_indexing, self.context, claims, PAUSE_IN_SHORTAGE_S))
                continue
            what = claims[0].source.id if len(claims) == 1 else f"a wave of {len(claims)}"
            level, trace = (logging.INFO, None) if is_expected else (logging.ERROR, error)
            log.log(level, "indexing of %s failed: %s %s", what, failure.code, failure.message, exc_info=trace)
            if len(claims) == 1:
                failures.append((claims[0], failure))
            else:
                # It isn't known which document caused the failure, so read each document in a child process of its own.
                unread += claims
        if unread:
            await shortages.get_through(partial(indexing.park_indexing, self.context, unread, lane=lanes.SINGLE))
        if failures:
            await self._fail(failures)

    async def _fail(self, failures: Sequence[tuple[indexing.IndexingClaim, indexing.Failure]]) -> None:
        """End these attempts, each by itself if one of their rows can't be read."""
        jitter = random.SystemRandom().random()
        try:
            await self.context.shortages.get_through(partial(indexing.fail_indexing, self.context, failures, jitter))
        except UNREADABLE:
            for claim, _ in failures:
                await self.context.shortages.get_through(partial(abandon, self.context, claim.task.id))


def _explain(error: Exception) -> tuple[indexing.Failure, bool]:
    """Convert the error to a Failure. Also returns whether the error was expected.

    Unexpected errors are logged with their traceback.
    """
    if isinstance(error, ExtractionFailed):
        return indexing.Failure(error.code, error.message, error.retryable), True
    if isinstance(error, ProviderError):
        return indexing.Failure(SourceErrorCode.PROVIDER_FAILED, str(error), error.retryable), True
    # An unexpected error counts as a failed attempt.
    message = "Something unexpected went wrong."
    return indexing.Failure(SourceErrorCode.EXTRACTION_CRASHED, message, retryable=True), False
