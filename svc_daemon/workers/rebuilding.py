"""The workers that read stored documents again, to rebuild an index or because chunk sizes have changed.

`operations.index.rebuilding` describes the steps of both workers, and what happens after a crash.
"""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Coroutine, Iterable, Iterator, Sequence

from svc_daemon.core import lanes, readiness
from svc_daemon.core.text.chunking import Extraction
from svc_daemon.extract.documents import WAVE_DOCUMENTS, ExtractionFailed, NotRead, may_share_a_child
from svc_daemon.extract.extractors import Extractor
from svc_daemon.operations.index import damage, documents, rebuilding
from svc_daemon.operations.index import extraction as extracting
from svc_daemon.operations.index.extraction import SourceReading
from svc_daemon.operations.index.indexing import WAVE_BYTES
from svc_daemon.operations.shared.leases import park
from svc_daemon.process.contexts import Context
from svc_daemon.process.resource_shortages import Short
from svc_daemon.provider.errors import IndexDamaged, ProviderError
from svc_daemon.store.rows.sources.sources import SourceRow
from svc_daemon.store.rows.tasks import TaskRow
from svc_daemon.wire.tasks import REBUILD
from svc_daemon.workers.runners import TaskWorker, Worker

log = logging.getLogger(__name__)

#: After this many failed reads, a document is left to the indexing worker.
REBUILD_READS = 2
#: After this many failed reads, a document keeps its old chunks.
RECHUNK_READS = 3
#: A newer reader must find this share of the characters that are stored. Less than all, because layouts are written
#: with fewer spaces and marks than before.
LEAST_SHARE = 0.9
#: Why a document keeps its text although a newer reader has read it.
KEPT = "The text is that of an older version, because this one can't read as much of the document."
#: How often to look whether new sources still wait to be indexed, or an index is rebuilt, in seconds.
LOOK_S = 0.25
#: Delay after a round with failures, in seconds. It doubles each time, up to the maximum.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0


class RebuildingWorker(TaskWorker):
    """Rebuilds the search indexes of teams one after another.

        claim  ->  delete the index file  ->  read missing documents until there are none  ->  finish (one transaction)

    If the index only has to rebuild its list of words, its file stays, and the worker waits until it has done so.

    Small documents are read in groups, each group by one child process. A document that could not be read in its group
    is read again by a child process of its own.
    """

    doing = "rebuilding"
    task_type = REBUILD

    def __init__(self, context: Context, extractor: Extractor) -> None:
        super().__init__(context, context.wakes.rebuilding)
        self._extractor = extractor

    async def claim(self) -> TaskRow | None:
        await damage.rebuild_damaged(self.context)
        return await rebuilding.claim_rebuild(self.context)

    async def perform(self, task: TaskRow) -> None:
        if task.stage != rebuilding.INDEX:
            log.info("the index of %s is rebuilt (%s)", task.team_id, task.id)
            await asyncio.to_thread(self.context.provider.delete_team, task.team_id)
            # Forget the damage reported so far: it was in the index that has just been deleted.
            self.context.wakes.damaged.discard(task.team_id)
            await rebuilding.note_cleared(self.context, task)
        reads: Counter[str] = Counter()
        while True:
            while building := await damage.find_building(self.context, task.team_id):
                await damage.note_building(self.context, task, building)
                await asyncio.sleep(LOOK_S)
            if not (missing := await rebuilding.find_missing(self.context, task)):
                break
            waves = self._list_waves(task, missing, reads)
            await _run_together(self._read_all(task, waves, reads) for _ in range(self.context.limits.extract_children))
        await rebuilding.finish_rebuild(self.context, task)
        log.info("the index of %s is whole again (%s)", task.team_id, task.id)

    def _list_waves(
        self, task: TaskRow, missing: Sequence[str], reads: Counter[str]
    ) -> Iterator[Sequence[SourceReading]]:
        """Yield groups of documents, one for each child process. Counts in `reads` how often each document was read."""
        for start in range(0, len(missing), WAVE_DOCUMENTS):
            page = {
                reading.source.id: reading
                for reading in rebuilding.list_active(self.context, task, missing[start : start + WAVE_DOCUMENTS])
            }
            reads.update(page.keys())
            sources = [reading.source for source_id, reading in page.items() if reads[source_id] == 1]
            sharing = [each for each in sources if may_share_a_child(each.filename, each.content_type, each.size_bytes)]
            while sharing:
                count = lanes.fill([source.size_bytes for source in sharing], WAVE_BYTES)
                yield [page.pop(source.id) for source in sharing[:count]]
                del sharing[:count]
            yield from ([reading] for reading in page.values())

    async def _read_all(self, task: TaskRow, waves: Iterator[Sequence[SourceReading]], reads: Counter[str]) -> None:
        """Read and index documents; each wave is a group for one child process.

        Several asyncio tasks share the iterator `waves`.
        """
        for wave in waves:
            await self.context.upload_priority.let_uploads_go_first()
            if reads[wave[0].source.id] > REBUILD_READS:
                await rebuilding.requeue_document(self.context, wave[0])
            else:
                await self._read(task, wave)

    async def _read(self, task: TaskRow, wave: Sequence[SourceReading]) -> None:
        failed: list[tuple[SourceReading, Exception]]
        try:
            if len(wave) == 1:
                results: list[Extraction | Exception] = [await extracting.read(self.context, self._extractor, wave[0])]
            else:
                results = await extracting.read_wave(self.context, self._extractor, wave)
            pairs = list(zip(wave, results, strict=True))
            failed = [(reading, result) for reading, result in pairs if isinstance(result, Exception)]
            if read := [(reading, result) for reading, result in pairs if isinstance(result, Extraction)]:
                sources = [(reading.source, extraction) for reading, extraction in read]
                await asyncio.to_thread(documents.put, self.context, sources)
                await asyncio.to_thread(documents.undo, self.context, [source for source, _ in sources])
                await rebuilding.note_read(self.context, task, read)
        except (ExtractionFailed, ProviderError, OSError) as error:
            failed = [(reading, error) for reading in wave]
        for reading, failure in failed:
            if isinstance(failure, ProviderError) and failure.retryable:
                raise failure
            is_short = not isinstance(failure, NotRead) and getattr(failure, "retryable", True)
            if is_short and await self.context.shortages.is_cause_of(failure, reading.source.id):
                raise Short from failure
            log.info("%s could not be read again: %s", reading.source.id, failure)

    async def give_back(self, task: TaskRow, error: Exception) -> None:
        if await self.context.shortages.is_cause_of(error):
            await park(self.context, task)
            await self.context.shortages.passed()
            return
        unexpected = None if isinstance(error, ProviderError) else error
        log.error("rebuilding the index of %s failed, tried again: %s", task.team_id, error, exc_info=unexpected)
        jitter = random.SystemRandom().random()
        is_damaged = isinstance(error, IndexDamaged)
        await rebuilding.give_back_rebuild(self.context, task, str(error), jitter, is_damaged=is_damaged)


class RechunkingWorker(Worker):
    """Reads documents again, one at a time: if the chunk sizes of their bucket have changed, or the readers have.

    Until the index has the new text of a document, searches find the old one.
    """

    doing = "rechunking"
    locks = ("rechunking",)

    def __init__(self, context: Context, extractor: Extractor, *, rereads: bool = True) -> None:
        super().__init__(context, context.wakes.rechunking)
        self._extractor = extractor
        self._rereads = rereads
        self._failures: Counter[str] = Counter()
        self._pause_s = FIRST_PAUSE_S

    async def work(self) -> float:
        """Split the documents whose chunk sizes have changed, then read those that an older reader has read.

        Tries once for each document. Many may be of an older reader, so new sources and chunk sizes go first.
        """
        is_done = True
        after: SourceRow | None = None
        try:
            while (reading := rebuilding.next_reading(self.context, after)) is not None:
                await self.context.upload_priority.let_uploads_go_first()
                is_done = await self._rechunk(reading) and is_done
                after = reading.source
            after = None
            while self._rereads and (reading := rebuilding.next_older(self.context, after)) is not None:
                if self.wake.is_set():
                    return 0
                if rebuilding.is_indexing_due(self.context):
                    await asyncio.sleep(LOOK_S)
                    continue
                is_done = await self._read_older(reading) and is_done
                after = reading.source
        except Exception as error:
            is_done = False
            if not await self.context.shortages.is_cause_of(error):
                log.exception("rechunking failed")
        if is_done:
            self._pause_s = FIRST_PAUSE_S
            return self.context.wakes.look_s
        rest_s = FIRST_PAUSE_S if self.is_woken else self._pause_s
        self._pause_s = min(rest_s * 2, LONGEST_PAUSE_S)
        return rest_s

    async def _rechunk(self, reading: SourceReading) -> bool:
        """Split one document into chunks again. Returns False if it must be retried later."""
        extraction = await self._extract(reading)
        if isinstance(extraction, ExtractionFailed):
            log.warning("%s can't be rechunked: %s", reading.source.id, extraction)
            if reading.source.is_swapping:
                # The index has the text of bytes that are no longer stored, so let the source fail.
                await rebuilding.requeue_document(self.context, reading)
                return True
            await rebuilding.give_up_rechunk(self.context, reading, extraction.message)
            return True
        return extraction is not None and await self._exchange(reading, extraction)

    async def _read_older(self, reading: SourceReading) -> bool:
        """Read one document again that an older reader has read. Returns False if it must be retried later.

        The old text stays if this reader finds less, or none.
        """
        source, extraction = reading.source, await self._extract(reading)
        if extraction is None:
            return False
        if source.status == readiness.FAILED:
            if isinstance(extraction, Extraction):
                await rebuilding.retry_failed(self.context, reading)
            else:
                await rebuilding.note_reread(self.context, reading, None, "")
            return True
        if isinstance(extraction, ExtractionFailed):
            warning = f"{KEPT} {extraction.message}"
        elif finds_less(source, extraction):
            found = len(extraction.text) + extraction.hidden_characters
            warning = f"{KEPT} It would find {found} characters."
        elif await rebuilding.is_read_alike(self.context, source, extraction):
            await rebuilding.note_reread(self.context, reading, extraction, "")
            return True
        else:
            return await self._exchange(reading, extraction)
        await rebuilding.note_reread(self.context, reading, None, warning)
        return True

    async def _extract(self, reading: SourceReading) -> Extraction | ExtractionFailed | None:
        """Read the document. Returns a failure that is final, or None if it must be retried later."""
        source_id = reading.source.id
        try:
            extraction = await extracting.read(self.context, self._extractor, reading)
        except ExtractionFailed as error:
            if error.retryable and await self.context.shortages.is_cause_of(error, source_id):
                raise Short from error
            self._failures[source_id] += 1
            if error.retryable and self._failures[source_id] < RECHUNK_READS:
                return None
            # The error is permanent, or this was the last attempt.
            del self._failures[source_id]
            return error
        except OSError as error:
            if await self.context.shortages.is_cause_of(error, source_id):
                raise Short from error
            log.warning("the stored file of %s can't be read: %s", source_id, error)
            return None
        self._failures.pop(source_id, None)
        return extraction

    async def _exchange(self, reading: SourceReading, extraction: Extraction) -> bool:
        """Put the new text and chunks in the place of the old ones. Returns False if it must be retried later."""
        begun = await rebuilding.begin_rechunk(self.context, reading)
        return begun is not None and await rebuilding.exchange(self.context, begun, extraction)


def finds_less(source: SourceRow, extraction: Extraction) -> bool:
    """Whether this reader finds clearly less of a document than the one before, what no reader sees included."""
    before = source.extraction["characters"] if source.extraction else 0
    return len(extraction.text) + extraction.hidden_characters < before * LEAST_SHARE


async def _run_together(works: Iterable[Coroutine[None, None, None]]) -> None:
    """Run the coroutines, at least one, until all have ended. The first error cancels the others and is raised.

    A TaskGroup would do the same. But up to Python 3.11.2, the first `asyncio.timeout` after a failed TaskGroup raises
    CancelledError, which would end the worker.
    """
    tasks = [asyncio.create_task(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()
