"""The delivery worker: makes due webhook calls, several at once, so that a slow receiver doesn't delay others.

If the daemon stops during a call, the call is made again after the next start, with the same event id.
"""

import asyncio
import logging
from functools import partial

from svc_daemon.operations.shared.leases import UNREADABLE
from svc_daemon.operations.webhook_deliveries import deliver, give_up
from svc_daemon.process.contexts import Context
from svc_daemon.store.rows.webhook_deliveries import list_due, next_delivery_due
from svc_daemon.workers.runners import LONGEST_S, Worker

log = logging.getLogger(__name__)

#: Maximum number of concurrent calls.
SLOTS = 16
#: Delay in seconds before checking again on a call that another node is making.
HELD_PAUSE_S = 2.0


class DeliveringWorker(Worker):
    """Makes webhook calls, each in an asyncio task of its own."""

    doing = "looking for deliveries"

    def __init__(self, context: Context) -> None:
        super().__init__(context, context.wakes.delivering)

    async def work(self) -> float:
        now, busy = self.context.clock.timestamp(), list(self.running.values())
        for delivery_id in self.context.read(lambda connection: list_due(connection, now, busy, SLOTS - len(busy))):
            self.start(delivery_id, self._deliver(delivery_id))
        busy = list(self.running.values())
        if len(busy) >= SLOTS:
            # All slots are in use. The worker is woken when a call ends.
            return LONGEST_S
        return self.seconds_until(self.context.read(lambda connection: next_delivery_due(connection, busy)))

    async def _deliver(self, delivery_id: str) -> None:
        try:
            async with self.context.locks.hold_free(f"delivery {delivery_id}") as held:
                if held:
                    await deliver(self.context, delivery_id)
                else:
                    # Another node is making this call. Check again later, in case that node dies.
                    await asyncio.sleep(HELD_PAUSE_S)
        except Exception as error:
            if not isinstance(error, UNREADABLE):
                await self.outlast(error, f"delivering {delivery_id}")
                return
            log.exception("delivering %s failed for good", delivery_id)
            await self.context.shortages.get_through(partial(give_up, self.context, delivery_id))
