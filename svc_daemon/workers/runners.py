"""The loop that all workers share, and the handling of their errors."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Sequence
from contextlib import nullcontext, suppress
from functools import partial

from svc_daemon.core.times import from_text
from svc_daemon.errors import StorageError
from svc_daemon.operations.shared.leases import extend_leases, park
from svc_daemon.process.contexts import Context
from svc_daemon.process.wakes import Wake
from svc_daemon.store.rows.tasks import TaskRow, next_attempt_due

log = logging.getLogger(__name__)

#: Longest sleep of a worker that isn't woken, in seconds.
LONGEST_S = 60.0
#: Seconds until a worker looks again whether a lock is free that another node holds.
HELD_S = 10.0
#: Delay after an unexpected error, in seconds.
PAUSE_AFTER_ERROR_S = 1.0
#: How many times a lease is extended within its duration.
BEATS_PER_LEASE = 3
#: Delay before retrying a lease extension that could not be stored, in seconds.
RETRY_S = 0.5


class Worker(ABC):
    """Base class of background workers. Work that a stop interrupts is done again after the next start."""

    #: Name of the activity in log messages.
    doing: str
    #: Locks held during each round, so that only one node at a time does this work.
    locks: tuple[str, ...] = ()

    def __init__(self, context: Context, wake: Wake) -> None:
        self.context = context
        self.wake = wake
        #: Whether the worker had been woken when the current round began.
        self.is_woken = False
        #: Names of the asyncio tasks that run beside the worker's own loop.
        self.running: dict[asyncio.Task[None], str] = {}

    async def run(self) -> None:
        """Work, then sleep until woken or until work is due, and repeat. Runs until cancelled."""
        try:
            while True:
                self.is_woken = self.wake.is_set()
                self.wake.clear()
                try:
                    held = self.context.locks.hold_free(*self.locks) if self.locks else nullcontext(())
                    async with held as free:
                        # If another node holds one of the locks, that node does this work.
                        rest_s = await self.work() if len(free) == len(self.locks) else HELD_S
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
        """Do some of the work that is due. Returns how many seconds to sleep; 0 if there may be more to do."""

    async def stop(self) -> None:
        """Cancel the tasks in `running`, and wait until they have ended."""
        running = list(self.running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def start(self, name: str, work: Coroutine[None, None, None]) -> None:
        """Run `work` as an asyncio task beside the worker's own loop, which is woken when the task ends."""

        def end(task: asyncio.Task[None]) -> None:
            del self.running[task]
            self.wake.set_here()

        task = asyncio.create_task(work)
        self.running[task] = name
        task.add_done_callback(end)

    async def outlast(self, error: Exception, doing: str) -> None:
        """Wait after an error before the next attempt.

        If memory or disk space is short, wait until there may be enough. Otherwise log the error and wait briefly.
        """
        if await self.context.shortages.is_cause_of(error):
            await self.context.shortages.passed()
            return
        log.error("%s failed", doing, exc_info=error)
        await asyncio.sleep(PAUSE_AFTER_ERROR_S)

    def seconds_until(self, due_at: str | None) -> float:
        """Return how many seconds to sleep until `due_at`, but at most `Wakes.look_s`."""
        look_s = self.context.wakes.look_s
        if due_at is None:
            return look_s
        try:
            due_s = (from_text(due_at) - self.context.clock.now()).total_seconds()
        except (TypeError, ValueError):
            # The row is damaged. It must not keep the worker from other rows.
            return look_s
        # A change of the wall clock must not delay work for long.
        return min(max(due_s, 0.001), look_s)


class TaskWorker(Worker):
    """A worker that does one task of its type at a time. The task's lease is extended meanwhile."""

    task_type: str

    @abstractmethod
    async def claim(self) -> TaskRow | None:
        """Claim a task that is due, if there is one."""

    @abstractmethod
    async def perform(self, task: TaskRow) -> None:
        """Do the task to its end."""

    @abstractmethod
    async def give_back(self, task: TaskRow, error: Exception) -> None:
        """Queue the task for another attempt after this error, or end it."""

    async def work(self) -> float:
        task = await self.claim()
        if task is None:
            return self.seconds_until(self.context.read(partial(next_attempt_due, task_type=self.task_type)))
        beat = asyncio.create_task(keep_leases(self.context, [task]))
        try:
            await self.perform(task)
        except asyncio.CancelledError:
            await park(self.context, task)
            raise
        except Exception as error:
            await self.context.shortages.get_through(partial(self.give_back, task, error))
        finally:
            beat.cancel()
        return 0


async def keep_leases(context: Context, tasks: Sequence[TaskRow]) -> None:
    """Extend the tasks' leases periodically, until cancelled."""
    pause_s = beat_s = context.limits.lease_seconds / BEATS_PER_LEASE
    while True:
        await asyncio.sleep(pause_s)
        try:
            await extend_leases(context, tasks)
            pause_s = beat_s
        except StorageError:
            # Retry soon: after the lease expires, another worker can claim the task.
            pause_s = min(RETRY_S, beat_s)
