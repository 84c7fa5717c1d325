"""Tests shortages of disk space and descriptors: tasks wait without counting attempts, and continue afterwards."""

import errno
import logging
import os
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from svc_daemon.process.resource_shortages import MOST_ALONE
from svc_daemon.provider.errors import ProviderFailed
from svc_daemon.settings.limits import Limits
from tests.acceptance.installations import Installation
from tests.api.daemons import Daemon
from tests.api.fixtures import MakeDaemon
from tests.limits import limited, small_disk
from tests.workers.rebuilds import add_joining, begin, contents, importing, wait_rebuilt


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the pauses in a shortage."""
    monkeypatch.setattr("svc_daemon.workers.indexing.PAUSE_IN_SHORTAGE_S", 0.05)
    for name, seconds in (("FIRST_PAUSE_S", 0.05), ("LONGEST_PAUSE_S", 0.2), ("LOOK_S", 0.05), ("QUIET_S", 0.5)):
        monkeypatch.setattr(f"svc_daemon.process.resource_shortages.{name}", seconds)


@contextmanager
def nearly_full() -> Iterator[None]:
    """Report less free disk space than the reserve."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(total=10**12, free=10**6))
        yield


def refused(number: int = errno.ENOSPC) -> ProviderFailed:
    """Return the error that a provider raises after a system call has failed with this number."""
    failure = ProviderFailed("The index failed.", retryable=True)
    failure.__cause__ = OSError(number, os.strerror(number))
    return failure


def fill(path: Path) -> None:
    """Fill the disk with this file."""
    with path.open("wb", buffering=0) as filler:
        for size in (1024**2, 4096):
            with suppress(OSError):
                while filler.write(bytes(size)):
                    pass


@contextmanager
def no_descriptors() -> Iterator[None]:
    """Let this process open no more files."""
    lowest = os.dup(0)
    os.close(lowest)
    with limited(resource.RLIMIT_NOFILE, lowest):
        yield


def wait_short(daemon: Daemon, *, short: bool = True) -> None:
    """Wait until a shortage has begun, or has ended."""
    daemon.wait(lambda: (daemon.context.shortages.now is not None) is short, f"something is short: {short}")


@pytest.mark.folders
def test_below_the_disk_reserve_a_refused_upload_alone_shows_the_shortage_until_it_is_over(
    daemon: Daemon, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    daemon.start()
    with nearly_full():
        assert daemon.show("/healthz")["shortage"] is None
        for _ in range(2):
            assert daemon.upload(b"words").status_code == 503
        assert daemon.show("/healthz")["shortage"]["lack"] == "disk_reserve"
        assert daemon.show("/v1/status")["last_trouble"]["until"] is None
    wait_short(daemon, short=False)
    assert daemon.upload(b"words").status_code == 201
    assert caplog.text.count("nearly full") == caplog.text.count("work continues") == 1


@pytest.mark.folders
@pytest.mark.sqlite
def test_start_on_a_full_disk_says_so_and_not_that_the_disk_fails(tmp_path: Path) -> None:
    with small_disk(tmp_path / "data", "2m") as disk:
        installation = Installation(tmp_path)
        assert installation.operate("team", "create", "blue").exit == 0
        fill(disk / "filler")
        ended = installation.operate("serve", "--listen", "127.0.0.1:0")
        assert (ended.exit, ended.stderr.count("The disk is full."), ended.stderr.count("\n")) == (7, 1, 1), ended
        (disk / "filler").unlink()
        assert installation.operate("verify").exit == 0


@pytest.mark.folders
def test_stored_bytes_that_cannot_be_opened_are_an_error_before_the_answer_begins(daemon: Daemon) -> None:
    source_id = daemon.add_source()
    with no_descriptors():
        answer = daemon.ask("GET", f"/v1/sources/{source_id}/content")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "storage_full")


@pytest.mark.folders
def test_data_directory_that_is_gone_is_a_trouble_of_the_disk_that_passes(daemon: Daemon) -> None:
    daemon.add_source()
    root = daemon.files.root
    away = root.rename(root.with_name("away"))
    for answer in (daemon.upload(b"words"), daemon.ask("GET", "/v1/status")):
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "storage_full")
    away.rename(root)
    assert daemon.upload(b"words").status_code == 201


@pytest.mark.folders
def test_documents_wait_for_stored_bytes_whose_volume_is_gone_and_none_counts_as_lost(daemon: Daemon) -> None:
    queued, ready = daemon.add_source(), daemon.add_source(b"The other umber quay.")
    daemon.start()
    daemon.wait_ready(queued, ready)
    daemon.stop()
    waiting = daemon.add_source(b"A third umber quay.")
    blobs = daemon.files.blobs
    away = blobs.rename(blobs.with_name("away"))
    daemon.start()
    wait_short(daemon)
    for path in ("content", "text?verify=content"):
        answer = daemon.ask("GET", f"/v1/sources/{ready}/{path}")
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "storage_full"), path
    # Longer than all attempts and the pauses between them.
    daemon.advance(60)
    source = daemon.source(waiting)
    assert (source["status"], source["error"], source["waits_for"]["lack"]) == ("queued", None, "store")
    away.rename(blobs)
    daemon.wait_ready(waiting)
    assert daemon.task(waiting)["attempt"] == 1
    wait_short(daemon, short=False)


@pytest.mark.folders
def test_below_the_disk_reserve_tasks_wait_with_a_cause_and_continue_afterwards(
    daemon: Daemon, caplog: pytest.LogCaptureFixture
) -> None:
    made = [daemon.add_source() for _ in range(8)]
    caplog.set_level(logging.INFO)
    with nearly_full():
        daemon.start()
        wait_short(daemon)
        for source_id in made:
            lack = daemon.wait_status(source_id, "queued")["waits_for"]
            assert (lack["lack"], "nearly full" in lack["message"]) == ("disk_reserve", True)
            task = daemon.task(source_id)
            assert (task["attempt"], task["error"], task["waits_for"]) == (0, None, lack)
        assert contents(daemon) == {}
        assert "nearly full" in daemon.show("/healthz")["shortage"]["message"]
        # A restart during the shortage changes nothing.
        daemon.stop()
        daemon.start()
        for source_id in made:
            daemon.wait_status(source_id, "queued")
    daemon.wait_ready(*made)
    wait_short(daemon, short=False)
    assert [daemon.task(source_id)["attempt"] for source_id in made] == [1] * len(made)
    assert daemon.source(made[0])["waits_for"] is daemon.task(made[0])["waits_for"] is None
    assert daemon.show("/healthz")["shortage"] is None
    assert caplog.text.count("Work waits") == caplog.text.count("work continues") == 1
    assert "Traceback" not in caplog.text


def test_a_document_that_alone_keeps_hitting_a_shortage_fails(working: Daemon) -> None:
    working.provider.fail("put_documents", refused(), times=MOST_ALONE + 3)
    source_id = working.add_source()

    def has_failed() -> bool:
        working.advance(60)
        return bool(working.source(source_id)["status"] == "failed")

    working.wait(has_failed, "the document fails")
    assert working.source(source_id)["error"]["code"] == "max_attempts_exhausted"
    wait_short(working, short=False)
    working.add_ready(b"Another quay.\n")


@pytest.mark.folders
def test_a_failure_without_a_cause_during_a_shortage_counts_no_attempt(working: Daemon) -> None:
    working.add_ready()
    with working.provider.held("put_documents") as hold:
        source_id = working.add_source(b"Another quay.\n")
        hold.wait_entered()
        working.provider.fail("put_documents", ProviderFailed("Nobody knows.", retryable=True))
        with nearly_full():
            hold.release()
            wait_short(working)
    working.wait_ready(source_id)
    assert working.task(source_id)["attempt"] == 1


def test_a_bucket_sync_waits_during_a_shortage_and_does_not_fail(working: Daemon) -> None:
    working.provider.fail("set_buckets", refused(), times=3)
    seen = set()
    source_id = add_joining(working)

    def is_ready() -> bool:
        seen.add(working.source(source_id)["bucket_sync_status"])
        working.advance(1)
        return bool(working.source(source_id)["ready"])

    working.wait(is_ready, "the source is ready")
    assert "failed" not in seen


@pytest.mark.index_files
def test_a_full_disk_fails_neither_a_document_nor_a_deletion(make_daemon: MakeDaemon, tmp_path: Path) -> None:
    with small_disk(tmp_path / "data", "24m") as disk:
        daemon = make_daemon(limits=Limits(creates_per_second=0, bytes_per_minute=0, free_disk_bytes=0))
        daemon.make_bucket()
        daemon.make_bucket("old")
        made = [daemon.add_source(f"The umber quay {number}.\n".encode() * 20_000) for number in range(3)]
        for number in range(300):
            daemon.add_source(f"Quay {number}.\n".encode(), bucket="old")
        deletion = daemon.delete("/v1/buckets/old", force="true")
        fill(disk / "filler")
        daemon.start()
        wait_short(daemon)
        assert "failed" not in {daemon.source(source_id)["status"] for source_id in made}
        (disk / "filler").unlink()
        daemon.wait_ready(*made)
        task = wait_rebuilt(daemon, deletion["deletion"]["task_id"])
        assert (task["status"], task["attempt"], task["deletion"]["failed"]) == ("succeeded", 1, 0)
        assert [daemon.task(source_id)["attempt"] for source_id in made] == [1] * len(made)
        daemon.close()


def test_a_rebuild_waits_during_a_shortage_and_fails_no_document(working: Daemon) -> None:
    source_id = working.add_ready()
    first = working.source(source_id)["task"]["id"]
    working.provider.fail("put_documents", refused(), times=4)
    task = wait_rebuilt(working, begin(working))
    assert (task["status"], task["attempt"]) == ("succeeded", 1)
    working.wait_ready(source_id)
    assert working.source(source_id)["task"]["id"] == first


@pytest.mark.folders
def test_a_new_chunking_waits_during_a_shortage_and_is_applied_afterwards(working: Daemon) -> None:
    source_id = working.add_ready(b"\n\n".join(b"The umber quay, sentence %d." % number for number in range(60)))
    before = working.source(source_id)["extraction"]["chunks"]
    with nearly_full():
        working.patch("/v1/buckets/inbox", chunking={"target": 150, "min": 100, "max": 200})
        wait_short(working)
        assert working.source(source_id)["ready"]
    working.wait(lambda: working.source(source_id)["extraction"]["chunks"] > before, "the source is rechunked")
    assert working.source(source_id)["warnings"] == []


def test_a_webhook_waits_for_free_descriptors(daemon: Daemon) -> None:
    with importing(daemon) as (source_id, receiver):
        daemon.start("indexing", "syncing", "shortages")
        daemon.wait_ready(source_id)
        with no_descriptors():
            daemon.start("delivering")
            wait_short(daemon)
        daemon.wait(lambda: daemon.count("delivery_attempts") == 1, "the receiver is called")
    (delivery,) = daemon.show("/v1/webhooks/deliveries")["deliveries"]
    assert (len(receiver.calls), delivery["status"], len(delivery["attempts"])) == (1, "delivered", 1)
