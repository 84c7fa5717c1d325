"""Random schedules of a simulated cluster: `python -m tests.power.schedules FIRST_SEED COUNT` runs so many of them.

Nodes die, stand still and start again, the shared clock jumps, extractions and webhook calls fail, and clients upload,
replace and delete meanwhile. After each commit, and once everything has come to rest, nothing may be lost, doubled or
stuck. A seed gives the same schedule each time.
"""

import asyncio
import logging
import os
import random
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from svc_daemon.core.times import to_text
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import StorageError
from svc_daemon.operations.remove.source_deletions import delete_source
from svc_daemon.store.rows import tombstones
from svc_daemon.store.rows.buckets import BucketRow, create_bucket
from svc_daemon.store.rows.sessions import SessionRow, create_sessions
from svc_daemon.store.rows.sources.memberships import SyncClaim, create_memberships
from svc_daemon.store.rows.sources.sources import create_sources, find_source
from svc_daemon.store.rows.teams import create_team
from svc_daemon.wire.sources import WebhookCall
from tests.power.clusters import BEGINNING_S, Cluster, Node
from tests.power.loops import SimulatedLoop
from tests.store.rows import add_task, make_source

TEAM, BUCKETS = "team_one", ("bkt_one", "bkt_two")
#: How many things happen, and the mean pause between two of them.
EVENTS, PAUSE_S = 12, 6.0
#: How often each of them happens, in their order in `Schedule._play`.
WEIGHTS = (6, 2, 1, 3, 3, 2)
#: By how many seconds the shared clock jumps.
JUMPS_S = (-86400, -3600, -60, -5, 5, 60, 3600, 86400)
#: How long a node stands still: shorter or longer than its leases.
FREEZES_S = (1.0, 10.0, 40.0, 90.0)
#: After the last event, everything has to come to rest within this time.
SETTLE_S, LOOK_S = 600.0, 5.0
#: How many lines of a schedule a failure shows.
SHOWN = 120


class ScheduleFailed(AssertionError):
    """A schedule has broken a promise; the message has its seed and its last steps."""


@dataclass(slots=True)
class Schedule:
    """One simulation, which its seed determines."""

    seed: int
    draw: random.Random = field(init=False)
    cluster: Cluster = field(init=False)
    #: Sources whose deletion was acknowledged.
    gone: set[str] = field(default_factory=set)
    count: int = 0

    def __post_init__(self) -> None:
        self.draw = random.Random(self.seed)
        self.cluster = Cluster(SimulatedLoop(self.draw), self.draw)

    def run(self) -> list[str]:
        """Run it, and return what happened; raises ScheduleFailed."""
        loop, cluster = self.cluster.loop, self.cluster
        asyncio.set_event_loop(loop)
        # What chooses by chance in the workers has to choose the same each time.
        system_random, random.SystemRandom = random.SystemRandom, lambda: self.draw  # type: ignore[assignment, misc]
        try:
            loop.run_until_complete(self._play())
        except AssertionError as broken:
            lines = "\n".join(cluster.log[-SHOWN:])
            raise ScheduleFailed(f"seed {self.seed}: {broken}\n{lines}") from broken
        finally:
            self._end()
            random.SystemRandom = system_random  # type: ignore[misc]
            asyncio.set_event_loop(None)
            loop.close()
            cluster.connection.close()
        return cluster.log

    def _end(self) -> None:
        """End all nodes, and let their tasks end too."""
        cluster = self.cluster
        cluster.loop.frozen.clear()
        for node in self._alive():
            node.kill()
        while tasks := asyncio.all_tasks(cluster.loop):
            for task in tasks:
                task.cancel()
            cluster.loop.run_until_complete(asyncio.sleep(LOOK_S))

    async def _play(self) -> None:
        cluster = self.cluster
        _fill(cluster.connection)
        cluster.check = self._check_commit
        cluster.failures = self.draw.choice((0.0, 0.1, 0.4))
        for number in range(self.draw.randint(2, 5)):
            cluster.start_node(f"node {number}")
        happenings = (self._upload, self._delete, self._open_session, self._kill, self._freeze, self._jump)
        for _ in range(EVENTS):
            (happening,) = self.draw.choices(happenings, WEIGHTS)
            with suppress(StorageError):
                await happening()
            await asyncio.sleep(self.draw.expovariate(1 / PAUSE_S))
            self._raise_broken()
        cluster.failures = 0.0
        cluster.loop.frozen.clear()
        problem = "nothing was checked"
        for _ in range(int(SETTLE_S / LOOK_S)):
            await asyncio.sleep(LOOK_S)
            self._raise_broken()
            if (problem := self._find_rest()) == "":
                break
        assert not problem, f"stuck: {problem}"

    def _raise_broken(self) -> None:
        if self.cluster.broken is not None:
            raise self.cluster.broken

    # What happens.

    async def _upload(self) -> None:
        """Create a source as an upload does; some replace another one."""
        self.count += 1
        now, draw = self._now(), self.draw
        name = f"{self.count:03}"
        there = [row["id"] for row in self._rows("SELECT id FROM sources ORDER BY id")]
        webhook = WebhookCall(url="http://receiver/", metadata={})
        source = make_source(
            name,
            TEAM,
            webhook=webhook if draw.random() < 0.6 else None,
            replaces=draw.choice(there) if there and draw.random() < 0.25 else None,
            task_id=f"task_{name}",
            created_at=now,
            updated_at=now,
        )
        lane = draw.choice(("prompt", "wave", "single"))
        buckets = draw.sample(BUCKETS, draw.randint(1, 2))

        def work(connection: Connection) -> None:
            create_sources(connection, [source])
            claims = [SyncClaim(source_id=source.id, bucket_id=bucket, team_id=TEAM) for bucket in buckets]
            create_memberships(connection, claims, now)
            add_task(connection, name, TEAM, source_id=source.id, created_at=now, lane=lane)

        await self._any_node().context.write(work)
        for node in self._alive():
            # A notice may get lost.
            if draw.random() < 0.8:
                node.context.wakes.indexing.set_here()

    async def _delete(self) -> None:
        there = [row["id"] for row in self._rows("SELECT id FROM sources ORDER BY id")]
        if not there:
            return
        source_id, context = self.draw.choice(there), self._any_node().context

        def work(connection: Connection) -> None:
            source = find_source(connection, TEAM, source_id)
            if source is not None:
                delete_source(connection, context, source)

        await context.write(work)
        self.gone.add(source_id)
        self.cluster.note("client", f"{source_id} is deleted")
        context.wakes.sweeping.set_here()

    async def _open_session(self) -> None:
        self.count += 1
        now = self._now()
        ends = self._now(self.draw.choice((1, 20, 60)))
        session = SessionRow(
            id=f"up_{self.count:03}",
            team_id=TEAM,
            bucket_ids=(BUCKETS[0],),
            filename="a.txt",
            content_type="",
            size_bytes=9,
            title="a",
            expires_at=ends,
            ends_at=ends,
            created_at=now,
        )
        await self._any_node().context.write(lambda connection: create_sessions(connection, [session]))

    async def _kill(self) -> None:
        """Kill a node, and start another one now or later."""
        node = self._any_node()
        self.cluster.note(node, "is killed")
        node.kill()
        delay_s = self.draw.choice((0.1, 5.0, 40.0)) if len(self._alive()) > 1 else 0.1
        self.cluster.loop.call_later(delay_s, self._restart, f"{node.name}'")

    def _restart(self, name: str) -> None:
        self.cluster.note(name, "starts")
        self.cluster.start_node(name)

    async def _freeze(self) -> None:
        node, seconds = self._any_node(), self.draw.choice(FREEZES_S)
        self.cluster.note(node, f"stands still for {seconds:g} s")
        self.cluster.loop.frozen[node] = self.cluster.loop.time() + seconds

    async def _jump(self) -> None:
        seconds = self.draw.choice(JUMPS_S)
        self.cluster.note("clock", f"jumps by {seconds} s")
        self.cluster.ahead_s += seconds

    # What has to hold.

    def _check_commit(self) -> None:
        """Assert what holds after each commit: a search finds what is ready, and nothing comes back or ends early."""
        ready = self._rows(
            "SELECT s.id, s.generation, COALESCE(s.valid_from, s.generation) AS first, json_group_array(m.bucket_id) AS"
            " buckets FROM sources s JOIN memberships m ON m.source_id = s.id WHERE s.status = 'active' GROUP BY s.id"
            " HAVING MIN(m.sync_status = 'active')"
        )
        for row in ready:
            found = self.cluster.documents.get(row["id"])
            assert found is not None, f"lost: {row['id']} is ready and not in the index"
            is_current = row["first"] <= found.generation <= row["generation"]
            assert is_current, f"{row['id']} is ready, and the index has generation {found.generation} of {dict(row)}"
            missing = [
                bucket for bucket in BUCKETS if f'"{bucket}"' in row["buckets"] and bucket not in found.bucket_ids
            ]
            assert not missing, f"{row['id']} is ready, and searches of {missing} don't find it"
        back = self.gone & {row["id"] for row in self._rows("SELECT id FROM sources")}
        assert not back, f"back again: {back}"
        latest = to_text(datetime.fromtimestamp(self.cluster.latest_s, UTC))
        early = self._rows(f"SELECT id FROM uploads WHERE status = 'expired' AND expires_at > '{latest}'")
        assert not early, f"expired too early: {early[0]['id']}"
        more = self._rows("SELECT id FROM tasks WHERE attempt > max_attempts")
        assert not more, f"more attempts than allowed: {more[0]['id']}"

    def _find_rest(self) -> str:
        """Return what is not at rest yet; empty if everything is."""
        rows = self._rows
        for what, query in {
            "unfinished tasks": "SELECT id FROM tasks WHERE finished_at IS NULL",
            "sources that are neither ready nor failed": "SELECT s.id FROM sources s JOIN memberships m ON"
            " m.source_id = s.id WHERE s.status != 'failed' AND (s.status != 'active' OR m.sync_status != 'active')",
            "webhook calls that are due": "SELECT id FROM deliveries WHERE status = 'pending'",
            "sessions past their end": "SELECT id FROM uploads WHERE status = 'open' AND expires_at < :now",
        }.items():
            if found := [row["id"] for row in rows(query.replace(":now", f"'{self._now()}'"))]:
                return f"{what}: {found}"
        if stones := tombstones.list_to_clean(self.cluster.connection, after="", limit=9):
            return f"deleted sources that are not removed: {stones}"
        sources = {row["id"] for row in rows("SELECT id FROM sources")}
        if left := self.cluster.documents.keys() - sources:
            return f"documents of deleted sources: {left}"
        called = {event_id for event_id, _ in self.cluster.calls}
        return self._find_uncalled(called)

    def _find_uncalled(self, called: set[str]) -> str:
        """Return which source's end was never reported."""
        for row in self._rows("SELECT id, status FROM sources WHERE webhook IS NOT NULL"):
            event = "source.failed" if row["status"] == "failed" else "source.ready"
            made = self._rows(f"SELECT id FROM deliveries WHERE source_id = '{row['id']}' AND event = '{event}'")
            if not made or made[0]["id"] not in called:
                return f"{event} of {row['id']} was never reported"
        return ""

    def _rows(self, query: str) -> list[Any]:
        return self.cluster.connection.execute(query).fetchall()

    def _now(self, after_s: float = 0) -> str:
        return to_text(datetime.fromtimestamp(self.cluster.now_s() + after_s, UTC))

    def _alive(self) -> list[Node]:
        return [node for node in self.cluster.nodes if node.is_alive]

    def _any_node(self) -> Node:
        alive = self._alive()
        if not alive:
            raise StorageError
        return self.draw.choice(alive)


def _fill(connection: Connection) -> None:
    now = to_text(datetime.fromtimestamp(BEGINNING_S, UTC))
    create_team(connection, TEAM, "one", now)
    for number, bucket in enumerate(BUCKETS):
        row = BucketRow(
            id=bucket, team_id=TEAM, slug=f"b{number}", name="b", metadata={}, created_at=now, updated_at=now
        )
        create_bucket(connection, row)


def main() -> None:
    """Run the schedules that the command line names. One schedule is printed."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The order of sets is part of a schedule.
        again = [sys.executable, "-m", "tests.power.schedules", *sys.argv[1:]]
        os.execve(sys.executable, again, {**os.environ, "PYTHONHASHSEED": "0"})
    # Workers log the death of their node as an error.
    logging.disable()
    first, count = (int(word) for word in [*sys.argv[1:], "1"][:2])
    began_s = time.monotonic()
    for seed in range(first, first + count):
        log = Schedule(seed).run()
    if count == 1:
        print("\n".join(log))
    print(f"{count} schedules in {time.monotonic() - began_s:.0f} s")


if __name__ == "__main__":
    main()
