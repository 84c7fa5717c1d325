"""Waiting for an event or for a due time, whichever comes first."""

import asyncio

from svc_daemon.core.times import Clock, from_text

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
