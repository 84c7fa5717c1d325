"""What happens between the steps of an upload: takeovers, cut connections, a disk that refuses."""

import asyncio
import errno
import os
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from svc_daemon.core.uploads.sessions import ContentRange
from svc_daemon.errors import ServiceError
from svc_daemon.operations import uploads as verbs
from svc_daemon.operations.leftovers import sort_leftovers
from svc_daemon.operations.sweeping import expire_uploads
from svc_daemon.operations.uploads import ChunkBody, UploadProgress
from tests.api.answers import body_of, details_of
from tests.api.daemons import Daemon
from tests.api.sessions import finalize, open_session, part_told, put, put_part, session_path, state_of, stored_bytes

DATA = os.urandom(3_000_000)
SIZE = len(DATA)


async def send_then_hang(sent: asyncio.Event, data: bytes) -> AsyncIterator[bytes]:
    """A client that dies without a word: its connection says nothing more."""
    yield data
    sent.set()
    await asyncio.Event().wait()


async def send(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def send_then_break(data: bytes) -> AsyncIterator[bytes]:
    yield data
    raise ConnectionResetError("cut")


def test_a_newcomer_takes_over_from_a_dead_writer(daemon: Daemon) -> None:
    session = open_session(daemon, DATA)

    async def work() -> tuple[UploadProgress, BaseException | None, float]:
        sent = asyncio.Event()
        dead = ChunkBody(None, SIZE, send_then_hang(sent, DATA[:1_500_000]))
        dying = asyncio.create_task(verbs.put_bytes(daemon.context, session["session_id"], dead))
        await sent.wait()
        began = time.monotonic()
        question = ChunkBody(ContentRange(None, None, None), 0, send())
        told = await verbs.put_bytes(daemon.context, session["session_id"], question)
        took_s = time.monotonic() - began
        await asyncio.wait([dying])
        return told, dying.exception(), took_s

    told, failure, took_s = daemon.loop.run(work())
    assert (told.state, told.received_bytes) == ("uploading", 1_500_000)
    assert isinstance(failure, ServiceError)
    assert failure.code == "request_in_progress"
    assert took_s < 2
    body_of(put_part(daemon, session, DATA, 1_500_000, SIZE - 1))
    assert stored_bytes(daemon, body_of(finalize(daemon, session), 201)["id"]) == DATA


@pytest.mark.parametrize("cut_at", [1, 999_999, 1_048_576, 2_999_999])
def test_a_cut_connection_keeps_the_prefix(daemon: Daemon, cut_at: int) -> None:
    session = open_session(daemon, DATA)
    with pytest.raises(ConnectionResetError):
        cut = ChunkBody(None, SIZE, send_then_break(DATA[:cut_at]))
        daemon.loop.run(verbs.put_bytes(daemon.context, session["session_id"], cut))
    assert part_told(put(daemon, session, b"", "bytes */*")) == f"bytes=0-{cut_at - 1}"
    body_of(put_part(daemon, session, DATA, cut_at, SIZE - 1))
    assert stored_bytes(daemon, body_of(finalize(daemon, session), 201)["id"]) == DATA


def hang(daemon: Daemon, session_id: str) -> "asyncio.Task[UploadProgress]":
    """A PUT that has sent a little and hangs."""

    async def work() -> "asyncio.Task[UploadProgress]":
        sent = asyncio.Event()
        sending = ChunkBody(None, SIZE, send_then_hang(sent, DATA[:10]))
        task = asyncio.create_task(verbs.put_bytes(daemon.context, session_id, sending))
        await sent.wait()
        return task

    return daemon.loop.run(work())


def end_of(daemon: Daemon, task: "asyncio.Task[UploadProgress]") -> str:
    """The code that the PUT ended with."""

    async def work() -> str:
        await asyncio.wait([task])
        failure = task.exception()
        assert isinstance(failure, ServiceError)
        return str(failure.code)

    return daemon.loop.run(work())


def stop(daemon: Daemon, task: "asyncio.Task[UploadProgress]") -> None:
    """End the PUT as the end of the daemon does."""

    async def work() -> None:
        task.cancel()
        await asyncio.wait([task])

    daemon.loop.run(work())


def test_a_cancel_stops_a_running_put_and_leaves_no_byte(daemon: Daemon) -> None:
    session = open_session(daemon, DATA)
    task = hang(daemon, session["session_id"])
    assert body_of(daemon.ask("DELETE", session_path(session)))["status"] == "canceled"
    assert end_of(daemon, task) == "request_in_progress"
    assert list(daemon.files.parts.iterdir()) == []


def test_a_finalize_that_comes_too_early_does_not_stop_a_running_put(daemon: Daemon) -> None:
    session = open_session(daemon, DATA)
    task = hang(daemon, session["session_id"])
    details_of(finalize(daemon, session), "blob_not_uploaded")
    assert not task.done()
    stop(daemon, task)


def test_a_put_that_waited_for_a_cancel_is_refused(daemon: Daemon) -> None:
    """It was let in before the session ended, and must not begin a new part."""
    session = open_session(daemon, DATA)

    async def work() -> None:
        async with daemon.context.writers.hold(session["session_id"], lets_go=False):
            waiting = asyncio.create_task(
                verbs.put_bytes(daemon.context, session["session_id"], ChunkBody(None, SIZE, send(DATA)))
            )
            await asyncio.sleep(0)
            await daemon.context.write(
                lambda connection: connection.execute("UPDATE uploads SET status = 'canceled'").rowcount
            )
        await waiting

    with pytest.raises(ServiceError) as refused:
        daemon.loop.run(work())
    assert refused.value.code == "session_canceled"
    assert list(daemon.files.parts.iterdir()) == []


def test_a_chunk_on_its_way_keeps_the_sweeper_off(daemon: Daemon) -> None:
    session = open_session(daemon, DATA)
    task = hang(daemon, session["session_id"])
    daemon.advance(4000)
    assert daemon.loop.run(expire_uploads(daemon.context)) == 1
    assert not task.done()
    stop(daemon, task)
    assert daemon.loop.run(expire_uploads(daemon.context)) == 1
    assert daemon.loop.run(expire_uploads(daemon.context)) == 0
    assert list(daemon.files.parts.iterdir()) == []


def test_parts_of_ended_sessions_go_at_the_next_start_and_others_stay(daemon: Daemon) -> None:
    kept, ended = open_session(daemon, DATA), open_session(daemon, DATA)
    put_part(daemon, kept, DATA, 0, 9)
    put_part(daemon, ended, DATA, 0, 9)
    daemon.write(
        lambda connection: (
            connection.execute("UPDATE uploads SET status = 'canceled' WHERE id = ?", (ended["session_id"],)).rowcount
        )
    )
    (daemon.files.parts / "somebody's").write_bytes(b"x")
    (daemon.files.parts / "lost+found").mkdir()
    assert daemon.loop.run(sort_leftovers(daemon.context)) == {"removed": 1}
    assert {path.name for path in daemon.files.parts.iterdir()} == {kept["session_id"], "lost+found", "somebody's"}


class Disk:
    """A disk on which one system call fails."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    def refuse(self, name: str, number: int, calls: int = 1) -> None:
        """The next calls of `os.<name>` on files of the parts fail with this error."""
        real = getattr(os, name)
        left = iter(range(calls))

        def failing(descriptor: int, *rest: object) -> object:
            if "/parts" in str(Path(f"/proc/self/fd/{descriptor}").readlink()) and next(left, None) is not None:
                raise OSError(number, os.strerror(number))
            return real(descriptor, *rest)

        self._monkeypatch.setattr(os, name, failing)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    yield Disk(monkeypatch)
    monkeypatch.undo()


def test_a_full_disk_loses_nothing_that_was_acknowledged(daemon: Daemon, disk: Disk) -> None:
    session = open_session(daemon, DATA)
    put_part(daemon, session, DATA, 0, 99_999)
    disk.refuse("write", errno.ENOSPC, calls=2)
    details_of(put_part(daemon, session, DATA, 100_000, SIZE - 1), "storage_full")
    assert part_told(put(daemon, session, b"", "bytes */*")) == "bytes=0-99999"
    body_of(put_part(daemon, session, DATA, 100_000, SIZE - 1))
    assert stored_bytes(daemon, body_of(finalize(daemon, session), 201)["id"]) == DATA


def test_bytes_whose_sync_failed_are_not_acknowledged(daemon: Daemon, disk: Disk) -> None:
    session = open_session(daemon, DATA)
    put_part(daemon, session, DATA, 0, 99_999)
    disk.refuse("fsync", errno.EIO)
    details_of(put_part(daemon, session, DATA, 100_000, 199_999), "storage_full")
    assert state_of(daemon, session) == ("uploading", 100_000)


def test_bytes_that_a_kill_left_unsynced_are_synced_before_they_are_told(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = open_session(daemon, DATA)
    part = daemon.files.parts / session["session_id"]
    part.write_bytes(DATA[:1000])
    synced: list[str] = []
    real = os.fsync

    def watched(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    assert part_told(put(daemon, session, b"", "bytes */*")) == "bytes=0-999"
    assert synced == [str(part), str(daemon.files.parts)]
    part_told(put(daemon, session, b"", "bytes */*"))
    assert len(synced) == 2
