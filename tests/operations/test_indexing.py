"""The steps of an indexing: leases, fencing tokens, and what a stale claim may not do."""

import asyncio
from math import inf
from typing import Any

from svc_daemon.core.text.chunking import Chunk, Extraction
from svc_daemon.operations import indexing, tasks
from svc_daemon.operations.indexing import Failure, IndexingClaim
from svc_daemon.settings import Limits
from svc_daemon.wire.codes import SourceErrorCode
from tests.api.daemons import Daemon
from tests.api.fixtures import MakeDaemon

TEXT = "The umber quay."
CHUNK = Chunk(ordinal=0, text=TEXT, char_start=0, char_end=len(TEXT))
EXTRACTION = Extraction(content_type="text/plain", text=TEXT, chunks=(CHUNK,))
CRASHED = Failure(SourceErrorCode.EXTRACTION_CRASHED, "The parser died.", retryable=True)


def claim(daemon: Daemon) -> IndexingClaim:
    claimed = daemon.loop.run(indexing.claim_indexing(daemon.context, [daemon.team_id]))
    assert claimed is not None
    return claimed


def complete(daemon: Daemon, held: IndexingClaim) -> bool:
    return daemon.loop.run(indexing.complete_indexing(daemon.context, held, EXTRACTION))


def release(daemon: Daemon, now_s: float | None = None) -> int:
    """Put back what is expired now, or at another time."""
    return daemon.loop.run(indexing.release_expired(daemon.context, now_s or daemon.context.clock.monotonic()))


def shown(daemon: Daemon, source_id: str) -> dict[str, Any]:
    """Source and task as the API shows them, without request ids."""
    both = {**daemon.source(source_id), "whole_task": daemon.task(source_id)}
    for part in (both, both["whole_task"]):
        part.pop("request_id")
    return both


def test_a_claim_counts_an_attempt_and_nobody_else_gets_it(daemon: Daemon) -> None:
    source_id = daemon.add_source()

    async def race() -> list[IndexingClaim | None]:
        claims = [indexing.claim_indexing(daemon.context, [daemon.team_id]) for _ in range(20)]
        return list(await asyncio.gather(*claims))

    (won,) = [claim for claim in daemon.loop.run(race()) if claim is not None]
    assert (won.source.id, shown(daemon, source_id)["whole_task"]["attempt"]) == (source_id, 1)


def test_a_lease_holds_until_its_time_or_the_next_heartbeats_and_then_the_task_is_queued_again(daemon: Daemon) -> None:
    source_id = daemon.add_source()
    held = claim(daemon)
    daemon.advance(29)
    assert release(daemon) == 0
    daemon.loop.run(tasks.extend_claim(daemon.context, held.task))
    for seconds, released in ((29, 0), (2, 1)):
        daemon.advance(seconds)
        assert release(daemon) == released, seconds
    after = shown(daemon, source_id)
    assert (after["status"], after["whole_task"]["status"]) == ("queued", "queued")
    assert after["whole_task"]["next_attempt_at"] is not None


def test_the_worker_beats_while_it_works(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon(limits=Limits(creates_per_second=0, lease_seconds=1))
    daemon.make_bucket()
    daemon.start("indexing")

    def lease_until_s() -> float:
        return float(daemon.read(lambda c: c.execute("SELECT lease_until_s FROM tasks").fetchone()[0]))

    with daemon.provider.held("put_documents") as hold:
        daemon.add_source()
        hold.wait_entered()
        first = lease_until_s()
        daemon.wait(lambda: lease_until_s() > first, "a heartbeat")


def test_three_lost_leases_end_as_failed(daemon: Daemon) -> None:
    source_id = daemon.add_source()
    for _ in range(3):
        claim(daemon)
        daemon.advance(100)
        assert release(daemon) == 1
        daemon.advance(100)
    after = shown(daemon, source_id)
    assert (after["status"], after["error"]["code"]) == ("failed", "max_attempts_exhausted")
    assert (after["whole_task"]["status"], after["whole_task"]["attempt"]) == ("failed", 3)


def test_the_next_start_releases_every_lease_at_once(daemon: Daemon, make_daemon: MakeDaemon) -> None:
    source_id = daemon.add_source()
    claim(daemon)
    daemon.close()
    started = make_daemon()
    assert release(started, inf) == 1
    started.start()
    started.wait_ready(source_id)
    assert started.task(source_id)["attempt"] == 2


def test_a_stale_claim_changes_nothing(daemon: Daemon) -> None:
    source_id = daemon.add_source()
    stale = claim(daemon)
    daemon.advance(31)
    release(daemon)
    daemon.advance(60)
    claim(daemon)
    before = shown(daemon, source_id)
    run = daemon.loop.run
    assert complete(daemon, stale) is False
    run(indexing.fail_indexing(daemon.context, stale, CRASHED, jitter=0))
    run(indexing.park_indexing(daemon.context, stale))
    run(indexing.note_progress(daemon.context, stale, "index", 9))
    run(tasks.extend_claim(daemon.context, stale.task))
    assert shown(daemon, source_id) == before


def test_what_a_listing_shows_moves_the_revision(daemon: Daemon) -> None:
    def listing() -> tuple[int, Any]:
        listed = daemon.show("/v1/buckets/inbox/sources?status=all")
        return listed["revision"], listed["sources"]

    def fail() -> None:
        daemon.loop.run(indexing.fail_indexing(daemon.context, held[-1], CRASHED, jitter=0))
        daemon.advance(60)

    held: list[IndexingClaim] = []
    for step in (
        daemon.add_source,
        lambda: held.append(claim(daemon)),
        lambda: daemon.loop.run(indexing.park_indexing(daemon.context, held[-1])),
        lambda: held.append(claim(daemon)),
        fail,
        lambda: held.append(claim(daemon)),
        lambda: complete(daemon, held[-1]),
    ):
        before = listing()
        step()
        after = listing()
        assert (after[0] > before[0]) == (after[1] != before[1]) is True
