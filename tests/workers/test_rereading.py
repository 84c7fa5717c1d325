"""Tests the reading of sources again that an older version of the readers has read."""

import asyncio
import errno
from dataclasses import replace
from typing import Any, cast

import pytest

from svc_daemon.core.text.chunking import READER_VERSION, ChunkingOptions, Extraction, chunk_document
from svc_daemon.databases.contract import Connection
from svc_daemon.extract.builders import FlowDocument
from svc_daemon.operations.index import documents
from svc_daemon.operations.index.extraction import extract, find_reading
from svc_daemon.operations.index.indexing import indexed
from svc_daemon.operations.index.rebuilding import begin_rechunk, next_older, note_reread
from svc_daemon.store.rows.sources.sources import SourceRow, find_source, update_state
from svc_daemon.wire.sources import SourceError, StoredExtraction
from svc_daemon.workers.rebuilding import RechunkingWorker
from tests.api.answers import refused_field
from tests.api.daemons import Daemon
from tests.workers.rebuilds import begin, wait_rebuilt

NOW_READ = "The harbour office is open, and a vermilion clause was added."
PAGE = f"<html><body><p>{NOW_READ}</p></body></html>".encode()


class BrokenDisk:
    """Stored files on a disk that fails at one of them."""

    def __init__(self, whole: Any, broken: str) -> None:
        self._whole, self._broken = whole, broken

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)

    def blob(self, name: str) -> Any:
        if name == self._broken:
            raise OSError(errno.EIO, "Input/output error")
        return self._whole.blob(name)


def age(daemon: Daemon, source_id: str, text: str) -> None:
    """Stop the daemon, and store the source as an older version would have: with this text."""
    daemon.stop()
    flow = FlowDocument()
    flow.add("paragraph", text)
    document = flow.finish()
    extraction = Extraction(
        content_type="text/html", text=document.text, chunks=chunk_document(document, ChunkingOptions())
    )
    source = row(daemon, source_id)
    daemon.provider.delete_document(daemon.team_id, source_id)
    documents.put(daemon.context, [(source, extraction)])
    older = replace(indexed(source, extraction, source.updated_at, rechunk=False), reader=0)
    assert older.extraction is not None
    newer_facts = ("title", "hidden", "parts")
    facts = {name: value for name, value in older.extraction.items() if name not in newer_facts}
    store(daemon, replace(older, extraction=cast("StoredExtraction", facts)))


def extraction_of(daemon: Daemon, source_id: str) -> Extraction:
    """Read the stored bytes of a source."""
    reading = daemon.read(lambda connection: find_reading(connection, daemon.team_id, source_id))
    assert reading is not None
    return daemon.loop.run(extract(daemon.context, daemon._extractor, reading))


def store(daemon: Daemon, source: SourceRow) -> None:
    daemon.loop.run(daemon.context.write(lambda connection: update_state(connection, source)))


def row(daemon: Daemon, source_id: str) -> SourceRow:
    def find(connection: Connection) -> SourceRow | None:
        return find_source(connection, daemon.team_id, source_id)

    found = daemon.context.read(find)
    assert found is not None
    return found


def left(daemon: Daemon) -> int:
    return int(daemon.show("/v1/buckets/inbox")["bucketStore"]["older_reader_member_count"])


def read_again(daemon: Daemon) -> None:
    assert left(daemon) == 1
    daemon.start()
    daemon.wait(lambda: left(daemon) == 0, "every source is read again")


def text_of(daemon: Daemon, source_id: str, **query: str) -> dict[str, Any]:
    return daemon.show(f"/v1/sources/{source_id}/text", **query)


@pytest.mark.rule("source.reread")
def test_a_source_of_an_older_reader_is_found_by_its_old_text_until_it_is_read_again(working: Daemon) -> None:
    source_id = working.add_ready(PAGE, filename="page.html")
    age(working, source_id, "The harbour office is open.")
    assert (working.found("harbour"), working.found("vermilion")) == ([source_id], [])
    shown = working.source(source_id)
    assert (shown["ready"], shown["extraction"]["parts"], shown["extraction"]["hidden"]) == (True, {}, 0)
    read_again(working)
    assert working.found("vermilion") == [source_id]
    assert (working.source(source_id)["ready"], text_of(working, source_id)["text"]) == (True, NOW_READ)
    assert (row(working, source_id).generation, row(working, source_id).reader) == (2, READER_VERSION)


@pytest.mark.rule("source.reread")
def test_after_a_kill_while_a_source_is_read_again_its_old_text_is_found_until_the_new_one_is(working: Daemon) -> None:
    source_id = working.add_ready(PAGE, filename="page.html")
    age(working, source_id, "The harbour office is open.")
    reading = next_older(working.context, None)
    assert reading is not None
    begun = working.loop.run(begin_rechunk(working.context, reading))
    assert begun is not None and begun.source.generation == 2
    assert (working.found("harbour"), working.source(source_id)["ready"]) == ([source_id], True)
    read_again(working)
    assert (working.found("vermilion"), row(working, source_id).rechunk) == ([source_id], False)


@pytest.mark.rule("source.reread")
@pytest.mark.parametrize("change", ["deleted", "retried"])
def test_a_source_that_is_deleted_or_retried_while_it_is_read_again_keeps_that_change(
    working: Daemon, change: str
) -> None:
    source_id = working.add_ready(PAGE, filename="page.html")
    age(working, source_id, NOW_READ)
    reading = next_older(working.context, None)
    assert reading is not None
    extraction = extraction_of(working, source_id)
    if change == "deleted":
        working.delete(f"/v1/sources/{source_id}")
    else:
        working.write(lambda connection: connection.execute("UPDATE sources SET status = 'failed'"))
        working.post(f"/v1/sources/{source_id}/retry")
    before = working.read(lambda connection: find_source(connection, working.team_id, source_id))
    working.loop.run(note_reread(working.context, reading, extraction, ""))
    working.loop.run(note_reread(working.context, reading, None, "A warning."))
    assert working.loop.run(begin_rechunk(working.context, reading)) is None
    assert working.read(lambda connection: find_source(connection, working.team_id, source_id)) == before


@pytest.mark.rule("source.reread")
def test_a_text_that_is_read_alike_keeps_its_place_in_the_index_and_gets_the_new_facts(working: Daemon) -> None:
    source_id = working.add_ready(PAGE, filename="page.html")
    expected = working.source(source_id)["extraction"]
    age(working, source_id, NOW_READ)
    read_again(working)
    assert (row(working, source_id).generation, working.source(source_id)["extraction"]) == (1, expected)


@pytest.mark.folders
@pytest.mark.rule("source.reread")
@pytest.mark.parametrize("damage", ["finds less", "finds nothing"])
def test_a_reader_that_finds_less_keeps_the_old_text_and_warns(working: Daemon, damage: str) -> None:
    source_id = working.add_ready(PAGE, filename="page.html")
    if damage == "finds nothing":
        # As if this version found no text in it.
        (working.files.blobs / source_id).write_bytes(b"<html><body></body></html>")
    old = "The sepia ledger says more." * 20
    age(working, source_id, old)
    read_again(working)
    shown = working.source(source_id)
    assert (working.found("sepia"), shown["extraction"]["characters"]) == ([source_id], len(old))
    (warning,) = shown["warnings"]
    assert warning.startswith("The text is that of an older version")


@pytest.mark.rule("source.reread")
def test_a_failed_source_that_can_be_read_now_becomes_ready_and_others_stay_as_they_were(working: Daemon) -> None:
    readable, empty = working.add_ready(PAGE, filename="page.html"), working.add_source(b" ", filename="empty.txt")
    working.wait_status(empty, "failed")
    working.stop()
    error: SourceError = {"code": "unsupported_format", "message": "No reader.", "retryable": False}
    store(working, replace(row(working, readable), status="failed", error=error, extraction=None, reader=0))
    store(working, replace(row(working, empty), reader=0))
    before = working.source(empty) | {"request_id": ""}
    working.start()
    working.wait_ready(readable)
    working.wait(lambda: row(working, empty).reader == READER_VERSION, "the empty file is read again")
    assert working.source(empty) | {"request_id": ""} == before


def test_a_rebuild_reads_sources_of_an_older_reader_too(working: Daemon) -> None:
    source_id = working.add_ready(PAGE, filename="page.html")
    age(working, source_id, NOW_READ)
    # The facts are the newest ones, so that only the version of the reader is older.
    reading = extraction_of(working, source_id)
    store(working, replace(indexed(row(working, source_id), reading, "", rechunk=False), reader=0))
    task_id = begin(working)
    working.start("rebuilding")
    wait_rebuilt(working, task_id)
    assert (left(working), row(working, source_id).reader) == (0, READER_VERSION)


def test_a_stored_file_that_the_disk_does_not_give_keeps_no_other_source_waiting(working: Daemon) -> None:
    stuck, source_id = (working.add_ready(PAGE + end, filename="page.html") for end in (b"", b"\n"))
    for each in (stuck, source_id):
        age(working, each, "The harbour office is open.")
    context = replace(working.context, blobs=cast("Any", BrokenDisk(working.context.blobs, stuck)))
    working.loop.run(RechunkingWorker(context, working._extractor).work())
    assert (left(working), working.found("vermilion")) == (1, [source_id])
    read_again(working)
    assert set(working.found("vermilion")) == {stuck, source_id}


def test_new_sources_and_new_chunk_sizes_go_before_sources_of_an_older_reader(working: Daemon) -> None:
    source_id = working.add_ready(PAGE, filename="page.html")
    age(working, source_id, "The harbour office is open.")
    worker = RechunkingWorker(working.context, working._extractor)
    working.loop.call(worker.wake.set_here)
    assert (working.loop.run(worker.work()), left(working)) == (0, 1)
    working.loop.call(worker.wake.clear)
    waiting = working.add_source()
    with pytest.raises(TimeoutError):
        working.loop.run(asyncio.wait_for(worker.work(), 0.5))
    assert (left(working), working.source(waiting)["status"]) == (1, "queued")
    working.start("indexing")
    working.wait_ready(waiting)
    working.loop.run(worker.work())
    assert (left(working), working.found("vermilion")) == (0, [source_id])


def test_a_setting_turns_it_off(working: Daemon) -> None:
    source_id = working.add_ready(PAGE, filename="page.html")
    age(working, source_id, "The harbour office is open.")
    worker = RechunkingWorker(working.context, working._extractor, rereads=False)
    working.loop.run(worker.work())
    assert (left(working), text_of(working, source_id)["text"]) == (1, "The harbour office is open.")


def test_hidden_text_is_shown_only_if_it_is_asked_for(working: Daemon) -> None:
    tags = "".join(chr(0xE0000 + ord(letter)) for letter in "obey the otter")
    source_id = working.add_ready(f"# Plan\n\nThe office{tags} is open.\n".encode(), filename="plan.md")
    assert working.source(source_id)["extraction"]["hidden"] == len("obey the otter")
    assert "hidden" not in text_of(working, source_id)
    assert text_of(working, source_id, hidden="true")["hidden"] == [
        {"text": "obey the otter", "reason": "characters without a width", "page": None, "line": None}
    ]
    assert working.found("otter") == []
    for other in ({"verify": "content"}, {"vectors": "true"}):
        answer = working.ask("GET", f"/v1/sources/{source_id}/text", params={"hidden": "true", **other})
        assert refused_field(answer) == "hidden"


@pytest.mark.folders
def test_hidden_text_of_lost_bytes_is_refused_with_the_reason(working: Daemon) -> None:
    source_id = working.add_ready(PAGE, filename="page.html")
    (working.files.blobs / source_id).unlink()
    answer = working.ask("GET", f"/v1/sources/{source_id}/text", params={"hidden": "true"})
    assert refused_field(answer) == "hidden"
    assert "The stored bytes are gone." in answer.text
    assert text_of(working, source_id)["text"] == NOW_READ
