"""The rechunking worker: cuts documents anew, one at a time, in the background.

What has to hold meanwhile, and what a kill leaves, is in `operations.rebuilding`.
"""

import asyncio
import logging
from collections import Counter

from svc_daemon.extract.cages import Extractor
from svc_daemon.extract.failures import ExtractionFailed
from svc_daemon.operations import documents
from svc_daemon.operations.indexing import SourceReading
from svc_daemon.operations.rebuilding import begin_rechunk, finish_rechunk, give_up_rechunk, next_reading
from svc_daemon.process.contexts import Context
from svc_daemon.process.shortages import Short
from svc_daemon.provider.errors import ProviderError

log = logging.getLogger(__name__)

#: Between rounds where some documents could not be done yet, seconds: each time twice as long, up to the second.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
#: How often one document is read before its old pieces are left as they are.
READS = 3


class RechunkingWorker:
    """Runs until it is cancelled; what is marked then is done after the next start."""

    def __init__(self, context: Context, extractor: Extractor) -> None:
        self._context = context
        self._extractor = extractor
        self._failures: Counter[str] = Counter()

    async def run(self) -> None:
        pause_s = FIRST_PAUSE_S
        while True:
            self._context.wakes.rechunking.clear()
            if await self._try_round():
                pause_s = FIRST_PAUSE_S
                await self._context.wakes.rechunking.wait()
            elif await self._is_woken_within(pause_s):
                pause_s = FIRST_PAUSE_S
            else:
                pause_s = min(pause_s * 2, LONGEST_PAUSE_S)

    async def _is_woken_within(self, pause_s: float) -> bool:
        """Rest; True as soon as a chunking changes meanwhile."""
        try:
            async with asyncio.timeout(pause_s):
                await self._context.wakes.rechunking.wait()
        except TimeoutError:
            return False
        return True

    async def _try_round(self) -> bool:
        """Each marked document once; False where one of them is left."""
        try:
            return await self._round()
        except Exception as error:
            if not await self._context.shortages.is_cause_of(error):
                log.exception("cutting documents anew went wrong")
            return False

    async def _round(self) -> bool:
        is_done, after_id = True, ""
        while (reading := next_reading(self._context, after_id)) is not None:
            await self._context.gates.let_uploads_go_first()
            is_done = await self._rechunk(reading) and is_done
            after_id = reading.source.id
        return is_done

    async def _rechunk(self, reading: SourceReading) -> bool:
        """False where it is to be tried again."""
        try:
            extraction = await documents.read(self._context, self._extractor, reading)
        except ExtractionFailed as error:
            if error.retryable and await self._context.shortages.is_cause_of(error, reading.source.id):
                raise Short from error
            return await self._give_up(reading, error)
        begun = await begin_rechunk(self._context, reading)
        if begun is None:
            return False
        try:
            await asyncio.to_thread(documents.put, self._context, begun.source, extraction)
        except ProviderError as error:
            if await self._context.shortages.is_cause_of(error):
                raise Short from error
            log.warning("the index did not take %s, cut anew: %s", begun.source.id, error)
            return False
        await asyncio.to_thread(documents.undo, self._context, begun.source)
        await finish_rechunk(self._context, begun, extraction)
        return True

    async def _give_up(self, reading: SourceReading, error: ExtractionFailed) -> bool:
        """For good, where more readings can't help; False where they may."""
        source_id = reading.source.id
        self._failures[source_id] += 1
        if error.retryable and self._failures[source_id] < READS:
            return False
        log.warning("%s can't be cut anew: %s", source_id, error)
        del self._failures[source_id]
        await give_up_rechunk(self._context, reading, error.message)
        return True
