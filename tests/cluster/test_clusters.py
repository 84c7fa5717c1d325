"""Nodes share locks, limits, a clock, wakes and the secret through PostgreSQL; commands of the page on clusters."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import psycopg
import pytest

from svc_daemon.cluster.migrations import migrate_shared
from svc_daemon.cluster.nodes import Cluster, join_cluster
from svc_daemon.cluster.postgres.database import PostgresDatabase
from svc_daemon.core.ids import Ids
from svc_daemon.errors import ServiceError, StorageError
from svc_daemon.operations.installations import prepare_installation, prepare_shared_secret
from svc_daemon.paths import DataFiles
from svc_daemon.process.wakes import Wake, Wakes
from svc_daemon.settings.limits import Limits
from tests.acceptance.installations import PATIENCE_S, WaitTimeout
from tests.cluster.postgres import PostgresEngine
from tests.operations.locks_suite import LocksContract, Pair, free, started

pytestmark = pytest.mark.anyio
LIMITS = Limits(creates_per_second=5, bytes_per_minute=1000)
#: A node that takes a lock, prints how many it has got, and sleeps until it is killed.
HOLDING = """\
import sys, time
from svc_daemon.cluster.postgres.sessions import LockSession
from svc_daemon.cluster.shared_limits import key_of
print(len(LockSession(sys.argv[1], "doomed").take([key_of("upl_a")]).result().keys), flush=True)
time.sleep(600)
"""
Join = Callable[..., Cluster]


@pytest.fixture
def url(engine: PostgresEngine) -> str:
    return engine.make_database()


@pytest.fixture
async def join(url: str) -> AsyncIterator[Join]:
    """A function that joins another node; all nodes leave after the test."""
    numbers = count(1)
    with ExitStack() as stack:
        yield lambda wakes=None: join_cluster(stack, url, f"node-{next(numbers)}", LIMITS, wakes or Wakes())


async def until(is_true: Callable[[], Awaitable[bool]], what: str) -> None:
    for _ in range(round(PATIENCE_S / 0.05)):
        if await is_true():
            return
        await asyncio.sleep(0.05)
    raise WaitTimeout(what)


async def until_set(wake: Wake, what: str) -> None:
    try:
        await asyncio.wait_for(wake.wait(), PATIENCE_S)
    except TimeoutError:
        raise WaitTimeout(what) from None


def end_connections(url: str, like: str) -> int:
    """Terminate the connections whose application name matches, and return their number."""
    with psycopg.connect(url, autocommit=True) as admin:
        rows = admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name LIKE %s AND pid <> pg_backend_pid() AND datname = current_database()",
            [like],
        ).fetchall()
    return len(rows)


class TestLocksOfOneNode(LocksContract):
    @pytest.fixture
    async def pair(self, join: Join) -> Pair:
        locks = join().locks
        return locks, locks


class TestLocksOfTwoNodes(LocksContract):
    @pytest.fixture
    async def pair(self, join: Join) -> Pair:
        return join().locks, join().locks


async def test_locks_of_a_killed_node_are_released(url: str, join: Join) -> None:
    locks = join().locks
    doomed = await asyncio.create_subprocess_exec(sys.executable, "-c", HOLDING, url, stdout=asyncio.subprocess.PIPE)
    try:
        assert doomed.stdout is not None
        assert await doomed.stdout.readline() == b"1\n"
        assert await free(locks, "upl_a") == []
    finally:
        doomed.kill()
        await doomed.communicate()

    async def is_free() -> bool:
        return await free(locks, "upl_a") == ["upl_a"]

    await until(is_free, "the server frees the lock")


async def test_node_that_loses_its_connection_loses_its_locks_and_reconnects(url: str, join: Join) -> None:
    one, other = join().locks, join().locks
    uploading = await started(one)
    async with one.hold_free("upl_b") as held:
        assert (held, end_connections(url, "svc-daemon node-1")) == (["upl_b"], 1)
        assert await uploading.code() == "request_in_progress"
        async with other.take_over("upl_a", "upl_b"):
            pass
    # The new connection can take the locks of the lost one.
    async with one.hold_free("upl_a", "upl_b") as held:
        assert (len(held), await free(other, "upl_a", "upl_b")) == (2, [])


async def test_locks_and_rate_limits_fail_without_the_server_and_recover(engine: PostgresEngine, join: Join) -> None:
    one, other = join(), join()
    await one.rate_limits.charge_bytes("team_a", 900)
    held = one.locks.hold_free("upl_a")
    await held.__aenter__()
    engine.kill()
    try:
        with pytest.raises(StorageError):
            await free(other.locks, "upl_b")
        with pytest.raises(StorageError):
            await one.rate_limits.charge_bytes("team_a", 1)
        await held.__aexit__(None, None, None)
        assert abs(one.now_s() - other.now_s()) < 1
    finally:
        await asyncio.to_thread(engine.start, engine.is_ready)

    async def is_back() -> bool:
        try:
            await one.rate_limits.charge_create("team_b", 1)
            await other.rate_limits.charge_bytes("team_a", 1)
            return await free(one.locks, "upl_a") == await free(other.locks, "upl_a") == ["upl_a"]
        except StorageError:
            return False

    await until(is_back, "locks and rates are back")


async def test_rate_limits_of_a_team_apply_across_nodes(url: str, join: Join) -> None:
    nodes = [join() for _ in range(3)]

    async def charge(node: Cluster, team_id: str, size_bytes: int) -> str:
        try:
            await node.rate_limits.charge_create(team_id, size_bytes)
        except ServiceError as error:
            assert 0 < error.details["retry_after_seconds"] <= 60
            return str(error.code)
        return "accepted"

    began_s = nodes[0].now_s()
    outcomes = await asyncio.gather(*(charge(nodes[each % 3], "team_a", 0) for each in range(60)))
    most = 5 + 5 * (nodes[0].now_s() - began_s)
    assert 5 <= outcomes.count("accepted") <= most
    assert outcomes.count("accepted") + outcomes.count("upload_rate_limited") == 60
    charges = [nodes[each % 3].rate_limits.charge_bytes("team_b", 100) for each in range(30)]
    refused = [each for each in await asyncio.gather(*charges, return_exceptions=True) if each is not None]
    assert len(refused) == 20
    assert {str(each.code) for each in refused if isinstance(each, ServiceError)} == {"quota_exceeded"}
    assert [await node.rate_limits.used_bytes("team_b") for node in nodes] == [1000] * 3
    assert await nodes[1].rate_limits.used_bytes("team_c") == 0
    assert await charge(nodes[2], "team_d", 0) == "accepted"


async def test_wake_reaches_the_workers_of_all_nodes_even_after_a_lost_connection(url: str, join: Join) -> None:
    ours, theirs = Wakes(), Wakes()
    for wakes in (ours, theirs):
        join(wakes)
    for wakes in (ours, theirs):
        await until_set(wakes.syncing, "the worker is woken when the node begins to receive")
    await asyncio.sleep(0)
    for wake in (*ours.shared().values(), *theirs.shared().values(), theirs.counting):
        wake.clear()
    ours.counting.set()
    ours.indexing.set()
    ours.sweeping.set()
    await until_set(theirs.indexing, "the other node's worker is woken")
    await until_set(theirs.sweeping, "the other node's worker is woken")
    assert (theirs.syncing.is_set(), theirs.counting.is_set(), theirs.look_s) == (False, False, 900.0)
    with psycopg.connect(url, autocommit=True) as stranger:
        for text in ("", "[]", "{}", '{"node": 1, "wake": ["x"]}', '{"node": 1, "let_go": ["x", 1]}'):
            stranger.execute("SELECT pg_notify('svc', %s)", [text])
    ours.rechunking.set()
    await until_set(theirs.rechunking, "a valid notification still wakes the worker")
    end_connections(url, "svc-daemon")
    await until_set(theirs.syncing, "the worker is woken when the node receives again")


async def test_nodes_use_the_clock_of_the_database(url: str, join: Join) -> None:
    nodes = [join(), join()]
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
    assert row is not None
    assert all(abs(node.now_s() - row[0]) < 1 for node in nodes)


def test_concurrent_first_starts_create_one_installation_id_one_secret_and_one_key(url: str, tmp_path: Path) -> None:
    nodes = [PostgresDatabase(url, prepare=migrate_shared) for _ in range(4)]
    make_ids = Ids(now=lambda: datetime.now(UTC), random=os.urandom)

    def start(number: int) -> tuple[str, bytes, bool]:
        files = DataFiles(tmp_path / str(number))
        files.root.mkdir()
        installation_id = prepare_installation(files, nodes[number], make_ids)
        return installation_id, prepare_shared_secret(nodes[number], os.urandom), files.admin_key.exists()

    try:
        with ThreadPoolExecutor(4) as threads:
            started = list(threads.map(start, range(4)))
        assert len({(installation_id, secret) for installation_id, secret, _ in started}) == 1
        assert sum(has_key for _, _, has_key in started) == 1
        counts = nodes[0].read(
            lambda c: tuple(c.execute("SELECT (SELECT COUNT(*) FROM teams), (SELECT COUNT(*) FROM keys)").fetchone())
        )
        assert counts == (1, 1)
        nodes[0].write(lambda c: c.execute("UPDATE facts SET value = 'cut' WHERE name = 'secret'").rowcount)
        with pytest.raises(StorageError, match="secret in the database is damaged"):
            prepare_shared_secret(nodes[1], os.urandom)
    finally:
        for node in nodes:
            node.close()
