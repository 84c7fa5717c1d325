"""Tests uploads with takeovers, broken connections, cancels, expiry and disk errors."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from unittest.mock import AsyncMock

import pytest

from svc_daemon.errors import ServiceError
from svc_daemon.operations.ingest import sessions as verbs
from svc_daemon.operations.ingest.sessions import ChunkBody, SessionProgress
from svc_daemon.operations.remove import sweeping
from svc_daemon.operations.remove.sweeping import expire_sessions
from svc_daemon.process.locks import session_lock
from tests.api.answers import body_of, details_of
from tests.api.daemons import Daemon
from tests.api.sessions import finalize, open_session, part_kept, put, put_part, session_path, stored_bytes
from tests.store.folders import watch_syncs

DATA = os.urandom(3_000_000)
SIZE = len(DATA)


async def send(data: bytes, then: Callable[[], Awaitable[object]] | None = None) -> AsyncIterator[bytes]:
    yield data
    if then:
        await then()


def part_of(daemon: Daemon, session: dict[str, Any]) -> str | None:
    return part_kept(put(daemon, session, b"", "bytes */*"))


def finish(daemon: Daemon, session: dict[str, Any], first: int) -> None:
    """Send the remaining bytes, finalize, and check that all bytes are stored."""
    body_of(put_part(daemon, session, DATA, first, SIZE - 1))
    assert stored_bytes(daemon, body_of(finalize(daemon, session), 201)["id"]) == DATA


def hang(daemon: Daemon, session: dict[str, Any], data: bytes = DATA[:10]) -> "asyncio.Task[SessionProgress]":
    """Start a PUT that sends some bytes and then hangs, like one of a client that has died."""

    async def work() -> "asyncio.Task[SessionProgress]":
        sent = asyncio.Event()

        async def wait() -> None:
            sent.set()
            await asyncio.Event().wait()

        body = ChunkBody(None, SIZE, send(data, wait))
        task = asyncio.create_task(verbs.put_bytes(daemon.context, session["session_id"], body))
        await sent.wait()
        return task

    return daemon.loop.run(work())


def code_of(daemon: Daemon, task: "asyncio.Task[SessionProgress]") -> str:
    """Wait for the PUT to fail, and return its error code."""
    daemon.loop.run(asyncio.wait([task]))
    failure = task.exception()
    assert isinstance(failure, ServiceError)
    return str(failure.code)


def test_a_cut_connection_keeps_the_prefix(daemon: Daemon) -> None:
    for cut_at in (1, 999_999, 1_048_576, 2_999_999):
        session = open_session(daemon, DATA)
        body = ChunkBody(None, SIZE, send(DATA[:cut_at], AsyncMock(side_effect=ConnectionResetError)))
        with pytest.raises(ConnectionResetError):
            daemon.loop.run(verbs.put_bytes(daemon.context, session["session_id"], body))
        assert part_of(daemon, session) == f"bytes=0-{cut_at - 1}"
        finish(daemon, session, cut_at)


def test_a_cancel_stops_a_running_put_and_deletes_its_bytes_but_an_early_finalize_does_not(daemon: Daemon) -> None:
    session = open_session(daemon, DATA)
    task = hang(daemon, session)
    details_of(finalize(daemon, session), "blob_not_uploaded")
    assert not task.done()
    assert body_of(daemon.ask("DELETE", session_path(session)))["status"] == "canceled"
    assert (code_of(daemon, task), daemon.part_ids()) == ("request_in_progress", [])


def test_a_put_that_waits_for_a_cancel_is_rejected_and_creates_no_part(daemon: Daemon) -> None:
    """The PUT arrived before the session was canceled, and must not create a new part."""
    session = open_session(daemon, DATA)

    async def work() -> None:
        async with daemon.context.locks.take_over(session_lock(session["session_id"])):
            body = ChunkBody(None, SIZE, send(DATA))
            waiting = asyncio.create_task(verbs.put_bytes(daemon.context, session["session_id"], body))
            await asyncio.sleep(0)
            await daemon.context.write(lambda c: c.execute("UPDATE uploads SET status = 'canceled'").rowcount)
        await waiting

    with pytest.raises(ServiceError) as refused:
        daemon.loop.run(work())
    assert (refused.value.code, daemon.part_ids()) == ("session_canceled", [])


def test_one_round_expires_every_session_that_is_due(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "STEP_LIMIT", 2)
    for _ in range(5):
        put_part(daemon, open_session(daemon, DATA), DATA, 0, 9)
    daemon.advance(4000)
    assert (daemon.loop.run(expire_sessions(daemon.context)), daemon.part_ids()) == (5, [])


def test_the_sweeper_does_not_expire_a_session_with_a_running_put(daemon: Daemon) -> None:
    task = hang(daemon, open_session(daemon, DATA))
    daemon.advance(4000)
    assert daemon.loop.run(expire_sessions(daemon.context)) == 1
    assert not task.done()
    # As a shutdown of the daemon does.
    daemon.loop.call(task.cancel)
    daemon.loop.run(asyncio.wait([task]))
    assert [daemon.loop.run(expire_sessions(daemon.context)) for _ in range(2)] == [1, 0]
    assert daemon.part_ids() == []


@pytest.mark.folders
def test_unsynced_bytes_after_a_kill_are_synced_before_they_are_reported(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = open_session(daemon, DATA)
    (daemon.files.parts / session["session_id"]).write_bytes(DATA[:1000])
    synced = watch_syncs(monkeypatch)
    for _ in range(2):
        assert (part_of(daemon, session), synced) == ("bytes=0-999", [session["session_id"], "parts"])
