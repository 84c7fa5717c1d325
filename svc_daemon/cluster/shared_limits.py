"""Locks and rate limits that the nodes of a cluster share.

If the node loses its connection to the server, it loses its locks. A request that continues without its locks is safe,
because each transaction checks the rows that it depends on.

Each request is counted in a separate transaction, so it still counts if its own transaction is rolled back.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from svc_daemon.cluster.rate_limit_rows import RateRow, create_rates, find_rate, lock_rates, read_clock, update_rates
from svc_daemon.core.access.rate_limits import ByteWindow, TokenBucket
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import ServiceError, ShuttingDown
from svc_daemon.process import locks
from svc_daemon.process.locks import Hold, LocalLocks
from svc_daemon.process.rate_limits import WINDOW_S, refuse_bytes, refuse_create
from svc_daemon.settings.limits import Limits
from svc_daemon.wire.light.error_codes import ErrorCode

if TYPE_CHECKING:
    from svc_daemon.cluster.postgres.sessions import Grip, LockSession


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


T = TypeVar("T")


class Transactions(Protocol):
    """Runs short transactions, separately from those of the state database."""

    def run(self, work: Callable[[Connection], T]) -> T: ...


@dataclass(frozen=True, slots=True)
class _Charge:
    """What one request uses of its team's rate limits."""

    team_id: str
    size_bytes: int
    is_create: bool


class SharedRateLimits:
    """Keeps the counts of all teams in the database, for all nodes. Use it only on the event loop."""

    def __init__(self, limits: Limits, transactions: Transactions) -> None:
        self._limits = limits
        self._transactions = transactions
        #: The requests to count next, and the asyncio task that will count them.
        self._waiting: list[_Charge] = []
        self._next: asyncio.Task[list[ServiceError | None]] | None = None
        self._turn = asyncio.Lock()
        #: Ids of the teams that have a row in the table of rate limits. A crash of the database server can delete rows.
        self._known: set[str] = set()

    async def charge_create(self, team_id: str, size_bytes: int) -> None:
        if self._limits.creates_per_second or self._limits.bytes_per_minute:
            await self._charge(_Charge(team_id, size_bytes, is_create=True))

    async def charge_bytes(self, team_id: str, size_bytes: int) -> None:
        if self._limits.bytes_per_minute:
            await self._charge(_Charge(team_id, size_bytes, is_create=False))

    async def used_bytes(self, team_id: str) -> int:
        def work(connection: Connection) -> int:
            rate = find_rate(connection, team_id)
            return self._window(rate).used_within(read_clock(connection)) if rate else 0

        return await asyncio.to_thread(self._transactions.run, work) if self._limits.bytes_per_minute else 0

    async def _charge(self, charge: _Charge) -> None:
        place = len(self._waiting)
        self._waiting.append(charge)
        if self._next is None:
            self._next = asyncio.create_task(self._run_next())
        refusal = (await asyncio.shield(self._next))[place]
        if refusal is not None:
            raise refusal

    async def _run_next(self) -> "list[ServiceError | None]":
        """Count all waiting requests together, after the previous transaction.

        Returns an error for each refused request, and None for each other request.
        """
        async with self._turn:
            wave, self._waiting, self._next = self._waiting, [], None
            return await asyncio.to_thread(self._run, wave)

    def _run(self, wave: Sequence[_Charge]) -> "list[ServiceError | None]":
        team_ids = {charge.team_id for charge in wave}
        if team_ids - self._known:
            # Use a separate transaction: creating rows while others are locked could deadlock.
            self._transactions.run(partial(create_rates, team_ids=team_ids))
        self._known |= team_ids
        return self._transactions.run(partial(self._apply, wave=wave))

    def _apply(self, connection: Connection, *, wave: Sequence[_Charge]) -> "list[ServiceError | None]":
        """Count the requests. Returns an error for each refused request, and None for each other request."""
        rates = lock_rates(connection, {charge.team_id for charge in wave})
        # Time must not go back, even if the server's clock was set back.
        now_s = max([read_clock(connection), *(rate.updated_s for rate in rates.values())])
        refusals: list[ServiceError | None] = []
        for charge in wave:
            if charge.team_id not in rates:
                self._known.discard(charge.team_id)
            rate = rates.get(charge.team_id, RateRow(team_id=charge.team_id))
            rates[charge.team_id], refusal = self._count(rate, charge, now_s)
            refusals.append(refusal)
        update_rates(connection, rates.values())
        return refusals

    def _count(self, rate: RateRow, charge: _Charge, now_s: float) -> tuple[RateRow, ServiceError | None]:
        """Return the team's row after the request, and the error if the request is refused."""
        per_second, window, refusal = self._limits.creates_per_second, self._window(rate), None
        try:
            if charge.is_create and per_second:
                bucket = TokenBucket(per_second, rate.tokens, rate.updated_s)
                refuse_create(bucket.take(now_s), self._limits)
                rate = replace(rate, tokens=bucket.tokens, updated_s=bucket.updated_s)
            if self._limits.bytes_per_minute:
                refuse_bytes(window.charge(charge.size_bytes, now_s), window, charge.size_bytes)
        except ServiceError as error:
            refusal = error
        return replace(rate, charges=tuple(window.merged())), refusal

    def _window(self, rate: RateRow) -> ByteWindow:
        return ByteWindow(self._limits.bytes_per_minute, WINDOW_S, rate.charges)
