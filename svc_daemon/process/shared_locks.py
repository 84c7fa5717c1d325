"""The locks of a node that shares its installation with others: each name is held here, and on the database server.

Within the node they are local locks. A name that is free here is then taken on the server, by a connection that holds
all locks of the node. If another node has it, that node is sent a notice, and interrupts the request that holds it, as
a new request on the same node would. Until it ends, this node tries again and again, always for all names or none, so
that two requests can't deadlock.

If the connection is lost, so are all the locks: requests that can be interrupted are. The others commit only what the
rows permit, as everywhere (see `process.locks`).
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from svc_daemon.errors import ServiceError, ShuttingDown
from svc_daemon.process.locks import TAKEOVER_S, LocalLocks
from svc_daemon.wire.codes import ErrorCode

if TYPE_CHECKING:
    from svc_daemon.databases.postgres.sessions import Grip, LockSession

#: Pause in seconds between two attempts to take locks that another node has.
PAUSE_S = 0.03


class SharedLocks:
    """Locks of all nodes of an installation. Use them on the event loop only."""

    def __init__(self, session: "LockSession", ask: Callable[[Sequence[int]], None]) -> None:
        """`ask` asks the other nodes to let go of the locks with these keys."""
        self._session = session
        self._ask = ask
        self._local = LocalLocks()
        #: The names of the locks that this node has on the server, by key.
        self._taken: dict[int, str] = {}

    @asynccontextmanager
    async def hold_free(self, *names: str) -> AsyncIterator[Sequence[str]]:
        """Hold the free locks; see `Locks.hold_free`."""
        async with self._local.hold_free(*names) as ours:
            by_key = {key_of(name): name for name in ours}
            grip = await self._take(by_key)
            try:
                yield [name for key, name in by_key.items() if key in grip.keys]
            finally:
                await self._free(grip)

    @asynccontextmanager
    async def take_over(self, *names: str, lets_go: bool = True) -> AsyncIterator[None]:
        """Hold all of the locks; see `Locks.take_over`."""
        async with self._local.take_over(*names, lets_go=lets_go):
            grip = await self._take_all({key_of(name): name for name in names})
            try:
                yield
            finally:
                await self._free(grip)

    def let_go(self, keys: Collection[int]) -> None:
        """Interrupt the requests that hold these locks, because another node has asked for them."""
        # Requests that still wait for a lock are not in the way.
        self._local.ask_to_go([self._taken[key] for key in keys if key in self._taken])

    def note_lost(self) -> None:
        """Interrupt all requests that held locks, because the connection that had them is lost."""
        taken, self._taken = self._taken, {}
        self._local.ask_to_go(taken.values())

    async def _take_all(self, by_key: dict[int, str]) -> "Grip":
        """Take all of the locks; raises `request_in_progress` if another node doesn't let go in time."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + TAKEOVER_S
        while True:
            grip = await self._take(by_key)
            if len(grip.keys) == len(by_key):
                return grip
            await self._free(grip)
            if loop.time() >= until_s:
                raise ServiceError(ErrorCode.REQUEST_IN_PROGRESS, retry_after_seconds=1)
            self._ask([key for key in by_key if key not in grip.keys])
            await asyncio.sleep(PAUSE_S)

    async def _take(self, by_key: dict[int, str]) -> "Grip":
        taking = self._session.take(by_key)
        try:
            grip = await asyncio.shield(asyncio.wrap_future(taking))
        except asyncio.CancelledError:
            # They may be taken all the same, and nobody else would free them.
            taking.add_done_callback(lambda taken: None if taken.exception() else self._session.free(taken.result()))
            raise
        if grip.epoch == self._session.epoch:
            self._taken |= {key: by_key[key] for key in grip.keys}
        return grip

    async def _free(self, grip: "Grip") -> None:
        for key in grip.keys:
            self._taken.pop(key, None)
        try:
            freeing = asyncio.wrap_future(self._session.free(grip))
        except ShuttingDown:
            return
        # Wait, so that the client's next request, which may come to another node, finds them free.
        await asyncio.shield(freeing)


def key_of(name: str) -> int:
    """Return the key of a lock on the server: 64 bits with a sign."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8, person=b"svc lock").digest(), signed=True)
