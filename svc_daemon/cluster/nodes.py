"""Connects a node with its cluster: the nodes share locks, rate limits and a clock, and send each other notices.

A notice is a short message that wakes workers on the other nodes, or asks the other nodes to free a lock.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from svc_daemon.cluster.shared_limits import SharedLocks, SharedRateLimits
from svc_daemon.errors import ShuttingDown, StoreUnavailable
from svc_daemon.process.contexts import Context
from svc_daemon.process.wakes import Wakes
from svc_daemon.settings.limits import Limits
from svc_daemon.wire.light.parsing import parse_json

log = logging.getLogger(__name__)

#: Longest time in seconds that a worker of a cluster sleeps. A `LookingWorker` wakes it if its notice got lost.
LOOK_S = 900.0
#: How many seconds a node waits for further wake-ups, to send all of them in one notice.
GATHER_S = 0.005
#: A statement of the locks' connection that takes longer than this shows that the server hangs, in seconds.
HANGING_S = 5.0
#: Maximum number of lock keys in a notice, which can have at most 8,000 bytes.
NOTICE_KEYS = 300


class Notices:
    """Sends and receives this node's notices. Use it only on the event loop."""

    def __init__(self, node: str, send: Callable[[str], None], wakes: Wakes) -> None:
        self._node = node
        self._send = send
        self._wakes = wakes
        self._announced: set[str] = set()
        #: Interrupts this node's requests that hold the locks with these keys.
        self.let_go: Callable[[Sequence[int]], object] = lambda _: None
        wakes.look_s = LOOK_S
        for name, wake in wakes.shared().items():
            wake.announce = partial(self.announce, name)

    def announce(self, name: str) -> None:
        """Wake the workers with this name on the other nodes.

        Calls within a few milliseconds share one notice.
        """
        if not self._announced:
            asyncio.get_running_loop().call_later(GATHER_S, self._flush)
        self._announced.add(name)

    def ask(self, keys: Sequence[int]) -> None:
        """Ask the other nodes to interrupt requests that hold these locks."""
        for start in range(0, len(keys), NOTICE_KEYS):
            self._send(json.dumps({"node": self._node, "let_go": keys[start : start + NOTICE_KEYS]}))

    def receive(self, text: str) -> None:
        """Handle a notice from another node."""
        try:
            notice = parse_json(text)
            if notice["node"] == self._node:
                return
            for name in notice.get("wake", ()):
                self._wakes.shared()[name].set_here()
            self.let_go(notice.get("let_go", ()))
        except (ValueError, KeyError, TypeError, AttributeError):
            # A later release, or another program, may have sent this notice.
            log.debug("a notice was not understood: %s", text)

    def _flush(self) -> None:
        names, self._announced = sorted(self._announced), set()
        with suppress(ShuttingDown):
            self._send(json.dumps({"node": self._node, "wake": names}))


@dataclass(frozen=True, slots=True)
class Cluster:
    """The locks, rate limits and clock that a node shares with the other nodes of its cluster."""

    locks: SharedLocks
    rate_limits: SharedRateLimits
    #: Returns the current time of the clock that all nodes share, in seconds.
    now_s: Callable[[], float]
    #: Raises StoreUnavailable if the database server can't be used. Sends no request.
    check_server: Callable[[], None]

    def share(self, context: Context) -> Context:
        """Return a copy of the context that uses the cluster's locks, limits and clock.

        The context must have the `Wakes` that `join_cluster` was called with.
        """

        def now() -> datetime:
            # Nodes compare stored times, so stored times come from the shared clock too.
            return datetime.fromtimestamp(self.now_s(), UTC)

        clock, make_ids = replace(context.clock, now=now, shared=self.now_s), replace(context.ids, now=now)
        return replace(context, locks=self.locks, rate_limits=self.rate_limits, clock=clock, ids=make_ids)


def join_cluster(stack: ExitStack | AsyncExitStack, url: str, node: str, limits: Limits, wakes: Wakes) -> Cluster:
    """Join the cluster of nodes that use this database. Raises StorageError.

    The state database must already be open. `node` is this process's unique name, of letters, digits and hyphens. Call
    this on the event loop. Closing `stack` leaves the cluster.
    """
    from svc_daemon.cluster.postgres.servers import ENGINE  # noqa: PLC0415
    from svc_daemon.cluster.postgres.sessions import LockSession, NoticeListener, ShortTransactions  # noqa: PLC0415

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

    def check_server() -> None:
        hangs = "it does not answer in time" if session.waits_s > HANGING_S else None
        if cause := listener.problem or hangs:
            raise StoreUnavailable(f"PostgreSQL can't be used: {cause}.", ENGINE)
        if session.problem:
            raise StoreUnavailable(session.problem, ENGINE)

    return Cluster(locks, SharedRateLimits(limits, transactions), session.now_s, check_server)
