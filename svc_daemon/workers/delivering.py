"""The delivery worker: makes webhook calls that are due, first ones and retries, several at once.

So a slow receiver doesn't delay others. `operations.webhooks` decides when a failed call is due again.

If the daemon stops during a call, the call isn't recorded. The next start makes it again, with the same event id.
"""

import asyncio

from svc_daemon.operations.webhooks import deliver
from svc_daemon.process.contexts import Context
from svc_daemon.store.deliveries import DeliveryRow, list_due, next_delivery_due
from svc_daemon.workers.runners import LONGEST_S, Worker

#: Maximum number of concurrent calls.
SLOTS = 16
#: Delay in seconds before checking again on a webhook call that another node is making.
HELD_PAUSE_S = 2.0


class DeliveringWorker(Worker):
    """Makes webhook calls in asyncio tasks that run beside its loop."""

    doing = "looking for deliveries"

    def __init__(self, context: Context) -> None:
        super().__init__(context, context.wakes.delivering)

    async def work(self) -> float:
        now, busy = self.context.clock.timestamp(), list(self.running.values())
        for delivery in self.context.read(lambda connection: list_due(connection, now, busy, SLOTS - len(busy))):
            self.start(delivery.id, self._deliver(delivery))
        busy = list(self.running.values())
        if len(busy) >= SLOTS:
            # The maximum number of calls is running. The worker is woken when one of them ends.
            return LONGEST_S
        return self.seconds_until(self.context.read(lambda connection: next_delivery_due(connection, busy)))

    async def _deliver(self, delivery: DeliveryRow) -> None:
        try:
            async with self.context.locks.hold_free(f"delivery {delivery.id}") as held:
                if held:
                    await deliver(self.context, delivery)
                else:
                    # Another node is making this call. Check again later, in case that node dies.
                    await asyncio.sleep(HELD_PAUSE_S)
        except Exception as error:
            await self.outlast(error, f"delivering {delivery.id}")
