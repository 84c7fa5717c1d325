"""After each commit, wakes requests that wait for new events."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class Followers:
    """The requests of this process that wait for new events. Use this class only on the event loop."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Event] = set()

    def wake(self) -> None:
        """Wake all waiting requests, so that they read the event log again."""
        for each in self._waiting:
            each.set()

    @contextmanager
    def following(self) -> Iterator[asyncio.Event]:
        """Yield an asyncio event that is set after each commit while the block runs."""
        woken = asyncio.Event()
        self._waiting.add(woken)
        try:
            yield woken
        finally:
            self._waiting.discard(woken)
