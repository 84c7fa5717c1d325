"""The delivery worker: calls webhooks whose time has come, several at once, so that a slow receiver delays no other.

A call that a stop cuts off is not recorded and is made again, with the same event id, after the next start.
"""

from svc_daemon.operations.webhooks import deliver
from svc_daemon.process.contexts import Context
from svc_daemon.store.deliveries import DeliveryRow, list_due, next_delivery_due
from svc_daemon.workers.runners import LONGEST_S, Worker

#: Calls at the same time.
SLOTS = 16


class DeliveringWorker(Worker):
    """Calls webhooks beside its loop."""

    doing = "looking for deliveries"

    def __init__(self, context: Context) -> None:
        super().__init__(context, context.wakes.delivering)

    async def work(self) -> float:
        now, busy = self.context.clock.timestamp(), list(self.running.values())
        for delivery in self.context.read(lambda connection: list_due(connection, now, busy, SLOTS - len(busy))):
            self.start(delivery.id, self._deliver(delivery))
        busy = list(self.running.values())
        if len(busy) >= SLOTS:
            # The end of a call wakes this.
            return LONGEST_S
        return self.seconds_until(self.context.read(lambda connection: next_delivery_due(connection, busy)))

    async def _deliver(self, delivery: DeliveryRow) -> None:
        try:
            await deliver(self.context, delivery)
        except Exception as error:
            await self.outlast(error, f"delivering {delivery.id}")
