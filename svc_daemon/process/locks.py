"""Named locks, for idempotency keys, upload sessions, and work that only one node may do at a time.

An upload request can take over the lock of an earlier request, whose connection may be broken. The earlier request then
makes its bytes durable and ends.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Protocol, TypeVar

from svc_daemon.errors import ServiceError
from svc_daemon.wire.light.error_codes import ErrorCode

T = TypeVar("T")

#: How many seconds a request waits for interrupted requests to free their locks.
TAKEOVER_S = 2.0
#: An interrupted request ends when no bytes have arrived from its client for this many seconds.
QUIET_S = 0.05
#: An interrupted request ends this many seconds after the interruption, even if bytes are still arriving.
LAST_BYTES_S = 1.0


class Locks(Protocol):
    """Locks identified by names. Use them only on the event loop."""

    def hold_free(self, *names: str) -> AbstractAsyncContextManager[Sequence[str]]:
        """During the block, hold those of the locks that are free. Yields the names of these locks.

        Other requests can't take over locks that are held this way.
        """

    def take_over(self, *names: str) -> AbstractAsyncContextManager["Hold"]:
        """Within the block, hold all of the locks, and interrupt requests that hold any of them.

        Raises `request_in_progress` if one of these requests doesn't end in time. The caller can itself be interrupted
        only while it waits in `Hold.arriving`.
        """


def session_lock(session_id: str) -> str:
    """Return the name of the lock for an upload session, or for a batch sent in one request."""
    return f"session {session_id}"


class Hold:
    """The locks that a request holds."""

    def __init__(self) -> None:
        #: Set when the locks are free again.
        self.gone = asyncio.Event()
        #: When another request first asked for the locks; None if none has.
        self._asked_s: float | None = None
        #: The timeout of the wait for the next chunk; None if the request isn't waiting.
        self._patience: asyncio.Timeout | None = None

    async def arriving(self, chunks: AsyncIterator[T]) -> AsyncIterator[T]:
        """Yield the chunks of a request body.

        Raises `request_in_progress` if another request wants the locks and no more chunks arrive.
        """
        while True:
            try:
                async with asyncio.timeout(None) as self._patience:
                    self._limit_wait()
                    chunk = await anext(chunks)
            except StopAsyncIteration:
                return
            except TimeoutError as error:
                if self._patience is None or not self._patience.expired():
                    raise
                message = "Another request has taken this session over."
                raise ServiceError(ErrorCode.REQUEST_IN_PROGRESS, message, retry_after_seconds=1) from error
            finally:
                self._patience = None
            yield chunk

    def ask_to_go(self) -> None:
        """Ask the request that holds the locks to end. `arriving` then raises `request_in_progress`."""
        if self._asked_s is None:
            self._asked_s = asyncio.get_running_loop().time()
            self._limit_wait()

    def _limit_wait(self) -> None:
        if self._asked_s is not None and self._patience is not None:
            now_s = asyncio.get_running_loop().time()
            self._patience.reschedule(min(now_s + QUIET_S, self._asked_s + LAST_BYTES_S))


class LocalLocks:
    """Locks in memory, for the only process that uses a data directory."""

    def __init__(self) -> None:
        self._holders: dict[str, Hold] = {}

    @asynccontextmanager
    async def hold_free(self, *names: str) -> AsyncIterator[Sequence[str]]:
        free = [name for name in names if name not in self._holders]
        with self._holding(free):
            yield free

    @asynccontextmanager
    async def take_over(self, *names: str) -> AsyncIterator[Hold]:
        await self._interrupt(names)
        with self._holding(names) as hold:
            yield hold

    def ask_to_go(self, names: Iterable[str]) -> None:
        """Ask the requests that hold these locks to end."""
        for name in names:
            if name in self._holders:
                self._holders[name].ask_to_go()

    @contextmanager
    def _holding(self, names: Collection[str]) -> Iterator[Hold]:
        hold = Hold()
        self._holders.update(dict.fromkeys(names, hold))
        try:
            yield hold
        finally:
            for name in names:
                del self._holders[name]
            hold.gone.set()

    async def _interrupt(self, names: Collection[str]) -> None:
        """Interrupt the requests that hold these locks, and return when all locks are free.

        Waiting for all locks before taking any of them prevents deadlocks.
        """
        until_s = asyncio.get_running_loop().time() + TAKEOVER_S
        while holders := [self._holders[each] for each in names if each in self._holders]:
            self.ask_to_go(names)
            try:
                async with asyncio.timeout_at(until_s):
                    await holders[0].gone.wait()
            except TimeoutError as error:
                raise ServiceError(ErrorCode.REQUEST_IN_PROGRESS, retry_after_seconds=1) from error
