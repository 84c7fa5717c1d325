"""Named locks: idempotency keys of requests in progress, upload sessions in use, and work that one node does at a time.

A lock avoids useless and interleaved work, but nothing is committed on its strength alone: in a cluster, a node that
loses its connection to the database loses all of its locks without notice. So each transaction also checks the rows
that another holder would have changed.

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

#: How long a new request waits for the request that holds its session to end, in seconds.
TAKEOVER_S = 2.0


class Locks(Protocol):
    """Locks that are identified by name. Use them on the event loop only."""

    def hold_free(self, *names: str) -> AbstractAsyncContextManager[Sequence[str]]:
        """Hold those of the locks that are free within the block, without waiting for the others. Yields their names.

        The holder can't be interrupted.
        """

    def take_over(self, *names: str, lets_go: bool = True) -> AbstractAsyncContextManager[None]:
        """Hold all of the locks within the block. If another request holds one of them, it is interrupted.

        Raises `request_in_progress` in the interrupted request, and in this one if the other doesn't end in time. If
        `lets_go` is false, this request can't be interrupted.
        """


def session_lock(session_id: str) -> str:
    """Return the name of the lock of an upload session, or of a batch whose sessions are received as a pack."""
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
    """The locks of a process that alone uses its data directory, in memory. A free lock is taken without waiting."""

    def __init__(self) -> None:
        self._holders: dict[str, _Holder] = {}

    @asynccontextmanager
    async def hold_free(self, *names: str) -> AsyncIterator[Sequence[str]]:
        """Hold the free locks; see `Locks.hold_free`."""
        free = [name for name in names if name not in self._holders]
        with self._holding(free, None):
            yield free

    @asynccontextmanager
    async def take_over(self, *names: str, lets_go: bool = True) -> AsyncIterator[None]:
        """Hold all of the locks; see `Locks.take_over`."""
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
        """List the locks that are held."""
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
        """Interrupt the holders, and return when all locks are free at once, so that two requests can't deadlock."""
        until_s = asyncio.get_running_loop().time() + TAKEOVER_S
        while holders := [self._holders[each] for each in names if each in self._holders]:
            self.ask_to_go(names)
            try:
                async with asyncio.timeout_at(until_s):
                    await holders[0].gone.wait()
            except TimeoutError as error:
                raise ServiceError(ErrorCode.REQUEST_IN_PROGRESS, retry_after_seconds=1) from error
