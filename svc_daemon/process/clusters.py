"""What the nodes of a cluster share through the database: locks, rate limits, a clock, and notices that wake workers.

Nodes send each other notices, short messages through the database server. What happens when:

    a node commits work for a worker      it wakes its own worker, and sends a notice that wakes those of other nodes
    a request needs another node's lock   it sends a notice, and the request that holds the lock ends early if it
                                          is waiting for bytes from its client
    a node dies                           the server frees its locks, and its leases expire; the workers of other nodes
                                          look for work every few seconds, so they continue its work
    a node missed notices                 all of its workers look for work as soon as it receives notices again
"""

import asyncio
import json
import logging
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from svc_daemon.errors import ShuttingDown
from svc_daemon.process.contexts import Context, Wakes
from svc_daemon.process.shared_locks import SharedLocks
from svc_daemon.process.shared_rates import SharedRateLimits
from svc_daemon.settings import Limits

log = logging.getLogger(__name__)

#: Maximum time that a worker of a cluster sleeps, in seconds, because a node that added work may have died before it
#: sent its notice.
LOOK_S = 10.0
#: How long a node collects the names of workers to wake before it sends one notice for all, in seconds.
GATHER_S = 0.005
#: Maximum number of lock keys in a notice, because a notice can have at most 8,000 bytes.
NOTICE_KEYS = 300


class Notices:
    """Sends and receives this node's notices (messages to other nodes), as JSON objects.

    Use it only on the event loop.
    """

    def __init__(self, node: str, send: Callable[[str], None], wakes: Wakes) -> None:
        self._node = node
        self._send = send
        self._wakes = wakes
        self._announced: set[str] = set()
        #: Function that interrupts the requests of this node that hold the locks with the given keys.
        self.let_go: Callable[[Sequence[int]], object] = lambda _: None
        wakes.look_s = LOOK_S
        for name, wake in wakes.shared().items():
            wake.announce = partial(self.announce, name)

    def announce(self, name: str) -> None:
        """Wake the workers with this name on the other nodes. Calls within a few milliseconds share one notice."""
        if not self._announced:
            asyncio.get_running_loop().call_later(GATHER_S, self._flush)
        self._announced.add(name)

    def ask(self, keys: Sequence[int]) -> None:
        """Ask the other nodes to end requests that hold the locks with these keys."""
        for start in range(0, len(keys), NOTICE_KEYS):
            self._send(json.dumps({"node": self._node, "let_go": keys[start : start + NOTICE_KEYS]}))

    def receive(self, text: str) -> None:
        """Do what another node's notice asks for: wake workers, or end requests that hold certain locks."""
        try:
            notice = json.loads(text)
            if notice["node"] == self._node:
                return
            for name in notice.get("wake", ()):
                self._wakes.shared()[name].set_here()
            self.let_go(notice.get("let_go", ()))
        except (ValueError, KeyError, TypeError, AttributeError):
            # The notice may come from a later release, or from another program that uses the same database.
            log.debug("a notice was not understood: %s", text)

    def _flush(self) -> None:
        names, self._announced = sorted(self._announced), set()
        with suppress(ShuttingDown):
            self._send(json.dumps({"node": self._node, "wake": names}))


@dataclass(frozen=True, slots=True)
class Cluster:
    """What a node that has joined a cluster shares with the other nodes."""

    locks: SharedLocks
    rate_limits: SharedRateLimits
    #: Returns the current time of the clock that all nodes share, in seconds.
    now_s: Callable[[], float]

    def share(self, context: Context) -> Context:
        """Return a copy of the context that uses the locks, limits and clock of all nodes.

        The context must have the same `Wakes` as this cluster.
        """

        def now() -> datetime:
            # Times that are stored, such as the expiry of a session, also come from the shared clock, because all nodes
            # compare them with that clock.
            return datetime.fromtimestamp(self.now_s(), UTC)

        clock, make_ids = replace(context.clock, now=now, shared=self.now_s), replace(context.ids, now=now)
        return replace(context, locks=self.locks, rate_limits=self.rate_limits, clock=clock, ids=make_ids)


def join_cluster(stack: ExitStack | AsyncExitStack, url: str, node: str, limits: Limits, wakes: Wakes) -> Cluster:
    """Start sharing locks, rate limits and a clock with all nodes that use this database. Raises StorageError.

    The state database must be open already, because opening it creates the schema. `node` is the name of this process:
    unique, and made of letters, digits and hyphens. Call this on the event loop; closing `stack` leaves the cluster.
    """
    from svc_daemon.databases.postgres.sessions import LockSession, NoticeListener, ShortTransactions  # noqa: PLC0415

    loop = asyncio.get_running_loop()
    session = LockSession(url, node, on_lost=lambda: loop.call_soon_threadsafe(locks.note_lost))
    stack.callback(session.close)
    notices = Notices(node, session.notify, wakes)
    locks = SharedLocks(session, notices.ask)
    notices.let_go = locks.let_go
    transactions = ShortTransactions(url)
    stack.callback(transactions.close)
    listener = NoticeListener(
        url,
        receive=lambda notice: loop.call_soon_threadsafe(notices.receive, notice),
        on_listening=lambda: loop.call_soon_threadsafe(wakes.wake_all),
    )
    stack.callback(listener.close)
    return Cluster(locks, SharedRateLimits(limits, transactions), session.now_s)
