"""What the nodes of an installation share in the database, apart from its state: locks, rates, a clock, and wakes.

a change that any node can continue   the node wakes its own worker, and notifies the others, after the commit
a request needs a lock of another     that node is notified, and lets go of the lock if it may
a node dies                           the server frees its locks, and leases expire; workers look for work every few
                                      seconds, so they find what the node has left without a notice
notices were not received             all workers look once the node receives them again
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

#: Maximum time that a worker of a cluster sleeps, in seconds: the node that announced work may have died before.
LOOK_S = 10.0
#: How long a node gathers wakes before it sends them, in seconds.
GATHER_S = 0.005
#: Maximum number of keys in a notice, which is limited to 8,000 bytes.
NOTICE_KEYS = 300


class Notices:
    """Sends and receives the notices of a node, which are JSON objects. Use it on the event loop only."""

    def __init__(self, node: str, send: Callable[[str], None], wakes: Wakes) -> None:
        self._node = node
        self._send = send
        self._wakes = wakes
        self._announced: set[str] = set()
        #: Interrupts the requests that hold the locks with these keys.
        self.let_go: Callable[[Sequence[int]], object] = lambda _: None
        wakes.look_s = LOOK_S
        for name, wake in wakes.shared().items():
            wake.announce = partial(self.announce, name)

    def announce(self, name: str) -> None:
        """Wake the workers of this name on the other nodes, together with all that are announced at this time."""
        if not self._announced:
            asyncio.get_running_loop().call_later(GATHER_S, self._flush)
        self._announced.add(name)

    def ask(self, keys: Sequence[int]) -> None:
        """Ask the other nodes to let go of the locks with these keys."""
        for start in range(0, len(keys), NOTICE_KEYS):
            self._send(json.dumps({"node": self._node, "let_go": keys[start : start + NOTICE_KEYS]}))

    def receive(self, text: str) -> None:
        """Do what a notice of another node asks for."""
        try:
            notice = json.loads(text)
            if notice["node"] == self._node:
                return
            for name in notice.get("wake", ()):
                self._wakes.shared()[name].set_here()
            self.let_go(notice.get("let_go", ()))
        except (ValueError, KeyError, TypeError, AttributeError):
            # It may come from a later release, or from another program on the same database.
            log.debug("a notice was not understood: %s", text)

    def _flush(self) -> None:
        names, self._announced = sorted(self._announced), set()
        with suppress(ShuttingDown):
            self._send(json.dumps({"node": self._node, "wake": names}))


@dataclass(frozen=True, slots=True)
class Cluster:
    """This node's part in a cluster."""

    locks: SharedLocks
    rate_limits: SharedRateLimits
    #: Returns seconds of the clock that all nodes share.
    now_s: Callable[[], float]

    def share(self, context: Context) -> Context:
        """Return a copy of the context that uses what the nodes share; its wakes must be those that joined."""

        def now() -> datetime:
            # What one node stores, such as when a session expires or a task is due, another compares with its clock.
            return datetime.fromtimestamp(self.now_s(), UTC)

        clock, make_ids = replace(context.clock, now=now, shared=self.now_s), replace(context.ids, now=now)
        return replace(context, locks=self.locks, rate_limits=self.rate_limits, clock=clock, ids=make_ids)


def join_cluster(stack: ExitStack | AsyncExitStack, url: str, node: str, limits: Limits, wakes: Wakes) -> Cluster:
    """Share locks, rate limits, leases and wake-ups with all nodes that use this database. Raises StorageError.

    The state must be open already, because opening it creates the schema. `node` must be unique among the processes,
    and consist of letters, digits and hyphens. Call this on the event loop; closing `stack` leaves the cluster.
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
