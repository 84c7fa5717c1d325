"""Waiting for an event or a due time, and keeping a lease while work goes on."""

import asyncio

from svc_daemon.core.times import Clock, from_text
from svc_daemon.errors import StorageError
from svc_daemon.operations.tasks import extend_claim
from svc_daemon.process.contexts import Context
from svc_daemon.store.tasks import TaskRow

#: Without any due time a worker still looks round after this long.
LONGEST_S = 60.0


async def wait(event: asyncio.Event, due_at: str | None, clock: Clock) -> None:
    """Return when `event` is set or `due_at` is reached; the event is clear afterwards."""
    try:
        async with asyncio.timeout(_pause_s(due_at, clock)):
            await event.wait()
    except TimeoutError:
        pass
    event.clear()


def _pause_s(due_at: str | None, clock: Clock) -> float:
    if due_at is None:
        return LONGEST_S
    # A moved wall clock must not stop a queue: never wait longer than the look-round.
    return min(max((from_text(due_at) - clock.now()).total_seconds(), 0.001), LONGEST_S)


#: A lease is extended three times before it would run out.
BEATS_PER_LEASE = 3
#: After a sign of life that the disk refused, seconds.
RETRY_S = 0.5


async def keep_lease(context: Context, task: TaskRow) -> None:
    """Extend the lease until this is cancelled."""
    pause_s = beat_s = context.limits.lease_seconds / BEATS_PER_LEASE
    while True:
        await asyncio.sleep(pause_s)
        try:
            await extend_claim(context, task)
            pause_s = beat_s
        except StorageError:
            # The worker lives all the same: as soon as the disk takes it, before anybody else has the task.
            pause_s = min(RETRY_S, beat_s)
