"""The requests that read or follow the event log: they are woken together, and read one after the other."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")

#: After a read of the event log, no other begins for this many times the processor time that it took. So many clients
#: that read the whole log take together a tenth of a processor, and the rest is left to uploads and searches.
REST_TIMES = 9


class Followers:
    """The requests of this process that read or follow the event log. Use this class only on the event loop."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Event] = set()
        self._turn = asyncio.Lock()
        self._rests_until_s = 0.0

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

    async def read(self, call: Callable[[], T]) -> T:
        """Read a small part of the log in a thread, when it is this request's turn."""

        def work() -> tuple[T, float]:
            began_s = time.thread_time()
            return call(), time.thread_time() - began_s

        async with self._turn:
            await asyncio.sleep(self._rests_until_s - time.monotonic())
            result, took_s = await asyncio.to_thread(work)
            self._rests_until_s = time.monotonic() + REST_TIMES * took_s
        return result
