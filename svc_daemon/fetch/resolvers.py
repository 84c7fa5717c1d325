"""Names to addresses: the system's own resolver, in threads that never hold anything up."""

import asyncio
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol

#: Lookups at the same time. One that hangs holds its thread for as long as the system's resolver tries.
MAX_LOOKUPS = 16


class Resolver(Protocol):
    """Finds the addresses of a name, in the order to try them."""

    async def resolve(self, name: str) -> Sequence[str]:
        """Raises OSError where there are none."""
        ...


class SystemResolver:
    """`getaddrinfo` in threads of its own.

    Not in the loop's executor: names whose servers never answer would fill it, and it serves the whole daemon. The
    threads are daemonic, so that a stop does not wait for a name server.
    """

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(MAX_LOOKUPS)

    async def resolve(self, name: str) -> Sequence[str]:
        await self._slots.acquire()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Sequence[str]] = loop.create_future()

        def settle(set_answer: Callable[[], None]) -> None:
            # The slot belongs to the thread, not to the caller, who may have given up long ago.
            self._slots.release()
            if not answer.done():
                set_answer()

        def look_up() -> None:
            try:
                found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
                set_answer = partial(answer.set_result, [str(address[0]) for *_, address in found])
            except OSError as error:
                set_answer = partial(answer.set_exception, error)
            # In a closed loop nothing waits for the answer any more.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, set_answer)

        threading.Thread(target=look_up, name="resolver", daemon=True).start()
        return await answer
