"""Concurrent operations on three nodes keep every acknowledged result while nodes are killed and engines are down."""

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import httpx
import pytest

from tests.acceptance.calls import make_bucket
from tests.acceptance.installations import Installation, WaitTimeout, wait_until
from tests.acceptance.promises import assert_promises_kept
from tests.acceptance.workloads import BUCKETS, Client, Site, have_done, hosting
from tests.cluster.nodes import EngineInspector, MakeNode, RunningEngines

CLIENTS = 8
OPERATIONS = 160
LARGE_OPERATIONS = 3000
#: One node is killed in each interval of this many seconds.
KILL_EVERY_S = 2.0
#: How long the small Milvus of the tests may take to process the backlog.
SETTLE_S = 900.0
#: How long Milvus and the object store are stopped.
AWAY_S = 3.0
LARGE_AWAY_S = 10.0


@dataclass(eq=False, repr=False)
class TravellingClient(Client):
    """Sends each request to a random node."""

    #: An engine may be down for longer than a daemon.
    patience_s = 300.0
    # The small Milvus of the tests reads every chunk for each query, one query at a time.
    chapters = 2
    pause_s = 0.1
    nodes: Sequence[Installation] = ()
    _open: dict[str, httpx.Client] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        # A separate generator, so that retries don't change the client's operations.
        self._travels = random.Random(self.number)

    def _client(self) -> httpx.Client:
        node = self._travels.choice(self.nodes)
        url = node.base_url
        if url not in self._open:
            # Only the first node has the admin key in its folder.
            self._open[url] = node.client(Authorization=f"Bearer {self.installation.key}")
        self._http = self._open[url]
        return self._http

    def close(self) -> None:
        """Close all connections; later calls open new ones."""
        for client in self._open.values():
            client.close()
        self._open.clear()
        self._http = None


@dataclass
class Outages:
    """Stops engines as the clients make progress, while the test kills nodes."""

    engines: RunningEngines
    away_s: float
    #: After how many operations each outage begins, in order.
    moments: list[tuple[int, Callable[[], None]]]
    #: When to restart the stopped engine, and how.
    back: tuple[float, Callable[[], None]] | None = None

    def look(self, clients: Sequence[Client]) -> None:
        if self.back is not None and time.monotonic() >= self.back[0]:
            self.back[1]()
            self.back = None
        elif self.back is None and self.moments and have_done(clients, self.moments[0][0]):
            self.moments.pop(0)[1]()

    def restart_state(self) -> None:
        self.engines.postgres.stop()
        self.engines.postgres.start(self.engines.postgres.is_ready)

    def crash_state(self) -> None:
        self.engines.postgres.kill()
        # The killed server's child processes end by themselves, and hold its files until then.
        wait_until(self._has_state_started, "PostgreSQL is running again")

    def _has_state_started(self) -> bool:
        with suppress(WaitTimeout):
            self.engines.postgres.start(self.engines.postgres.is_ready)
            return True
        return False

    def take_store(self) -> None:
        self.engines.store.proxy.stop()
        self.back = time.monotonic() + self.away_s, self.engines.store.start

    def take_index(self) -> None:
        self.engines.milvus.engine.stop()
        self.back = time.monotonic() + self.away_s, self.engines.milvus.start_again

    def end(self) -> None:
        if self.back is not None:
            self.back[1]()


@pytest.mark.rule("cluster.kills")
def test_acknowledged_operations_survive_kills_of_nodes_and_outages_of_engines(
    engines: RunningEngines, make_node: MakeNode, large: bool
) -> None:
    limits = {
        "SVC_LIMIT_WEBHOOK_RETRY_SECONDS": "1",
        # A webhook call is made at most twice, and its receiver is in this busy process.
        "SVC_LIMIT_WEBHOOK_SECONDS": "120",
        # A kill counts as an attempt of each running task: with fewer attempts, a source could legitimately fail.
        "SVC_LIMIT_TASK_ATTEMPTS": "1000",
        "SVC_LIMIT_LEASE_SECONDS": "10",
        "SVC_LIMIT_EXTRACT_CHILDREN": "1",
    }
    nodes = [make_node(name, **limits, SVC_FETCH_ALLOW="127.0.0.0/8") for name in ("one", "two", "three")]
    for node in nodes:
        node.start()
    operations = LARGE_OPERATIONS if large else OPERATIONS
    with hosting() as site:
        clients = _work_under_outages(engines, nodes, site, operations)
        done = sum((client.done for client in clients), Counter())
        assert (done.total(), len(done)) == (operations, 14), done
        with nodes[1].client(Authorization=f"Bearer {nodes[0].key}") as client:
            client.timeout = httpx.Timeout(120)
            assert_promises_kept(client, clients, site, SETTLE_S)
    for node in nodes:
        assert node.stop() == 0
    EngineInspector(nodes[0].environ).assert_consistent()


def _work_under_outages(
    engines: RunningEngines, nodes: Sequence[Installation], site: Site, operations: int
) -> list[TravellingClient]:
    with nodes[0].client() as client:
        for bucket in BUCKETS:
            make_bucket(client, bucket)
    clients = [
        TravellingClient(nodes[0], site, number, operations // CLIENTS, nodes=nodes) for number in range(CLIENTS)
    ]
    outages = Outages(engines, LARGE_AWAY_S if operations == LARGE_OPERATIONS else AWAY_S, [])
    steps = (outages.restart_state, outages.take_index, outages.take_store, outages.crash_state)
    outages.moments = [(operations * place // 6, step) for place, step in enumerate(steps, 1)]
    killed = random.Random(17)
    for each in clients:
        each.start()
    try:
        while any(each.is_alive() for each in clients):
            began_s = time.monotonic()
            node = killed.choice(nodes)
            node.kill()
            node.start()
            outages.look(clients)
            next((each for each in clients if each.is_alive()), clients[0]).join(
                max(began_s + KILL_EVERY_S - time.monotonic(), 0)
            )
    finally:
        outages.end()
        for each in clients:
            each.join()
    assert ([each.failure for each in clients if each.failure], outages.moments) == ([], [])
    return clients
