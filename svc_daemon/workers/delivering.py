"""The delivery worker: calls webhooks whose time has come, several at once, so that a slow receiver delays no other.

What is under way at a stop is not written down and is made again, with the same event id, after the next start.
"""

import asyncio
import logging

from svc_daemon.operations.webhooks import deliver
from svc_daemon.process.contexts import Context
from svc_daemon.store.deliveries import DeliveryRow, list_due, next_delivery_due
from svc_daemon.workers.waiting import wait

log = logging.getLogger(__name__)

#: Calls at the same time.
SLOTS = 16
#: After an error of ours a delivery waits this long, so that it can't spin.
PAUSE_AFTER_ERROR_S = 1.0


class DeliveringWorker:
    """Runs until it is cancelled."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._running: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        wake = self._context.wakes.delivering
        try:
            while True:
                wake.clear()
                try:
                    self._start_due()
                    due_at = self._next_due()
                except Exception as error:
                    await self._outlast(error, "looking for deliveries")
                    continue
                await wait(wake, due_at, self._context.clock)
        finally:
            await self._stop_all()

    def _start_due(self) -> None:
        now, busy, free = self._context.clock.timestamp(), list(self._running), SLOTS - len(self._running)
        for delivery in self._context.read(lambda connection: list_due(connection, now, busy, free)):
            self._running[delivery.id] = asyncio.create_task(self._deliver(delivery))

    def _next_due(self) -> str | None:
        """When to look again; without a free slot, a call that ends says so."""
        busy = list(self._running)
        if len(busy) >= SLOTS:
            return None
        return self._context.read(lambda connection: next_delivery_due(connection, busy))

    async def _deliver(self, delivery: DeliveryRow) -> None:
        try:
            await deliver(self._context, delivery)
        except Exception as error:
            await self._outlast(error, f"delivering {delivery.id}")
        finally:
            del self._running[delivery.id]
            self._context.wakes.delivering.set()

    async def _outlast(self, error: Exception, doing: str) -> None:
        if await self._context.shortages.is_cause_of(error):
            await self._context.shortages.passed()
            return
        log.error("%s went wrong", doing, exc_info=error)
        await asyncio.sleep(PAUSE_AFTER_ERROR_S)

    async def _stop_all(self) -> None:
        running = list(self._running.values())
        for call in running:
            call.cancel()
        await asyncio.gather(*running, return_exceptions=True)
