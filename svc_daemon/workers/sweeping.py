"""Cleans up after deletions and expired leases, looks for overlooked work, and counts answers and searches."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

from svc_daemon.core.task_retries import FURTHEST_DUE_S
from svc_daemon.operations.index.indexing import release_expired
from svc_daemon.operations.index.syncing import release_expired_syncs
from svc_daemon.operations.index.vectors import forget_offers
from svc_daemon.operations.remove import sweeping
from svc_daemon.operations.remove.setting_aside import clear_held, forget_set_aside_files
from svc_daemon.operations.service_status import forget_silent_watchers
from svc_daemon.operations.shared.events import forget_events
from svc_daemon.operations.shared.leases import latest_lease_s
from svc_daemon.operations.shared.usage import record_usage
from svc_daemon.process.contexts import Context
from svc_daemon.process.wakes import Wake
from svc_daemon.store.rows.overdue_work import has_overlooked
from svc_daemon.workers.runners import LONGEST_S, Worker

T = TypeVar("T")

log = logging.getLogger(__name__)

#: Interval in seconds for checking leases and repeating failed steps.
ROUND_S = 10.0
#: Old rows are deleted at this interval in seconds.
FORGET_S = 3600.0
#: Interval in seconds for looking for overlooked work: work that has been due for `OVERDUE_S`.
LOOK_S = 15.0
OVERDUE_S = 5.0
#: Minimum time in seconds between two purges: each writes a good part of a team's index.
PURGE_PAUSE_S = 3600.0
#: Maximum time in seconds of a purge that a stop waits for. The next start goes on with it.
LAST_PURGE_S = 2.0
#: Minimum time in seconds between two commits of the number of answers and searches.
COUNT_PAUSE_S = 1.0


class SweepingWorker(Worker):
    """Cleans up after deletions, releases expired leases, and deletes old rows and files.

    Every step is idempotent.
    """

    doing = "sweeping"
    locks = ("sweeping",)

    def __init__(self, context: Context) -> None:
        super().__init__(context, context.wakes.sweeping)
        self._due_s: float | None = None
        self._forget_due_s: float | None = None
        #: Key of the last object checked in the current pass over the object store; None between two passes.
        self._swept: str | None = None
        #: Whether deleted data may be left in the files.
        self._is_unpurged = False
        self._purge_due_s = 0.0

    async def work(self) -> float:
        monotonic = self.context.clock.monotonic
        if self._due_s is None:
            if self.context.clock.shared is not None:
                await _try(self, sweeping.rebuild_lost)
            await _try(self, sweeping.reconcile_index)
            self._due_s = monotonic() + ROUND_S
        if await _try(self, sweeping.clean_tombstones):
            self._is_unpurged = True
        await self._purge(self._purge_due_s)
        now_s = monotonic()
        # The remaining steps run once per interval, however often deletions wake the worker.
        if now_s < self._due_s:
            return self._due_s - now_s
        # In a shortage, running workers may be unable to extend their leases, so keep their tasks.
        if self.context.shortages.now is None:
            await _try(self, lambda context: release_expired(context, context.clock.lease_s()))
        await _try(self, lambda context: release_expired_syncs(context, context.clock.lease_s()))
        await _try(self, sweeping.expire_sessions)
        await _try(self, sweeping.recall_far_pauses)
        await _try(self, clear_held)
        if self._forget_due_s is None or now_s >= self._forget_due_s:
            await _try(self, sweeping.forget_old_keys)
            await _try(self, sweeping.forget_ended)
            await _try(self, forget_events)
            await _try(self, forget_offers)
            await _try(self, forget_silent_watchers)
            await _try(self, lambda context: asyncio.to_thread(context.database.empty_log))
            self._is_unpurged = True
            if self._forget_due_s is not None:
                # Delete set-aside files, but not right after a start: the clock may still be wrong, and these files may
                # be the only copies.
                await _try(self, forget_set_aside_files)
                self._swept = self._swept or ""
            self._forget_due_s = now_s + FORGET_S
        if self._swept is not None:
            await _try(self, self._sweep_page)
        self._due_s = monotonic() + ROUND_S
        # In a cluster, a `LookingWorker` wakes this worker if a step has something to do.
        return ROUND_S if self._swept is not None or self.context.clock.shared is None else self.context.wakes.look_s

    async def stop(self) -> None:
        # A user who deletes a source and then stops the service expects that nothing of it is left.
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_PURGE_S):
                await self._purge(due_s=0.0)

    async def _purge(self, due_s: float) -> None:
        now_s = self.context.clock.monotonic()
        if self._is_unpurged and now_s >= due_s and self.context.shortages.now is None:
            self._is_unpurged = False
            if await _try(self, sweeping.purge):
                self._purge_due_s = now_s + PURGE_PAUSE_S

    async def _sweep_page(self, context: Context) -> None:
        self._swept = await sweeping.sweep_objects(context, self._swept or "")


class LookingWorker(Worker):
    """Wakes the workers of this node if work of the cluster is overdue, such as the expired leases of a node that died.

    Nodes are woken by notices, which are lost if their sender dies first. Since this worker looks for the work of all,
    with one statement, the others can rest.
    """

    doing = "looking for overlooked work"

    def __init__(self, context: Context) -> None:
        super().__init__(context, Wake())

    async def work(self) -> float:
        context, clock = self.context, self.context.clock
        now_s, before = clock.lease_s(), clock.timestamp(-OVERDUE_S)
        far = clock.timestamp(max(FURTHEST_DUE_S, 2 * context.limits.webhook_retry_seconds))
        look = partial(has_overlooked, before=before, far=far, now_s=now_s, latest_s=latest_lease_s(context, now_s))
        if await asyncio.to_thread(context.look, look):
            for wake in context.wakes.shared().values():
                wake.set_here()
        return LOOK_S


class CountingWorker(Worker):
    """Stores how many answers and searches there were, many of them in one commit."""

    doing = "counting answers"

    def __init__(self, context: Context) -> None:
        super().__init__(context, context.wakes.counting)

    async def work(self) -> float:
        await self.stop()
        if self.is_woken:
            await asyncio.sleep(COUNT_PAUSE_S)
        return LONGEST_S

    async def stop(self) -> None:
        recording = asyncio.create_task(_try(self, record_usage))
        try:
            await asyncio.shield(recording)
        except asyncio.CancelledError:
            # Wait for the write: after cancelling it, the daemon wouldn't know whether the counts were stored.
            await recording
            raise


async def _try(worker: Worker, step: Callable[[Context], Awaitable[T]]) -> T | None:
    """Run a step, and log its error so that the other steps still run."""
    try:
        return await step(worker.context)
    except Exception as error:
        if not await worker.context.shortages.is_cause_of(error):
            log.exception("%s failed", worker.doing)
        return None
