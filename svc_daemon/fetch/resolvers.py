"""Looks up host names with the system's resolver, in threads of its own."""

import asyncio
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol

#: Maximum number of lookups at once. A lookup without an answer keeps its thread busy.
MAX_LOOKUPS = 16


class Resolver(Protocol):
    """Looks up the addresses of host names."""

    async def resolve(self, name: str) -> Sequence[str]:
        """Return a name's addresses, in the order to try. Raises OSError if there are none."""
        ...


class SystemResolver:
    """Looks up names with `getaddrinfo` in daemon threads.

    The event loop's own threads aren't used, because lookups without an answer would use them up. At exit, Python
    doesn't wait for daemon threads.
    """

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(MAX_LOOKUPS)

    async def resolve(self, name: str) -> Sequence[str]:
        await self._slots.acquire()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Sequence[str]] = loop.create_future()

        def settle(set_answer: Callable[[], None]) -> None:
            # The lookup may have gone on after its caller was cancelled.
            self._slots.release()
            if not answer.done():
                set_answer()

        def look_up() -> None:
            try:
                found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
                set_answer = partial(answer.set_result, [str(address[0]) for *_, address in found])
            except OSError as error:
                set_answer = partial(answer.set_exception, error)
            # If the event loop is closed, nothing waits for the answer any more.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, set_answer)

        threading.Thread(target=look_up, name="resolver", daemon=True).start()
        return await answer
