"""Tests the steps of indexing a source: claims, leases, stale claims, and changes made while it is indexed."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from svc_daemon.core import lanes
from svc_daemon.core.text.chunking import Chunk, Extraction
from svc_daemon.operations.index import documents, indexing, syncing
from svc_daemon.operations.index.documents import IndexEntry
from svc_daemon.operations.index.indexing import Failure, IndexedDocument, IndexingClaim
from svc_daemon.operations.remove import sweeping
from svc_daemon.operations.shared import leases
from svc_daemon.process.indexing_scheduler import IndexingScheduler
from svc_daemon.settings.limits import Limits
from svc_daemon.wire.light.error_codes import SourceErrorCode
from tests.api.daemons import Daemon
from tests.api.fixtures import MakeDaemon
from tests.provider.samples import make_document
from tests.workers.rebuilds import begin, contents, join, leave

TEXT = "The umber quay."
CHUNK = Chunk(ordinal=0, text=TEXT, char_start=0, char_end=len(TEXT))
EXTRACTION = Extraction(content_type="text/plain", text=TEXT, chunks=(CHUNK,))
CRASHED = Failure(SourceErrorCode.EXTRACTION_CRASHED, "The parser died.", retryable=True)


def claim(daemon: Daemon) -> IndexingClaim:
    """Claim the oldest document of the next lane."""
    claims = daemon.loop.run(indexing.claim_indexing(daemon.context, IndexingScheduler(2), 1))
    assert claims is not None
    return claims[0]


def put(daemon: Daemon, held: IndexingClaim, extraction: Extraction = EXTRACTION) -> IndexEntry:
    return documents.put(daemon.context, [(held.source, extraction)])[0]


def complete(daemon: Daemon, held: IndexingClaim, entry: IndexEntry | None = None) -> bool:
    """Complete the claim and return whether it was valid. By default, the index has what the claimed row says."""
    known = entry or IndexEntry(held.source.title, held.source.searched_places)
    done = IndexedDocument(held, EXTRACTION, known)
    return not daemon.loop.run(indexing.complete_indexing(daemon.context, [done]))


def release(daemon: Daemon, now_s: float | None = None) -> int:
    """Release the claims whose leases have expired by now, or by the given time."""
    return daemon.loop.run(indexing.release_expired(daemon.context, now_s or daemon.context.clock.lease_s()))


def shown(daemon: Daemon, source_id: str) -> dict[str, Any]:
    """Return the source and its task as the API shows them, without request ids."""
    both = {**daemon.source(source_id), "task_details": daemon.task(source_id)}
    for part in (both, both["task_details"]):
        part.pop("request_id")
    return both


@pytest.mark.rule("indexing.claimed")
def test_of_many_concurrent_claims_one_gets_the_task_and_counts_one_attempt(daemon: Daemon) -> None:
    source_id = daemon.add_source()

    async def race() -> list[IndexingClaim]:
        claims = [indexing.claim_indexing(daemon.context, IndexingScheduler(2)) for _ in range(20)]
        return [claim for claimed in await asyncio.gather(*claims) for claim in claimed or []]

    (won,) = daemon.loop.run(race())
    assert (won.source.id, shown(daemon, source_id)["task_details"]["attempt"]) == (source_id, 1)


def test_a_heartbeat_extends_a_lease_and_an_expired_lease_requeues_the_task(daemon: Daemon) -> None:
    source_id = daemon.add_source()
    held = claim(daemon)
    daemon.advance(29)
    assert release(daemon) == 0
    daemon.loop.run(leases.extend_leases(daemon.context, [held.task]))
    for seconds, released in ((29, 0), (2, 1)):
        daemon.advance(seconds)
        assert release(daemon) == released, seconds
    after = shown(daemon, source_id)
    assert (after["status"], after["task_details"]["status"]) == ("queued", "queued")


def test_a_lease_from_before_the_clock_was_set_back_expires(daemon: Daemon) -> None:
    daemon.add_source()
    claim(daemon)
    now_s = daemon.context.clock.lease_s()
    # As seen by a clock that is an hour behind, no node can hold the lease that long.
    assert (release(daemon, now_s), release(daemon, now_s - 3600)) == (0, 1)


def test_the_worker_extends_its_lease_while_it_works(make_daemon: MakeDaemon) -> None:
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


@pytest.mark.rule("indexing.alone")
def test_the_first_lost_lease_makes_a_task_suspect_and_ten_fail_the_source_without_an_attempt(daemon: Daemon) -> None:
    source_id = daemon.add_source()
    for deaths in range(10):
        assert (daemon.task(source_id)["attempt"], claim(daemon).task.lane) == (
            0,
            lanes.SUSPECT if deaths else lanes.PROMPT,
        )
        daemon.advance(100)
        assert release(daemon) == 1
        daemon.advance(100)
    after = shown(daemon, source_id)
    assert (after["status"], after["error"]["code"]) == ("failed", "max_attempts_exhausted")
    assert (after["task_details"]["status"], after["task_details"]["attempt"]) == ("failed", 1)


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
    run(indexing.fail_indexing(daemon.context, [(stale, CRASHED)], jitter=0))
    run(indexing.park_indexing(daemon.context, [stale]))
    indexing.note_progress(daemon.context, stale, 9)
    run(leases.extend_leases(daemon.context, [stale.task]))
    assert shown(daemon, source_id) == before


def test_each_change_that_a_listing_shows_increases_the_revision(daemon: Daemon) -> None:
    def listing() -> tuple[int, Any]:
        listed = daemon.show("/v1/buckets/inbox/sources?status=all")
        return listed["revision"], listed["sources"]

    def fail() -> None:
        daemon.loop.run(indexing.fail_indexing(daemon.context, [(held[-1], CRASHED)], jitter=0))
        daemon.advance(60)

    held: list[IndexingClaim] = []
    for step in (
        daemon.add_source,
        lambda: held.append(claim(daemon)),
        lambda: daemon.loop.run(indexing.park_indexing(daemon.context, [held[-1]])),
        lambda: held.append(claim(daemon)),
        fail,
        lambda: held.append(claim(daemon)),
        lambda: complete(daemon, held[-1]),
    ):
        before = listing()
        step()
        after = listing()
        assert (after[0] > before[0]) == (after[1] != before[1]) is True


def _archive(daemon: Daemon, _: str) -> None:
    daemon.patch("/v1/buckets/second", status="archived")


def _rechunk(daemon: Daemon, _: str) -> None:
    daemon.patch("/v1/buckets/inbox", chunking={"target": 150, "min": 100, "max": 200})


def _retitle(daemon: Daemon, source_id: str) -> None:
    daemon.patch(f"/v1/sources/{source_id}", title="Vermilion quays")


def _leave_and_clean(daemon: Daemon, source_id: str) -> None:
    leave(daemon, source_id)
    daemon.loop.run(syncing.clean_detachments(daemon.context))


#: What may happen to a source while it is indexed, and whether it is ready as soon as its indexing is completed.
MEANWHILE: dict[str, tuple[Callable[[Daemon, str], object], bool]] = {
    "nothing": (lambda _daemon, _source_id: None, True),
    "archived": (_archive, True),
    "rechunked": (_rechunk, True),
    "joined": (lambda daemon, source_id: join(daemon, source_id, "third"), False),
    "left": (leave, False),
    "left and cleaned": (_leave_and_clean, False),
    "retitled": (_retitle, False),
    "bucket deleted": (lambda daemon, _: daemon.delete("/v1/buckets/second", force="true"), False),
    "rebuilt": (lambda daemon, _: begin(daemon), False),
}


@pytest.mark.rule("indexing.active")
@pytest.mark.parametrize("is_put_first", [False, True], ids=["put after", "put before"])
@pytest.mark.parametrize("what", MEANWHILE)
def test_a_source_is_ready_on_completion_only_if_the_index_has_its_current_buckets_and_title(
    daemon: Daemon, what: str, is_put_first: bool
) -> None:
    change, is_ready = MEANWHILE[what]
    for slug in ("second", "third"):
        daemon.make_bucket(slug)
    source_id = daemon.add_source()
    join(daemon, source_id)
    held = claim(daemon)
    entry = put(daemon, held) if is_put_first else None
    change(daemon, source_id)
    assert complete(daemon, held, entry or put(daemon, held))
    source = daemon.source(source_id)
    assert (source["status"], source["ready"]) == ("active", is_ready)
    marked = daemon.read(lambda c: c.execute("SELECT rechunk FROM sources").fetchone()[0])
    assert bool(marked) == (what == "rechunked")
    daemon.start()
    daemon.wait_ready(source_id)
    daemon.wait(lambda: daemon.count("detachments") == 0, "the index is corrected")
    assert list(contents(daemon)[source_id][1]) == sorted(daemon.source(source_id)["bucket_ids"])
    assert daemon.found("vermilion") == ([source_id] if what == "retitled" else [])


def test_an_attempt_replaces_the_document_of_an_earlier_attempt(daemon: Daemon) -> None:
    daemon.make_bucket("second")
    source_id = daemon.add_source()
    cut = tuple(Chunk(ordinal=n, text=TEXT[n:], char_start=n, char_end=len(TEXT)) for n in range(3))
    put(daemon, claim(daemon), replace(EXTRACTION, chunks=cut))
    join(daemon, source_id)
    daemon.advance(31)
    assert release(daemon) == 1
    held = claim(daemon)
    assert complete(daemon, held, put(daemon, held))
    daemon.start("syncing")
    daemon.wait_ready(source_id)
    indexed = daemon.provider.get_document(daemon.team_id, source_id)
    assert indexed is not None and indexed.chunks == daemon.source(source_id)["extraction"]["chunks"] == 1
    assert sorted(indexed.bucket_ids) == sorted(daemon.source(source_id)["bucket_ids"])


@pytest.mark.rule("indexing.restored")
def test_documents_of_a_later_state_are_replaced_after_a_restore(daemon: Daemon) -> None:
    """The state was restored from an older copy, so the index has other texts, in the same or later generations."""
    stored = [daemon.add_source() for _ in range(3)]
    for source_id, generation in zip(stored, (1, 2, 7), strict=True):
        put_later(daemon, source_id, generation)
    daemon.start()
    daemon.wait_ready(*stored)
    assert [daemon.task(source_id)["attempt"] for source_id in stored] == [1, 1, 1]
    claims = daemon.read(lambda c: c.execute("SELECT token FROM tasks ORDER BY id").fetchall())
    assert [claim["token"] for claim in claims] == [2, 2, 2], "the second attempt replaced it"
    assert_own_texts(daemon, stored)
    daemon.stop()
    for source_id, further in zip(stored, (1, 2, 7), strict=True):
        put_later(daemon, source_id, contents(daemon)[source_id][0] + further)
    assert daemon.loop.run(sweeping.reconcile_index(daemon.context)) == 3
    assert {daemon.ask("GET", f"/v1/sources/{source_id}/text").status_code for source_id in stored} == {409}
    daemon.start()
    daemon.wait_ready(*stored)
    assert_own_texts(daemon, stored)


def put_later(daemon: Daemon, source_id: str, generation: int) -> None:
    """Put a text of other bytes into the index, with this generation."""
    form: dict[str, Any] = {"title": "notes", "buckets": daemon.source(source_id)["bucket_ids"]}
    later = make_document(source_id, "A vermilion state.", "Its end.", generation=generation, **form)
    assert daemon.provider.put_documents(daemon.team_id, [later]) == set()


def assert_own_texts(daemon: Daemon, source_ids: list[str]) -> None:
    assert (daemon.found("vermilion"), set(daemon.found("quay"))) == ([], set(source_ids))
    for source_id in source_ids:
        assert contents(daemon)[source_id][2] == daemon.source(source_id)["extraction"]["chunks"]


@pytest.mark.rule("indexing.rejoined")
def test_a_bucket_that_a_source_left_and_rejoined_during_indexing_is_in_the_index(daemon: Daemon) -> None:
    source_id = daemon.add_source()
    held = claim(daemon)
    entry = put(daemon, held)
    leave(daemon, source_id, "inbox")
    daemon.loop.run(syncing.clean_detachments(daemon.context))
    assert contents(daemon)[source_id][1] == ()
    join(daemon, source_id, "inbox")
    assert complete(daemon, held, entry)
    daemon.start("syncing")
    daemon.wait_ready(source_id)
    assert list(contents(daemon)[source_id][1]) == daemon.source(source_id)["bucket_ids"]


def test_a_source_is_not_ready_while_older_buckets_are_being_written_to_the_index(daemon: Daemon) -> None:
    """The sync worker has read that the source left a bucket, but it rejoins before the index is changed."""
    daemon.make_bucket("second")
    source_id = daemon.add_source()
    join(daemon, source_id)
    put(daemon, claim(daemon))
    daemon.advance(31)
    assert release(daemon) == 1
    leave(daemon, source_id)
    with daemon.provider.held("set_buckets") as hold:
        cleaning = daemon.loop.begin(syncing.clean_detachments(daemon.context))
        hold.wait_entered()
        join(daemon, source_id)
        daemon.advance(31)
        held = claim(daemon)
        assert complete(daemon, held, put(daemon, held)) and not daemon.source(source_id)["ready"]
    assert cleaning.result() == 1
    daemon.start("syncing")
    daemon.wait_ready(source_id)
    assert sorted(contents(daemon)[source_id][1]) == sorted(daemon.source(source_id)["bucket_ids"])


def test_an_old_title_that_is_written_late_to_the_index_is_corrected(daemon: Daemon) -> None:
    source_id = daemon.add_source()
    held = claim(daemon)
    entry = put(daemon, held)
    _retitle(daemon, source_id)
    daemon.loop.run(syncing.clean_detachments(daemon.context))
    # As a put does that has read the title before the change and writes it afterwards.
    daemon.provider.set_title(daemon.team_id, source_id, entry.title)
    assert complete(daemon, held, entry) and not daemon.source(source_id)["ready"]
    daemon.start("syncing")
    daemon.wait_ready(source_id)
    daemon.wait(lambda: daemon.found("vermilion") == [source_id], "the index has the new title")


def test_a_source_that_left_its_only_bucket_during_indexing_ends_in_no_bucket_in_the_index(daemon: Daemon) -> None:
    source_id = daemon.add_source()
    held = claim(daemon)
    leave(daemon, source_id, "inbox")
    daemon.loop.run(syncing.clean_detachments(daemon.context))
    assert complete(daemon, held, put(daemon, held)) and contents(daemon)[source_id][1] != ()
    daemon.start("syncing")
    daemon.wait(lambda: contents(daemon)[source_id][1] == (), "the index no longer has the bucket")
