"""Names to addresses: the system's own resolver, in threads that nobody has to wait for."""

import asyncio
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

#: Lookups at the same time. One that hangs holds its thread for as long as the system's resolver tries.
MAX_LOOKUPS = 16


class Resolver(Protocol):
    """Answers with the addresses of a name, in the order to try them."""

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
            # The slot belongs to the thread, not to who asked: that one may have given up long ago.
            self._slots.release()
            if not answer.done():
                set_answer()

        def look_up() -> None:
            set_answer = _outcome(name, answer)
            # A closed loop has nobody left who waits.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, set_answer)

        threading.Thread(target=look_up, name="resolver", daemon=True).start()
        return await answer


def _outcome(name: str, answer: asyncio.Future[Sequence[str]]) -> Callable[[], None]:
    """Look the name up, here and now, and return what settles the answer."""
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError as error:
        failure = error
        return lambda: answer.set_exception(failure)
    addresses = [str(address[0]) for *_, address in found]
    return lambda: answer.set_result(addresses)
