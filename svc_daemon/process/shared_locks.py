"""Locks for a node of a cluster. A request takes each lock within its node first, and then on the database server.

If the node loses its connection to the server, it loses its locks. A request that continues without its locks is safe,
because each transaction checks the rows that it depends on.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from svc_daemon.errors import ServiceError, ShuttingDown
from svc_daemon.process import locks
from svc_daemon.process.locks import Hold, LocalLocks
from svc_daemon.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from svc_daemon.databases.postgres.sessions import Grip, LockSession

#: Pause in seconds between two attempts to take locks that another node holds.
PAUSE_S = 0.03


class SharedLocks:
    """Locks shared by all nodes of an installation. Use them only on the event loop."""

    def __init__(self, session: "LockSession", ask: Callable[[Sequence[int]], None]) -> None:
        """`ask` sends other nodes the keys of the locks that their requests must free."""
        self._session = session
        self._ask = ask
        self._local = LocalLocks()
        #: Names of the locks that this node holds on the database server, each by its key (see `key_of`).
        self._taken: dict[int, str] = {}

    @asynccontextmanager
    async def hold_free(self, *names: str) -> AsyncIterator[Sequence[str]]:
        async with self._local.hold_free(*names) as ours:
            by_key = {key_of(name): name for name in ours}
            grip = await self._take(by_key)
            try:
                yield [name for key, name in by_key.items() if key in grip.keys]
            finally:
                await self._free(grip)

    @asynccontextmanager
    async def take_over(self, *names: str) -> AsyncIterator[Hold]:
        async with self._local.take_over(*names) as hold:
            grip = await self._take_all({key_of(name): name for name in names})
            try:
                yield hold
            finally:
                await self._free(grip)

    def let_go(self, keys: Collection[int]) -> None:
        """Interrupt the requests that hold these locks, because another node needs them."""
        # Requests that still wait for a lock aren't interrupted.
        self._local.ask_to_go([self._taken[key] for key in keys if key in self._taken])

    def note_lost(self) -> None:
        """Interrupt all requests that held locks, because the connection to the server was lost."""
        taken, self._taken = self._taken, {}
        self._local.ask_to_go(taken.values())

    async def _take_all(self, by_key: dict[int, str]) -> "Grip":
        """Take all of the locks. Raises `request_in_progress` if another node doesn't free them in time."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + locks.TAKEOVER_S
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
            # The server can still take the locks after the cancellation, and nobody else would free them.
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
        # Wait until the locks are free: the client's next request may go to another node and need them there.
        await asyncio.shield(freeing)


def key_of(name: str) -> int:
    """Return the lock's key on the server, a signed 64-bit integer."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8, person=b"svc lock").digest(), signed=True)
