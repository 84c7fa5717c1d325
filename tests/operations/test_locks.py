"""Tests the locks of a daemon, and that work whose locks were lost changes nothing."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from svc_daemon.errors import ServiceError
from svc_daemon.operations.ingest import batches
from svc_daemon.operations.ingest import sessions as verbs
from svc_daemon.operations.ingest.finalizing import finalize_all
from svc_daemon.operations.shared.authorization import authenticate
from svc_daemon.process import locks as rules
from svc_daemon.process.locks import LocalLocks, session_lock
from svc_daemon.store.rows import sessions
from svc_daemon.store.rows.batches import get_batch
from svc_daemon.store.rows.sessions import SessionRow, get_session
from tests.acceptance.installations import PATIENCE_S
from tests.api.answers import body_of
from tests.api.daemons import NOTES, Daemon
from tests.api.sessions import finalize, open_batch, open_session, put, stored_bytes
from tests.operations.locks_suite import Holder, LocksContract, Pair, free

pytestmark = pytest.mark.anyio


class TestLocalLocks(LocksContract):
    @pytest.fixture
    def pair(self) -> Pair:
        locks = LocalLocks()
        return locks, locks


async def test_of_many_takeovers_in_one_process_the_last_one_gets_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "TAKEOVER_S", PATIENCE_S)
    locks = LocalLocks()
    *others, last = [Holder(locks) for _ in range(8)]
    await last.entered.wait()
    assert {await holder.code() for holder in others} == {"request_in_progress"}
    assert not last.running.done()
    await last.end()
    assert await free(locks, "upl_a") == ["upl_a"]


def row_of(daemon: Daemon, session_id: str) -> SessionRow:
    return daemon.read(lambda connection: get_session(connection, daemon.team_id, session_id))


@contextmanager
def renewed_meanwhile(daemon: Daemon, session_id: str) -> Iterator[None]:
    """Renew the session as another node would: after the reads of the operation in the block, before its writes."""
    is_read = threading.Event()

    def renew(connection: object) -> None:
        assert is_read.wait(PATIENCE_S)
        sessions.renew_session(connection, session_id, "2999", "2999")  # type: ignore[arg-type]

    renewing = daemon.context.database.submit(renew)
    try:
        yield
    finally:
        is_read.set()
        renewing.result(PATIENCE_S)


def test_finalizing_a_session_that_was_renewed_meanwhile_creates_no_source(daemon: Daemon) -> None:
    session = open_session(daemon)
    body_of(put(daemon, session, NOTES))
    row = row_of(daemon, session["session_id"])
    with renewed_meanwhile(daemon, row.id):
        finalizing = daemon.loop.begin(finalize_all(daemon.context, [row], daemon.admin))
        daemon.wait(lambda: bool(daemon.blob_names()), "the bytes are linked")
    (outcome,) = finalizing.result(PATIENCE_S)
    assert (outcome.is_pending, daemon.count("sources"), daemon.blob_names()) == (True, 0, [])
    assert stored_bytes(daemon, body_of(finalize(daemon, session), 201)["id"]) == NOTES


@pytest.mark.folders
def test_abandoning_a_batch_keeps_a_session_that_was_renewed_meanwhile(daemon: Daemon) -> None:
    lot = open_batch(daemon, [("f00", NOTES)])
    session_id = lot["by_id"]["f00"]["session_id"]
    (daemon.files.parts / session_id).write_bytes(NOTES[:5])
    key, lock = authenticate(daemon.context, f"Bearer {daemon.key}"), session_lock(session_id)
    batch = daemon.read(lambda connection: get_batch(connection, daemon.team_id, lot["batch_id"]))
    with renewed_meanwhile(daemon, session_id):
        ending = daemon.loop.begin(batches.finalize_batch(daemon.context, key, batch, abandon=True))
        daemon.wait(lambda: not daemon.loop.run(free(daemon.context.locks, lock)), "the session is held")
    assert [reason for _, reason in ending.result(PATIENCE_S).pending] == ["blob_not_uploaded"]
    assert (row_of(daemon, session_id).status, (daemon.files.parts / session_id).read_bytes()) == ("open", NOTES[:5])


def test_bytes_sent_to_a_session_that_another_node_has_canceled_are_not_acknowledged(daemon: Daemon) -> None:
    session_id = open_session(daemon)["session_id"]
    node = replace(daemon.context, locks=LocalLocks())

    async def work() -> None:
        sent, rest = asyncio.Event(), asyncio.Event()

        async def chunks() -> AsyncIterator[bytes]:
            yield NOTES[:5]
            sent.set()
            await rest.wait()
            yield NOTES[5:]

        body = verbs.ChunkBody(None, len(NOTES), chunks())
        putting = asyncio.create_task(verbs.put_bytes(daemon.context, session_id, body))
        await sent.wait()
        await verbs.cancel_session(node, row_of(daemon, session_id))
        rest.set()
        await putting

    with pytest.raises(ServiceError) as refused:
        daemon.loop.run(work())
    assert refused.value.code == "request_in_progress"
