"""The followers of the event log in this process: they are woken after each commit."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class Followers:
    """One asyncio event per follower. Use it on the event loop only; without followers, a wake costs nothing."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Event] = set()

    def wake(self) -> None:
        """Make every follower look at the log."""
        for each in self._waiting:
            each.set()

    @contextmanager
    def following(self) -> Iterator[asyncio.Event]:
        """Return the event that is set after each commit within the block."""
        woken = asyncio.Event()
        self._waiting.add(woken)
        try:
            yield woken
        finally:
            self._waiting.discard(woken)
