"""The counting worker: writes down how many answers and searches there were, many with one commit."""

import asyncio
import logging

from svc_daemon.operations.usage import tell_usage
from svc_daemon.process.contexts import Context

log = logging.getLogger(__name__)

#: The least time between two commits, seconds.
PAUSE_S = 1.0


class CountingWorker:
    """Runs until it is cancelled, and tells what is left then."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def run(self) -> None:
        wake = self._context.wakes.counting
        try:
            while True:
                await wake.wait()
                wake.clear()
                await self._tell()
                await asyncio.sleep(PAUSE_S)
        finally:
            await self._tell()

    async def _tell(self) -> None:
        telling = asyncio.create_task(self._try_to_tell())
        try:
            await asyncio.shield(telling)
        except asyncio.CancelledError:
            # What is being written is written once: given up half-way, nobody would know whether it counts.
            await telling
            raise

    async def _try_to_tell(self) -> None:
        try:
            await tell_usage(self._context)
        except Exception as error:
            # Whatever it is, what was counted is told with the next answer.
            if not await self._context.shortages.is_cause_of(error):
                log.exception("counting answers went wrong")
