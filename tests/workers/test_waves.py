"""Waves: small documents share a child, and what goes wrong costs the guilty document alone."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from svc_daemon.core.lanes import FEW
from svc_daemon.extract.documents import WAVE_DOCUMENTS
from svc_daemon.extract.extractors import Extractor
from svc_daemon.operations.index.indexing import WAVE_BYTES, claim_indexing, release_expired
from svc_daemon.process.indexing_scheduler import IndexingScheduler
from svc_daemon.provider.errors import IndexDamaged, ProviderFailed
from svc_daemon.workers.indexing import IndexingWorker
from svc_daemon.workers.runners import LONGEST_S
from tests import samples
from tests.acceptance.installations import PATIENCE_S
from tests.api.answers import body_of
from tests.api.daemons import UNLIMITED, Daemon
from tests.api.fixtures import MakeDaemon
from tests.api.loops import Loop
from tests.api.sessions import finalize_batch, open_batch, put
from tests.processes import children_of
from tests.workers.rebuilds import delete
from tests.workers.test_shortages import refused, short_pauses

__all__ = ["short_pauses"]

#: Takes a child half a second of processor time, where a wave of small documents takes a hundredth.
SLOW = b"# a\n\nb\n" * 30_000


def add_wave(daemon: Daemon, count: int = 8, **options: str) -> list[str]:
    """Sources that wait; no worker runs."""
    return [daemon.add_source(f"The umber quay {number}.\n".encode(), **options) for number in range(count)]


def outcomes(daemon: Daemon, *source_ids: str) -> set[tuple[str, int, str | None]]:
    """The status of the task, its counted attempts and its error, of each source."""
    tasks = [daemon.task(source_id) for source_id in source_ids]
    return {(task["status"], task["attempt"], (task["error"] or {}).get("code")) for task in tasks}


def lanes(daemon: Daemon) -> list[str]:
    rows = daemon.read(lambda c: c.execute("SELECT lane FROM tasks ORDER BY id").fetchall())
    return [row["lane"] for row in rows]


READ = ("succeeded", 1, None)


@contextmanager
def killing(scratch: Path) -> Iterator[list[int]]:
    """Kill each child of the fork server that takes long, as a bad document would; which ones is returned."""
    stop, killed = threading.Event(), list[int]()

    def kill_slow() -> None:
        # A look at all processes takes some milliseconds, and a slow child half a second.
        while not stop.wait(0.03):
            with suppress(psutil.Error):
                for child in [child for server in children_of(None, str(scratch)) for child in server.children()]:
                    if child.pid not in killed and child.cpu_times().user > 0.1:
                        child.kill()
                        killed.append(child.pid)

    killer = threading.Thread(target=kill_slow)
    killer.start()
    try:
        yield killed
    finally:
        stop.set()
        killer.join(PATIENCE_S)


@pytest.fixture
def caged(loop: Loop, tmp_path: Path) -> Iterator[tuple[Daemon, Path]]:
    """A daemon with a fork server of its own, and the folder by which that is known."""
    scratch = tmp_path / "scratch"
    extractor = Extractor(scratch)
    daemon = Daemon(loop, tmp_path / "data", extractor, UNLIMITED)
    daemon.make_bucket()
    yield daemon, scratch
    daemon.close()
    loop.run(extractor.close())


def test_a_wave_costs_one_claim_and_one_completion(daemon: Daemon) -> None:
    made = add_wave(daemon, WAVE_DOCUMENTS)
    before = daemon.context.database.operations
    daemon.start("indexing")
    daemon.wait_ready(*made)
    assert daemon.context.database.operations - before == 2
    assert (outcomes(daemon, *made), daemon.members()) == ({READ}, made)
    assert set(daemon.found("umber", max_num_results=50)) <= set(made)


@pytest.mark.rule("indexing.alone")
def test_a_document_that_kills_its_parser_costs_only_itself(caged: tuple[Daemon, Path]) -> None:
    daemon, scratch = caged
    half = WAVE_DOCUMENTS // 2
    before, guilty = add_wave(daemon, half), daemon.add_source(SLOW)
    after = add_wave(daemon, half - 1)
    with killing(scratch) as killed:
        daemon.start("indexing")
        daemon.wait_ready(*before, *after)
        for attempt in (2, 3):
            daemon.advance(60)
            daemon.wait(lambda: len(killed) >= attempt, f"attempt {attempt}")  # noqa: B023
        daemon.wait_status(guilty, "failed")
    assert len(killed) == 3
    assert outcomes(daemon, *before, *after) == {READ}
    assert outcomes(daemon, guilty) == {("failed", 3, "max_attempts_exhausted")}
    # Those before it came with the wave, and those after it each had a child of its own.
    assert lanes(daemon) == ["prompt"] * half + ["single"] * half


def test_what_only_looks_small_goes_on_alone_and_costs_no_attempt(daemon: Daemon) -> None:
    made = [*add_wave(daemon, 3), daemon.add_source(samples.make_pdf(["The umber quay."]), filename="a.txt")]
    daemon.start("indexing")
    daemon.wait_ready(*made)
    assert (outcomes(daemon, *made), lanes(daemon)) == ({READ}, ["prompt"] * 3 + ["single"])


def test_each_of_a_wave_fails_for_its_own_reason(daemon: Daemon) -> None:
    good, blank, lost = add_wave(daemon, 2), daemon.add_source(b" \n"), daemon.add_source(b"Lost.\n")
    daemon.lose_blob(lost)
    daemon.start("indexing")
    daemon.wait_ready(*good)
    codes = [daemon.wait_status(source_id, "failed")["error"]["code"] for source_id in (blank, lost)]
    assert (codes, outcomes(daemon, *good)) == (["no_extractable_text", "stored_bytes_lost"], {READ})


@pytest.mark.rule("indexing.waits")
def test_a_parser_that_cannot_be_started_is_not_taken_for_lost_bytes(
    caged: tuple[Daemon, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of the installation is missing: that of the interpreter, which an upgrade has just replaced."""
    daemon, _ = caged
    made = add_wave(daemon, 3)
    with monkeypatch.context() as upgrade:
        upgrade.setattr(sys, "executable", "/gone/python")
        daemon.start("indexing")
        failed = {("queued", 1, "extraction_crashed")}
        daemon.wait(lambda: outcomes(daemon, *made) == failed, "each is tried alone")
    daemon.advance(60)
    daemon.wait_ready(*made)


@pytest.mark.parametrize("retryable", [True, False])
def test_a_wave_that_the_index_refuses_is_taken_apart(daemon: Daemon, retryable: bool) -> None:
    made = add_wave(daemon)
    daemon.provider.fail("put_documents", ProviderFailed("Not these.", retryable=retryable))
    daemon.start("indexing")
    daemon.wait_ready(*made)
    assert (outcomes(daemon, *made), set(lanes(daemon))) == ({READ}, {"single"})


@pytest.mark.rule("indexing.waits")
@pytest.mark.parametrize("count", [1, 5])
def test_documents_wait_until_a_damaged_index_is_rebuilt(daemon: Daemon, count: int) -> None:
    """However long that takes: a rebuild soon after another one begins after a minute."""
    made = add_wave(daemon, count)
    daemon.provider.fail("put_documents", IndexDamaged(daemon.team_id, "damaged"), times=9)
    daemon.start("indexing")

    def are_ready() -> bool:
        if {daemon.source(source_id)["status"] for source_id in made} == {"queued"}:
            daemon.advance(5)
        return all(daemon.source(source_id)["ready"] for source_id in made)

    daemon.wait(are_ready, "the index takes them")
    assert (outcomes(daemon, *made), set(lanes(daemon))) == ({READ}, {"prompt"})


@pytest.mark.rule("indexing.waits")
def test_a_wave_waits_through_a_shortage(daemon: Daemon) -> None:
    made = add_wave(daemon)
    daemon.provider.fail("put_documents", refused())
    daemon.start("indexing", "shortages")
    daemon.wait_ready(*made)
    assert (outcomes(daemon, *made), set(lanes(daemon))) == ({READ}, {"prompt"})


def test_what_happens_to_one_of_a_wave_leaves_the_others_alone(working: Daemon) -> None:
    working.stop()
    working.make_bucket("second")
    gone, joined, renamed, *others = add_wave(working, 6)
    with working.provider.held("put_documents") as hold:
        working.start()
        hold.wait_entered()
        delete(working, gone)
        working.post("/v1/buckets/second/sources", json={"source_id": joined})
        working.patch(f"/v1/sources/{renamed}", title="Vermilion")
        assert {working.task(source_id)["progress"]["stage"] for source_id in (joined, *others)} == {"index"}
    working.wait_ready(joined, renamed, *others)
    assert (working.members(), working.members("second")) == ([joined, renamed, *others], [joined])
    assert (working.found("vermilion"), working.found("umber", buckets=["second"])) == ([renamed], [joined])
    working.wait(lambda: not working.context.progress, "the progress is forgotten")


def test_a_replacement_in_the_wave_of_what_it_replaces_takes_its_place(daemon: Daemon) -> None:
    line = [daemon.add_source()]
    daemon.make_bucket("second")
    daemon.post("/v1/buckets/second/sources", json={"source_id": line[0]})
    line.append(daemon.add_source(replaces=line[0]))
    daemon.start()
    daemon.wait_ready(*line)
    assert (daemon.members(), daemon.members("second")) == ([line[1]], [line[0]])


def test_a_wave_is_of_one_team_of_few_bytes_and_in_order(daemon: Daemon) -> None:
    theirs = daemon.add_team()
    daemon.make_bucket(key=theirs)
    ours = [daemon.add_source(b"The quay. " * 20_000) for _ in range(8)]
    foreign = add_wave(daemon, 3, key=theirs)
    turns, claimed = IndexingScheduler(2), []
    while claims := daemon.loop.run(claim_indexing(daemon.context, turns)):
        turns.begin(claims[0].task.lane, claims[0].task.team_id)
        turns.end(claims[0].task.lane)
        claimed.append([claim.source.id for claim in claims])
        assert sum(claim.source.size_bytes for claim in claims) <= WAVE_BYTES
    assert claimed in ([ours[:5], foreign, ours[5:]], [foreign, ours[:5], ours[5:]])


def test_one_file_does_not_wait_for_those_that_came_in_bulk(daemon: Daemon) -> None:
    files = [(f"{number}.md", b"Crane %d.\n" % number) for number in range(FEW + 1)]
    batch = open_batch(daemon, files)
    for name, data in files:
        body_of(put(daemon, batch["by_id"][name], data))
    finalize_batch(daemon, batch)
    one = daemon.add_source()
    assert lanes(daemon) == ["wave"] * len(files) + ["prompt"]
    turns = IndexingScheduler(2)
    claimed = []
    for _ in range(2):
        claims = daemon.loop.run(claim_indexing(daemon.context, turns, FEW)) or []
        turns.begin(claims[0].task.lane, claims[0].task.team_id)
        claimed.append([claim.source.id for claim in claims])
    assert (one in claimed[0] + claimed[1], sorted(map(len, claimed))) == (True, [1, FEW])


def test_documents_that_take_long_and_small_ones_do_not_wait_for_each_other(daemon: Daemon) -> None:
    large = [daemon.add_source(samples.make_endless_pdf(), filename="a.pdf") for _ in range(4)]
    small = add_wave(daemon, WAVE_DOCUMENTS * 2)
    daemon.start("indexing")
    daemon.wait_ready(*small)
    daemon.wait(
        lambda: [daemon.source(each)["status"] for each in large] == ["indexing"] * 2 + ["queued"] * 2,
        "as many large ones are in work as there may be",
    )
    late = daemon.add_source()
    daemon.wait_ready(late)
    daemon.stop()
    assert outcomes(daemon, *large) == {("queued", 0, None)}


def test_the_worker_sleeps_while_what_is_due_waits_for_its_lane(
    daemon: Daemon, extractor: Extractor, request: pytest.FixtureRequest
) -> None:
    for _ in range(daemon.limits.extract_children + 1):
        daemon.add_source(samples.make_pdf(["The umber quay."]), filename="a.pdf")
    now = daemon.context.clock.timestamp()
    daemon.write(lambda c: c.execute("UPDATE tasks SET next_attempt_at = :now", {"now": now}).rowcount)
    worker = IndexingWorker(daemon.context, extractor)
    request.addfinalizer(lambda: daemon.loop.run(worker.stop()))
    with daemon.provider.held("put_documents"):
        rests = [daemon.loop.run(worker.work()) for _ in range(daemon.limits.extract_children + 1)]
    assert rests == [0] * daemon.limits.extract_children + [LONGEST_S]


def test_what_was_claimed_just_before_a_stop_is_queued_again(daemon: Daemon, extractor: Extractor) -> None:
    made = add_wave(daemon, 3)
    worker = IndexingWorker(daemon.context, extractor)

    async def claim_and_stop() -> None:
        assert await worker.work() == 0
        await worker.stop()

    daemon.loop.run(claim_and_stop())
    assert outcomes(daemon, *made) == {("queued", 0, None)}


def test_in_a_shortage_one_document_is_tried_at_a_time(
    daemon: Daemon, extractor: Extractor, request: pytest.FixtureRequest
) -> None:
    made = add_wave(daemon, 3)
    assert daemon.loop.run(daemon.context.shortages.is_cause_of(refused()))
    worker = IndexingWorker(daemon.context, extractor)
    request.addfinalizer(lambda: daemon.loop.run(worker.stop()))
    with daemon.provider.held("put_documents"):
        assert daemon.loop.run(worker.work()) == 0
        assert [daemon.source(source_id)["status"] for source_id in made] == ["indexing", "queued", "queued"]


@pytest.mark.rule("indexing.alone")
def test_a_lost_worker_makes_suspects_which_are_read_alone_one_by_one(daemon: Daemon, make_daemon: MakeDaemon) -> None:
    made = add_wave(daemon)
    assert len(daemon.loop.run(claim_indexing(daemon.context, IndexingScheduler(2))) or []) == len(made)
    daemon.close()
    started = make_daemon()
    started.loop.run(release_expired(started.context, float("inf")))
    assert (outcomes(started, *made), set(lanes(started))) == ({("queued", 0, None)}, {"suspect"})
    with started.provider.held("put_documents") as hold:
        started.start("indexing")
        hold.wait_entered()
        other = started.add_source()
        started.wait(lambda: started.source(other)["status"] == "indexing", "what is no suspect goes on beside it")
        statuses = [started.source(source_id)["status"] for source_id in made]
        assert statuses == ["indexing"] + ["queued"] * (len(made) - 1)
    started.wait_ready(*made, other)
    assert outcomes(started, *made, other) == {READ}
    begun = [started.task(source_id)["finished_at"] for source_id in made]
    assert all(earlier <= later for earlier, later in pairwise(begun))
