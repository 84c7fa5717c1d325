"""Who writes to which upload session: one request at a time, and a newcomer takes over from a dead one.

A connection that died without a word would hold its session for ever. So a newcomer asks the holder to let go: the
holder keeps what came, durably, and ends; then the newcomer goes on from there.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from svc_daemon.errors import ServiceError
from svc_daemon.wire.codes import ErrorCode

#: How long a newcomer waits for the holder of a session to let go, seconds.
TAKEOVER_S = 2.0


@dataclass(slots=True)
class _Holder:
    """The request that works on a session now."""

    #: Expires when a newcomer asks; None for one that must not be interrupted, such as a finalize.
    patience: asyncio.Timeout | None
    gone: asyncio.Event

    def ask_to_go(self) -> None:
        if self.patience is not None and not self.patience.expired():
            self.patience.reschedule(asyncio.get_running_loop().time())


class Writers:
    """Who works on which session. Asked on the event loop only, so no locks."""

    def __init__(self) -> None:
        self._holders: dict[str, _Holder] = {}

    @asynccontextmanager
    async def hold(self, session_id: str, *, lets_go: bool = True) -> AsyncIterator[None]:
        """Hold the session, taking over from a holder that lets go; that one meets `request_in_progress`.

        Raises `request_in_progress` when the holder does not let go in time.
        """
        await self._take_over(session_id)
        patience = asyncio.timeout(None)
        holder = _Holder(patience if lets_go else None, asyncio.Event())
        self._holders[session_id] = holder
        try:
            async with patience:
                yield
        except TimeoutError as error:
            if not patience.expired():
                raise
            raise ServiceError(
                ErrorCode.REQUEST_IN_PROGRESS, "Another request has taken this session over.", retry_after_seconds=1
            ) from error
        finally:
            del self._holders[session_id]
            holder.gone.set()

    def is_held(self, session_id: str) -> bool:
        """Whether a request works on the session now."""
        return session_id in self._holders

    async def _take_over(self, session_id: str) -> None:
        until_s = asyncio.get_running_loop().time() + TAKEOVER_S
        while (holder := self._holders.get(session_id)) is not None:
            holder.ask_to_go()
            try:
                async with asyncio.timeout_at(until_s):
                    await holder.gone.wait()
            except TimeoutError as error:
                raise ServiceError(ErrorCode.REQUEST_IN_PROGRESS, retry_after_seconds=1) from error
