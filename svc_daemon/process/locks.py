"""Named locks: idempotency keys of requests in progress, upload sessions in use, and work that one node does at a time.

A lock saves needless work, but no transaction relies on it: in a cluster, a node that loses its connection to the
database loses all its locks without noticing. So each transaction also checks the rows that another holder of the lock
would have changed.

A request whose connection broke without notice would hold its upload session forever. So a new request for the same
session interrupts it: the old request makes the received bytes durable and ends, and the new one continues from there.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from svc_daemon.errors import ServiceError
from svc_daemon.wire.codes import ErrorCode

#: How long a new request waits for the end of the request that holds its session, in seconds.
TAKEOVER_S = 2.0


class Locks(Protocol):
    """Locks that are identified by names. Use them only on the event loop."""

    def hold_free(self, *names: str) -> AbstractAsyncContextManager[Sequence[str]]:
        """Within the block, hold those of the locks that are free, and yield their names. The others aren't waited for.

        Other requests can't interrupt the holder.
        """

    def take_over(self, *names: str, lets_go: bool = True) -> AbstractAsyncContextManager[None]:
        """Within the block, hold all of the locks. Another request that holds one of them is interrupted.

        The interrupted request fails with `request_in_progress`, and so does this one if the other doesn't end in time.
        If `lets_go` is false, other requests can't interrupt this one.
        """


def session_lock(session_id: str) -> str:
    """Return the name of the lock for an upload session, or for a batch whose files are sent as one stream."""
    return f"session {session_id}"


@dataclass(slots=True)
class _Holder:
    """A request that currently holds locks."""

    #: A timeout that a new request triggers to interrupt this one; None if it must not be interrupted, such as a
    #: finalize request.
    patience: asyncio.Timeout | None
    gone: asyncio.Event

    def ask_to_go(self) -> None:
        if self.patience is not None and not self.patience.expired():
            self.patience.reschedule(asyncio.get_running_loop().time())


class LocalLocks:
    """The locks of the only process that uses a data directory, in memory. A free lock is taken without waiting."""

    def __init__(self) -> None:
        self._holders: dict[str, _Holder] = {}

    @asynccontextmanager
    async def hold_free(self, *names: str) -> AsyncIterator[Sequence[str]]:
        """Hold those of the locks that are free, without waiting for the others; see `Locks.hold_free`."""
        free = [name for name in names if name not in self._holders]
        with self._holding(free, None):
            yield free

    @asynccontextmanager
    async def take_over(self, *names: str, lets_go: bool = True) -> AsyncIterator[None]:
        """Hold all of the locks, interrupting other holders; see `Locks.take_over`."""
        await self._interrupt(names)
        patience = asyncio.timeout(None)
        with self._holding(names, patience if lets_go else None):
            try:
                async with patience:
                    yield
            except TimeoutError as error:
                if not patience.expired():
                    raise
                raise ServiceError(
                    ErrorCode.REQUEST_IN_PROGRESS, "Another request has taken this session over.", retry_after_seconds=1
                ) from error

    def ask_to_go(self, names: Iterable[str]) -> None:
        """Interrupt the holders of these locks, except those that can't be interrupted."""
        for name in names:
            if name in self._holders:
                self._holders[name].ask_to_go()

    def names(self) -> list[str]:
        """List the names of the locks that are held."""
        return list(self._holders)

    @contextmanager
    def _holding(self, names: Collection[str], patience: asyncio.Timeout | None) -> Iterator[None]:
        holder = _Holder(patience, asyncio.Event())
        self._holders.update(dict.fromkeys(names, holder))
        try:
            yield
        finally:
            for name in names:
                del self._holders[name]
            holder.gone.set()

    async def _interrupt(self, names: Collection[str]) -> None:
        """Interrupt the requests that hold these locks, and return when all locks are free.

        All must be free at the same moment, so that two requests can't deadlock.
        """
        until_s = asyncio.get_running_loop().time() + TAKEOVER_S
        while holders := [self._holders[each] for each in names if each in self._holders]:
            self.ask_to_go(names)
            try:
                async with asyncio.timeout_at(until_s):
                    await holders[0].gone.wait()
            except TimeoutError as error:
                raise ServiceError(ErrorCode.REQUEST_IN_PROGRESS, retry_after_seconds=1) from error
