"""Scans are read page by page in a queue of their own, and what was read of them is kept."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from svc_daemon.extract.child_limits import CageLimits
from svc_daemon.extract.extractors import Extractor
from svc_daemon.operations.index.indexing import release_expired
from tests.api.answers import body_of
from tests.api.daemons import UNLIMITED, Daemon
from tests.api.loops import Loop
from tests.api.sites import hosting
from tests.processes import children_of
from tests.scanned_pages import RECOGNIZER, joined, page, pdf, saved, scan

MakeScanning = Callable[..., Daemon]


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder by which the fork server of all tests is known."""
    return tmp_path_factory.mktemp("recognizing") / "scratch"


@pytest.fixture(scope="module")
def recognizing(loop: Loop, scratch: Path) -> Iterator[Extractor]:
    extractor = Extractor(scratch, CageLimits(recognizer=RECOGNIZER))
    yield extractor
    loop.run(extractor.close())


@pytest.fixture
def make_scanning(loop: Loop, recognizing: Extractor, tmp_path: Path) -> Iterator[MakeScanning]:
    """Open daemons that recognise text, or with another extractor don't, with these limits."""
    opened: list[Daemon] = []

    def make(extractor: Extractor = recognizing, **limits: int) -> Daemon:
        opened.append(Daemon(loop, tmp_path / "data", extractor, replace(UNLIMITED, **limits)))
        if len(opened) == 1:
            opened[0].make_bucket()
        return opened[-1]

    yield make
    for daemon in opened:
        daemon.close()


@pytest.fixture
def scanning(make_scanning: MakeScanning) -> Daemon:
    return make_scanning()


def pages_read(daemon: Daemon) -> int:
    return daemon.count("recognized_pages")


def crash(daemon: Daemon) -> None:
    """Leave the tasks as a kill does, and take them up again as the next start does."""
    rows = [dict(row) for row in daemon.read(lambda c: c.execute("SELECT * FROM tasks").fetchall())]
    daemon.stop()
    columns = ("status", "attempt", "token", "lane", "lease_until_s", "pages_token")
    setting = ", ".join(f"{name} = :{name}" for name in columns)
    daemon.write(lambda c: c.executemany(f"UPDATE tasks SET {setting} WHERE id = :id", rows))
    daemon.loop.run(release_expired(daemon.context, inf))


def queue(daemon: Daemon) -> list[tuple[str, str, int]]:
    """The lane, status and counted attempts of each task."""
    rows = daemon.read(lambda c: c.execute("SELECT lane, status, attempt FROM tasks ORDER BY id").fetchall())
    return [(row["lane"], row["status"], row["attempt"]) for row in rows]


def test_a_scan_is_ready_when_its_pages_are_read_and_is_found_with_its_page(scanning: Daemon) -> None:
    scanning.start()
    source_id = scanning.add_ready(scan(3), filename="scan.pdf")
    task, source = scanning.task(source_id), scanning.source(source_id)
    assert (task["status"], task["attempt"]) == ("succeeded", 1)
    assert task["progress"].items() >= {"pages_done": 3, "pages_total": 3, "seconds_left": None}.items()
    assert source["extraction"]["recognized_pages"] == {"1": 0.97, "2": 0.97, "3": 0.97}
    (best, *_) = body_of(scanning.search("umber quay 2"))["data"]
    assert best["location"].items() >= {"page": 2, "ocr": True, "confidence": 0.97}.items()


def test_text_that_was_not_recognised_is_not_marked(scanning: Daemon) -> None:
    scanning.start()
    source_id = scanning.add_ready()
    (best, *_) = body_of(scanning.search("umber quay"))["data"]
    assert "ocr" not in best["location"]
    assert "recognized_pages" not in scanning.source(source_id)["extraction"]


def test_notes_do_not_wait_for_scans_of_which_one_is_read_at_a_time(scanning: Daemon) -> None:
    scanning.start()
    slow = [scanning.add_source(pdf([page("!wait 600")]), filename=f"{number}.pdf") for number in range(4)]
    waiting = [("scan", "queued", 0)] * 3
    scanning.wait(lambda: sorted(queue(scanning)) == [*waiting, ("scan", "running", 1)], "all are known as scans")
    scanning.wait_ready(scanning.add_source())
    assert [scanning.task(source_id)["progress"]["pages_total"] for source_id in slow] == [1] * 4


@pytest.mark.parametrize("end", [Daemon.stop, crash])
def test_a_scan_goes_on_with_the_page_that_it_was_at(scanning: Daemon, end: Callable[[Daemon], None]) -> None:
    source_id = scanning.add_source(joined(scan(2), pdf([page("!wait 1"), page("!wait 600")])), filename="scan.pdf")
    scanning.start()
    scanning.wait(lambda: pages_read(scanning) == 3, "three pages are read")
    progress = scanning.task(source_id)["progress"]
    assert (progress["stage"], progress["pages_done"], progress["pages_total"]) == ("ocr", 3, 4)
    assert progress["seconds_left"] >= 0
    end(scanning)
    # What was read stays, and the attempt doesn't count.
    assert (pages_read(scanning), queue(scanning)) == (3, [("scan", "queued", 0)])
    scanning.start()
    scanning.wait(lambda: queue(scanning) == [("scan", "running", 1)], "the scan is read again")
    scanning.wait(lambda: scanning.task(source_id)["progress"]["stage"] == "ocr", "its last page is read")
    assert pages_read(scanning) == 3


def test_a_page_that_ends_the_daemon_each_time_fails_its_document(scanning: Daemon) -> None:
    source_id = scanning.add_source(pdf([page("!wait 600")]), filename="scan.pdf")
    seen = []
    scanning.write(lambda c: c.execute("UPDATE tasks SET deaths = 7"))
    for _ in range(3):
        scanning.start()
        scanning.wait(lambda: scanning.task(source_id)["progress"]["stage"] == "ocr", "the page is read")
        # It also runs for a moment before it is known as a scan.
        scanning.wait(
            lambda: queue(scanning)[0][:2] in (("scan", "running"), ("suspect", "running")), "the page is read"
        )
        crash(scanning)
        scanning.advance(100)
        seen += queue(scanning)
    # No attempt was counted for the ends of the daemon, and the tenth fails the source.
    assert seen == [("suspect", "queued", 0), ("suspect", "queued", 0), ("suspect", "failed", 1)]


def test_attempts_and_deaths_before_a_page_that_is_read_count_no_more(scanning: Daemon) -> None:
    scanning.add_source(joined(scan(1), pdf([page("!wait 600")])), filename="scan.pdf")
    scanning.write(lambda c: c.execute("UPDATE tasks SET lane = 'suspect', attempt = 2, deaths = 9"))
    scanning.start()
    scanning.wait(lambda: queue(scanning) == [("scan", "running", 1)], "a page is read")
    crash(scanning)
    assert queue(scanning) == [("suspect", "queued", 0)]


def test_a_recogniser_that_was_killed_costs_no_attempt_after_a_page(scanning: Daemon, scratch: Path) -> None:
    scanning.start()
    source_id = scanning.add_source(pdf([page("One."), page("!wait 4"), page("Three.")]), filename="scan.pdf")
    scanning.wait(lambda: pages_read(scanning) == 1, "a page is read")
    (server,) = children_of(None, str(scratch))
    for child in server.children():
        child.kill()
    scanning.wait_ready(source_id)
    assert (pages_read(scanning), queue(scanning)) == (3, [("scan", "succeeded", 1)])


def test_a_deleted_scan_leaves_no_page(scanning: Daemon) -> None:
    scanning.start()
    source_id = scanning.add_source(joined(scan(1), pdf([page("!wait 600")])), filename="scan.pdf")
    scanning.wait(lambda: pages_read(scanning) == 1, "a page is read")
    scanning.delete(f"/v1/sources/{source_id}")
    assert pages_read(scanning) == 0


def test_pages_over_the_limit_are_named(make_scanning: MakeScanning) -> None:
    daemon = make_scanning(ocr_pages=2)
    daemon.start()
    source = daemon.source(daemon.add_ready(scan(5), filename="scan.pdf"))
    assert source["extraction"]["pages_without_text"] == [3, 4, 5]
    assert source["warnings"] == [
        "Pages 3-5 were not read: the limit is 2 scanned pages a document (SVC_LIMIT_OCR_PAGES)."
    ]


def test_a_scan_of_which_pages_were_not_read_can_be_retried(make_scanning: MakeScanning) -> None:
    before = make_scanning(ocr_pages=2)
    before.start()
    source_id = before.add_ready(scan(3), filename="scan.pdf")
    before.close()
    after = make_scanning()
    after.start()
    after.post(f"/v1/sources/{source_id}/retry")
    after.wait_ready(source_id)
    source = after.source(source_id)
    assert (source["extraction"]["pages_without_text"], source["warnings"]) == ([], [])
    assert "no page of it lacks text" in after.ask("POST", f"/v1/sources/{source_id}/retry").text


def test_a_document_is_read_again_with_the_pages_that_are_stored(
    make_scanning: MakeScanning, extractor: Extractor
) -> None:
    daemon = make_scanning()
    daemon.start()
    source_id = daemon.add_ready(joined(scan(2), scan(1, "ochre")), filename="scan.pdf")
    daemon.close()
    # Even without the recogniser.
    again = make_scanning(extractor)
    again.start()
    text = again.show(f"/v1/sources/{source_id}/text", verify="content")
    assert "ochre quay 1" in text["text"]
    assert text["chunks"][2]["location"]["ocr"] is True


@pytest.mark.parametrize("every", [86_400, 0])
def test_a_scan_from_a_url_is_recognised_again_when_it_changes(scanning: Daemon, every: int) -> None:
    scanning.start()
    with hosting() as site:
        body = {"url": site.put("/scan.pdf", scan(3), "application/pdf"), "refresh": {"every_seconds": every}}
        source_id = str(scanning.post("/v1/buckets/inbox/files/import", 201, json=body)["id"])
        scanning.wait_ready(source_id)
        site.put("/scan.pdf", scan(2, "ochre"), "application/pdf")
        if every:
            scanning.advance(1.2 * every)
        else:
            assert scanning.post(f"/v1/sources/{source_id}/refresh", 202)["status"] == "queued"
            scanning.wait_ready(source_id)
        scanning.wait(lambda: scanning.source(source_id)["extraction"]["pages"] == 2, "the new pages are read")
    source = scanning.source(source_id)
    assert (source["ready"], source["extraction"]["recognized_pages"]) == (True, {"1": 0.97, "2": 0.97})
    assert (scanning.found("ochre"), scanning.found("umber"), pages_read(scanning)) == ([source_id], [], 2)


def test_a_scan_that_failed_is_read_once_it_can_be(make_scanning: MakeScanning, extractor: Extractor) -> None:
    before = make_scanning(extractor)
    before.start()
    ids = [
        before.add_source(scan(1), filename="a.pdf"),
        before.add_source(saved([page("One.")], "PNG"), filename="b.png"),
    ]
    codes = [before.wait_status(source_id, "failed")["error"]["code"] for source_id in ids]
    assert codes == ["no_extractable_text", "unsupported_format"]
    before.close()
    after = make_scanning()
    after.start()
    for source_id in ids:
        after.post(f"/v1/sources/{source_id}/retry")
    after.wait_ready(*ids)
