"""In-memory coordination of requests: idempotency keys and upload sessions in use, running uploads, usage counts.

A single process owns the data directory, and uses this state on its event loop only, so no locks are needed. A restart
resets it.

A request whose connection broke without notice would hold its upload session forever. So a new request for the same
session interrupts it: the old request makes the received bytes durable and ends, and the new one continues from there.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field

from svc_daemon.errors import ServiceError
from svc_daemon.wire.codes import ErrorCode

#: Maximum time that the indexing of a document waits for uploads in progress, in seconds.
UPLOADS_TURN_S = 0.25


class Gates:
    """Tracks the idempotency keys of requests in progress, and counts the uploads that are being stored."""

    def __init__(self) -> None:
        self._in_flight: set[tuple[str, str]] = set()
        self._agents_in_flight: set[tuple[str, str, str]] = set()
        self._uploads = 0
        self._no_uploads = asyncio.Event()
        self._no_uploads.set()

    @contextmanager
    def hold_key(self, key_id: str, idempotency_key: str | None) -> Iterator[None]:
        """Hold an idempotency key while its request runs; raises `request_in_progress` if it is already held."""
        if idempotency_key is None:
            yield
            return
        claim = (key_id, idempotency_key)
        if claim in self._in_flight:
            raise ServiceError(ErrorCode.REQUEST_IN_PROGRESS, retry_after_seconds=1)
        self._in_flight.add(claim)
        try:
            yield
        finally:
            self._in_flight.discard(claim)

    @contextmanager
    def hold_agent(self, key_id: str, idempotency_key: str | None, agent_id: str | None) -> Iterator[None]:
        """Hold an agent id and an idempotency key while a request creates the agent.

        Raises `agent_replay_check_unavailable` if both are already held: until the other request ends, it is unknown
        whether this one is a replay of it.
        """
        if idempotency_key is None or agent_id is None:
            yield
            return
        claim = (key_id, idempotency_key, agent_id)
        if claim in self._agents_in_flight:
            raise ServiceError(ErrorCode.AGENT_REPLAY_CHECK_UNAVAILABLE, agent_id=agent_id, retry_after_seconds=1)
        self._agents_in_flight.add(claim)
        try:
            yield
        finally:
            self._agents_in_flight.discard(claim)

    @contextmanager
    def uploading(self) -> Iterator[None]:
        """Count an upload whose bytes have all arrived and are being stored."""
        self._uploads += 1
        self._no_uploads.clear()
        try:
            yield
        finally:
            self._uploads -= 1
            if self._uploads == 0:
                self._no_uploads.set()

    async def let_uploads_go_first(self) -> None:
        """Wait until no upload is being stored, but only for a limited time, since indexing must continue too."""
        with suppress(TimeoutError):
            async with asyncio.timeout(UPLOADS_TURN_S):
                await self._no_uploads.wait()


#: How long a new request waits for the request that holds its session to end, in seconds.
TAKEOVER_S = 2.0


@dataclass(slots=True)
class _Holder:
    """The request that currently holds a session."""

    #: A timeout that a new request triggers to interrupt this one; None if it must not be interrupted, such as a
    #: finalize request.
    patience: asyncio.Timeout | None
    gone: asyncio.Event

    def ask_to_go(self) -> None:
        if self.patience is not None and not self.patience.expired():
            self.patience.reschedule(asyncio.get_running_loop().time())


class Writers:
    """Tracks which request holds which upload session. Not thread-safe: use it only on the event loop."""

    def __init__(self) -> None:
        self._holders: dict[str, _Holder] = {}

    @asynccontextmanager
    async def hold(self, *session_ids: str, lets_go: bool = True) -> AsyncIterator[None]:
        """Hold the sessions within the block. If another request holds one of them, it is interrupted.

        Raises `request_in_progress` in the interrupted request, and in this one if the other doesn't end in time. If
        `lets_go` is false, this request can't be interrupted.
        """
        await self._take_over(session_ids)
        patience = asyncio.timeout(None)
        holder = _Holder(patience if lets_go else None, asyncio.Event())
        self._holders.update(dict.fromkeys(session_ids, holder))
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
            for session_id in session_ids:
                del self._holders[session_id]
            holder.gone.set()

    def is_held(self, session_id: str) -> bool:
        """Whether a request holds the session."""
        return session_id in self._holders

    async def _take_over(self, session_ids: Collection[str]) -> None:
        """Interrupt the holders, and return when all sessions are free at once, so that two requests can't deadlock."""
        until_s = asyncio.get_running_loop().time() + TAKEOVER_S
        while holders := [self._holders[each] for each in session_ids if each in self._holders]:
            for holder in holders:
                holder.ask_to_go()
            try:
                async with asyncio.timeout_at(until_s):
                    await holders[0].gone.wait()
            except TimeoutError as error:
                raise ServiceError(ErrorCode.REQUEST_IN_PROGRESS, retry_after_seconds=1) from error


#: The id of a team, and a month such as `2026-01`.
Period = tuple[str, str]


@dataclass(slots=True)
class Tallies:
    """The number of answers and searches by team and month."""

    totals: dict[Period, int] = field(default_factory=dict)
    #: The part of each number in `totals` that isn't stored in the state database yet.
    unrecorded: dict[Period, int] = field(default_factory=dict)

    def add(self, period: Period, answers: int) -> None:
        """Add answers to a period, which must already be in `totals`."""
        self.totals[period] += answers
        self.unrecorded[period] = self.unrecorded.get(period, 0) + answers

    def take_unrecorded(self) -> dict[Period, int]:
        """Return the unrecorded counts, and reset them as if they had been recorded."""
        taken, self.unrecorded = self.unrecorded, {}
        return {period: answers for period, answers in taken.items() if answers}

    def give_back(self, unrecorded: dict[Period, int]) -> None:
        """Add back counts that could not be recorded."""
        for period, answers in unrecorded.items():
            self.unrecorded[period] = self.unrecorded.get(period, 0) + answers
