"""The rebuilding worker: makes teams' indexes anew, one team after the other, several documents at a time.

    claim  ->  remove the file  ->  read what is missing, until nothing is  ->  finish (one transaction)

What has to hold meanwhile, and what a kill leaves, is in `operations.rebuilding`.
"""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Iterator
from functools import partial

from svc_daemon.extract.cages import Extractor
from svc_daemon.extract.failures import ExtractionFailed
from svc_daemon.operations import documents
from svc_daemon.operations.indexing import SourceReading
from svc_daemon.operations.rebuilding import (
    INDEX,
    claim_rebuild,
    find_active,
    find_missing,
    finish_rebuild,
    give_back_rebuild,
    give_up_document,
    note_cleared,
    note_read,
    park_rebuild,
    rebuild_damaged,
)
from svc_daemon.process.contexts import Context
from svc_daemon.process.shortages import Short
from svc_daemon.provider.errors import IndexDamaged, ProviderError
from svc_daemon.store.tasks import TaskRow, next_attempt_due
from svc_daemon.wire.tasks import REBUILD
from svc_daemon.workers.waiting import keep_lease, wait

log = logging.getLogger(__name__)

#: After an error of ours the loop waits this long, so that it can't spin.
PAUSE_AFTER_ERROR_S = 1.0
#: How often one document is read before it is left to the indexing worker.
READS = 2


class RebuildingWorker:
    """Runs until it is cancelled; a rebuild that was cut off goes on after the next start."""

    def __init__(self, context: Context, extractor: Extractor) -> None:
        self._context = context
        self._extractor = extractor

    async def run(self) -> None:
        while True:
            self._context.wakes.rebuilding.clear()
            try:
                await rebuild_damaged(self._context)
                busy = await self._run_next()
                due_at = self._context.read(partial(next_attempt_due, task_type=REBUILD))
            except Exception as error:
                if await self._context.shortages.is_cause_of(error):
                    await self._context.shortages.passed()
                    continue
                log.exception("rebuilding went wrong")
                await asyncio.sleep(PAUSE_AFTER_ERROR_S)
                continue
            if not busy:
                await wait(self._context.wakes.rebuilding, due_at, self._context.clock)

    async def _run_next(self) -> bool:
        """One rebuild; False when none waits."""
        task = await claim_rebuild(self._context)
        if task is None:
            return False
        beat = asyncio.create_task(keep_lease(self._context, task))
        try:
            await self._rebuild(task)
        except asyncio.CancelledError:
            await park_rebuild(self._context, task)
            raise
        except Exception as error:
            await self._context.shortages.get_through(partial(self._give_back, task, _first(error)))
        finally:
            beat.cancel()
        return True

    async def _rebuild(self, task: TaskRow) -> None:
        if task.stage != INDEX:
            log.info("the index of %s is made anew (%s)", task.team_id, task.id)
            await asyncio.to_thread(self._context.provider.delete_team, task.team_id)
            await note_cleared(self._context, task)
        reads: Counter[str] = Counter()
        while missing := await find_missing(self._context, task):
            await self._read_all(task, iter(missing), reads)
        await finish_rebuild(self._context, task)
        log.info("the index of %s is whole again (%s)", task.team_id, task.id)

    async def _read_all(self, task: TaskRow, missing: Iterator[str], reads: Counter[str]) -> None:
        async def read_on() -> None:
            for source_id in missing:
                reads[source_id] += 1
                await self._read(task, source_id, reads[source_id])

        async with asyncio.TaskGroup() as group:
            for _ in range(self._context.limits.extract_children):
                group.create_task(read_on())

    async def _read(self, task: TaskRow, source_id: str, attempt: int) -> None:
        await self._context.gates.let_uploads_go_first()
        reading = find_active(self._context, task, source_id)
        if reading is None:
            return
        if attempt > READS:
            await give_up_document(self._context, reading)
            return
        try:
            await self._bring(task, reading)
        except (ExtractionFailed, ProviderError, OSError) as error:
            if isinstance(error, ProviderError) and error.retryable:
                raise
            if getattr(error, "retryable", True) and await self._context.shortages.is_cause_of(error, source_id):
                raise Short from error
            log.info("%s could not be read again: %s", source_id, error)

    async def _bring(self, task: TaskRow, reading: SourceReading) -> None:
        extraction = await documents.read(self._context, self._extractor, reading)
        await asyncio.to_thread(documents.put, self._context, reading.source, extraction)
        await asyncio.to_thread(documents.undo, self._context, reading.source)
        await note_read(self._context, task, reading, extraction)

    async def _give_back(self, task: TaskRow, error: Exception) -> None:
        if await self._context.shortages.is_cause_of(error):
            await park_rebuild(self._context, task)
            await self._context.shortages.passed()
            return
        unexpected = None if isinstance(error, ProviderError) else error
        log.error("making the index of %s anew went wrong, tried again: %s", task.team_id, error, exc_info=unexpected)
        jitter = random.SystemRandom().random()
        is_damaged = isinstance(error, IndexDamaged)
        await give_back_rebuild(self._context, task, str(error), jitter, is_damaged=is_damaged)


def _first(error: Exception) -> Exception:
    """What went wrong first, where several documents were being read."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error
