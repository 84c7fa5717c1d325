"""Looks up host names by the system's resolver, in threads of its own, so that slow lookups block nothing else."""

import asyncio
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol

#: Maximum number of lookups at the same time. A lookup without an answer occupies its thread until the system gives up.
MAX_LOOKUPS = 16


class Resolver(Protocol):
    """An interface for looking up the addresses of host names."""

    async def resolve(self, name: str) -> Sequence[str]:
        """Return the addresses of a host name, in the order in which to try them. Raises OSError if there are none."""
        ...


class SystemResolver:
    """Looks up names by `getaddrinfo`, in daemon threads.

    Lookups without an answer would use up the threads of the event loop's executor, which the whole daemon needs.
    Python does not wait for daemon threads at exit, so a shutdown does not wait for a name server.
    """

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(MAX_LOOKUPS)

    async def resolve(self, name: str) -> Sequence[str]:
        await self._slots.acquire()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Sequence[str]] = loop.create_future()

        def settle(set_answer: Callable[[], None]) -> None:
            # Release the slot only now that the lookup has ended; its caller may have been cancelled long before.
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
