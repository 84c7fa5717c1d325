"""The loop of all workers, and the handling of their errors."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from contextlib import suppress

from svc_daemon.core.times import from_text
from svc_daemon.errors import StorageError
from svc_daemon.operations.tasks import extend_claim
from svc_daemon.process.contexts import Context
from svc_daemon.store.tasks import TaskRow

log = logging.getLogger(__name__)

#: A worker that isn't woken looks for work after this long, in seconds.
LONGEST_S = 60.0
#: After an unexpected error a worker waits this long, so that it can't spin.
PAUSE_AFTER_ERROR_S = 1.0
#: A lease is extended three times before it would run out.
BEATS_PER_LEASE = 3
#: After an extension that the disk refused, seconds.
RETRY_S = 0.5


class Worker(ABC):
    """One kind of background work; work that a stop interrupts is done after the next start."""

    #: What the log calls it.
    doing: str

    def __init__(self, context: Context, wake: asyncio.Event) -> None:
        self.context = context
        self.wake = wake
        #: Whether the last rest was cut short.
        self.is_woken = False
        #: Tasks that run beside the loop, each with a name.
        self.running: dict[asyncio.Task[None], str] = {}

    async def run(self) -> None:
        """Work, rest until woken or due, repeat, until this is cancelled."""
        try:
            while True:
                self.is_woken = self.wake.is_set()
                self.wake.clear()
                try:
                    rest_s = await self.work()
                except Exception as error:
                    await self.outlast(error, self.doing)
                    continue
                with suppress(TimeoutError):
                    async with asyncio.timeout(rest_s):
                        await self.wake.wait()
        finally:
            await self.stop()

    @abstractmethod
    async def work(self) -> float:
        """Do some of what waits; returns the seconds to rest unless woken, 0 where there may be more to do."""

    async def stop(self) -> None:
        """Cancel the tasks beside the loop, and wait until they have ended."""
        running = list(self.running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def start(self, name: str, work: Coroutine[None, None, None]) -> None:
        """Run `work` beside the loop; its end wakes the worker."""

        def end(task: asyncio.Task[None]) -> None:
            del self.running[task]
            self.wake.set()

        task = asyncio.create_task(work)
        self.running[task] = name
        task.add_done_callback(end)

    async def outlast(self, error: Exception, doing: str) -> None:
        """Wait until the work may be tried again: for the end of a shortage, otherwise for a moment."""
        if await self.context.shortages.is_cause_of(error):
            await self.context.shortages.passed()
            return
        log.error("%s went wrong", doing, exc_info=error)
        await asyncio.sleep(PAUSE_AFTER_ERROR_S)

    def seconds_until(self, due_at: str | None) -> float:
        """How long to rest until then."""
        if due_at is None:
            return LONGEST_S
        # Limited, so that a wall clock that was changed can't stop a queue.
        return min(max((from_text(due_at) - self.context.clock.now()).total_seconds(), 0.001), LONGEST_S)


async def keep_lease(context: Context, task: TaskRow) -> None:
    """Extend the lease until this is cancelled."""
    pause_s = beat_s = context.limits.lease_seconds / BEATS_PER_LEASE
    while True:
        await asyncio.sleep(pause_s)
        try:
            await extend_claim(context, task)
            pause_s = beat_s
        except StorageError:
            # The worker is alive: as soon as the disk takes it, before another worker claims the task.
            pause_s = min(RETRY_S, beat_s)
