"""Tests finalizing sessions and batches, and packs that other requests interrupt."""

import asyncio
import errno
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable
from concurrent.futures import CancelledError
from dataclasses import replace
from itertools import count
from typing import Any
from unittest.mock import Mock

import pytest

from svc_daemon.core.times import Clock
from svc_daemon.databases.sqlite import SqliteDatabase
from svc_daemon.errors import ServiceError
from svc_daemon.operations.ingest import batches
from svc_daemon.operations.ingest.finalizing import Finalized, finalize_all
from svc_daemon.operations.ingest.packs import authorize_pack, put_pack
from svc_daemon.operations.ingest.sessions import ChunkBody
from svc_daemon.operations.remove.setting_aside import sort_leftovers
from svc_daemon.operations.shared.authorization import authenticate
from svc_daemon.process import locks
from svc_daemon.store.rows.batches import get_batch
from svc_daemon.store.rows.sessions import SessionRow, get_session, list_sessions
from tests.acceptance.installations import PATIENCE_S
from tests.api import sessions
from tests.api.answers import body_of, details_of
from tests.api.daemons import NOTES, Daemon
from tests.api.sessions import (
    finalize,
    finalize_batch,
    open_batch,
    open_pack,
    open_session,
    outcomes,
    part_kept,
    path_of,
    put,
    state_of,
    stored_bytes,
)

FILES = [(f"f{number}", b"Crane %d.\n" % number) for number in range(5)]


def filled(daemon: Daemon) -> dict[str, Any]:
    """Open a batch and send all of its bytes."""
    batch = open_batch(daemon, FILES)
    for name, data in FILES:
        body_of(put(daemon, batch["by_id"][name], data))
    return batch


def uploads_of(daemon: Daemon, batch: dict[str, Any]) -> list[SessionRow]:
    return daemon.read(lambda connection: list_sessions(connection, batch["batch_id"]))


@pytest.mark.sqlite
@pytest.mark.folders
def test_a_kill_between_linking_the_blob_and_the_commit_loses_no_bytes(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = open_session(daemon)
    body_of(put(daemon, session, NOTES))
    row = daemon.read(lambda connection: get_session(connection, daemon.team_id, session["session_id"]))
    with monkeypatch.context() as patched, pytest.raises(CancelledError):
        patched.setattr(SqliteDatabase, "submit", Mock(side_effect=asyncio.CancelledError))
        daemon.loop.run(finalize_all(daemon.context, [row], daemon.admin))
    assert (len(daemon.blob_names()), daemon.count("sources")) == (1, 0)
    assert daemon.loop.run(sort_leftovers(daemon.context)) == {"removed": 1}
    assert (set(daemon.blob_names()), state_of(daemon, session)[0]) == (set(), "uploaded")
    assert stored_bytes(daemon, body_of(finalize(daemon, session), 201)["id"]) == NOTES


@pytest.mark.folders
def test_a_finalize_after_a_kill_that_followed_the_commit_is_replayed(daemon: Daemon) -> None:
    session = open_session(daemon)
    body_of(put(daemon, session, NOTES))
    source = body_of(finalize(daemon, session), 201)
    (daemon.files.parts / session["session_id"]).write_bytes(NOTES)  # as if the kill came before the part was removed
    assert body_of(finalize(daemon, session))["id"] == source["id"]
    assert daemon.loop.run(sort_leftovers(daemon.context)) == {"removed": 1}
    assert stored_bytes(daemon, source["id"]) == NOTES


@pytest.mark.rule("finalize.repeated")
def test_concurrent_finalizes_create_each_source_once(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "TAKEOVER_S", PATIENCE_S)  # none of them may time out
    batch = filled(daemon)
    members = uploads_of(daemon, batch)

    async def work() -> list[list[Finalized]]:
        whole = [finalize_all(daemon.context, members, daemon.admin) for _ in range(5)]
        single = [finalize_all(daemon.context, [member], daemon.admin) for member in reversed(members)]
        return list(await asyncio.gather(*whole, *single))

    ended = [one for outcomes in daemon.loop.run(work()) for one in outcomes if one.source]
    fresh = [one.source.id for one in ended if one.source and not one.replayed]
    every = {one.source.id for one in ended if one.source}
    assert len(fresh) == len(set(fresh)) == len(every) == len(FILES)
    assert (set(daemon.blob_names()), set(daemon.part_ids())) == (every, set())


@pytest.mark.parametrize("name", ["link", "fsync"])
@pytest.mark.folders
def test_a_disk_error_while_finalizing_a_batch_leaves_no_blob(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    batch = filled(daemon)
    real, calls = getattr(os, name), count(1)

    def failing(*arguments: object) -> object:
        if name == "fsync" or next(calls) == 3:
            raise OSError(errno.ENOSPC, "full")
        return real(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(os, name, failing)
        details_of(sessions.ask_finalize(daemon, batch), "storage_full")
    kept = (len(daemon.blob_names()), daemon.count("sources"), len(daemon.part_ids()))
    assert kept == (0, 0, len(FILES))
    if name == "link":
        assert set(outcomes(finalize_batch(daemon, batch)).values()) == {"finalized"}


@pytest.mark.folders
def test_bytes_that_do_not_match_the_declared_hash_create_no_source(daemon: Daemon) -> None:
    """The daemon was killed after it received the last byte and before it checked the hash."""
    batch = open_batch(daemon, FILES)
    wrong = open_session(daemon, sha256="0" * 64)
    (daemon.files.parts / wrong["session_id"]).write_bytes(NOTES)
    details_of(finalize(daemon, wrong), "checksum_mismatch")
    assert (state_of(daemon, wrong), daemon.count("sources")) == (("pending", 0), 0)
    daemon.write(
        lambda connection: connection.execute("UPDATE uploads SET sha256 = :sha256", {"sha256": "0" * 64}).rowcount
    )
    (daemon.files.parts / batch["by_id"][FILES[0][0]]["session_id"]).write_bytes(FILES[0][1])
    assert (set(outcomes(finalize_batch(daemon, batch)).values()), set(daemon.blob_names())) == ({"pending"}, set())


@pytest.mark.rule("batch.counters", "finalize.failed")
def test_finalizing_fails_if_the_bucket_was_archived_meanwhile(daemon: Daemon) -> None:
    batch = filled(daemon)
    members = uploads_of(daemon, batch)
    daemon.patch("/v1/buckets/inbox", status="archived")
    ended = daemon.loop.run(finalize_all(daemon.context, members, daemon.admin))
    assert {one.error.code for one in ended if one.error} == {"bucket_not_found"}
    assert (set(daemon.blob_names()), set(daemon.part_ids())) == (set(), set())
    status = sessions.batch_status(daemon, batch)
    assert (status["status"], status["counters"]["failed"]) == ("failed", len(FILES))


#: The files have 10 bytes each.
MANY = [(f"f{number:02}", b"Crane %02d.\n" % number) for number in range(60)]
STEP = 25


@pytest.mark.rule("finalize.pending")
def test_files_beyond_the_time_budget_of_a_finalize_are_pending(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "STEP_BYTES", STEP * 10)
    lot = open_batch(daemon, MANY)
    for name, data in MANY[1:]:
        body_of(put(daemon, lot["by_id"][name], data))
    readings = count(0, int(daemon.limits.finalize_seconds * 0.7))
    slow = Clock(now=daemon.context.clock.now, monotonic=lambda: next(readings))
    context = replace(daemon.context, clock=slow)
    key = authenticate(context, f"Bearer {daemon.key}")
    batch = daemon.read(lambda connection: get_batch(connection, daemon.team_id, lot["batch_id"]))
    report = daemon.loop.run(batches.finalize_batch(context, key, batch, abandon=False))
    assert (report.status, len(report.outcomes)) == ("partial", STEP)
    reasons = {session.client_file_id: reason for session, reason in report.pending}
    assert reasons.pop("f00") == "blob_not_uploaded"
    left = len(MANY) - 1 - STEP
    assert list(reasons.values()) == ["time_budget_exhausted"] * left
    counted = {"replayed": STEP, "finalized": left, "pending": 1}
    assert Counter(outcomes(finalize_batch(daemon, lot)).values()) == counted
    assert daemon.count("sources") == len(MANY) - 1


ITEMS = [(f"f{number}", b"Crane %d.\n" % number * 20) for number in range(12)]
WHOLE = b"".join(data for _, data in ITEMS)
#: In the middle of the fourth file.
CUT = sum(len(data) for _, data in ITEMS[:3]) + 70


def begin(daemon: Daemon, batch: dict[str, Any]) -> "asyncio.Task[object]":
    """Start a PUT whose client sends the first bytes of the pack and then hangs."""

    async def dead(sent: asyncio.Event) -> AsyncIterator[bytes]:
        yield WHOLE[:CUT]
        sent.set()
        await asyncio.Event().wait()

    async def work() -> "asyncio.Task[object]":
        sent, batch_id = asyncio.Event(), batch["batch_id"]
        members = authorize_pack(daemon.context, batch_id, path_of(batch).rpartition("/")[2])
        sending = ChunkBody(None, len(WHOLE), dead(sent))
        task: asyncio.Task[object] = asyncio.create_task(put_pack(daemon.context, batch_id, members, sending))
        await sent.wait()
        return task

    return daemon.loop.run(work())


NEWCOMERS: dict[str, Callable[[Daemon, dict[str, Any]], object]] = {
    "the pack again": lambda daemon, batch: put(daemon, batch, b"", "bytes */*"),
    "an item that it has begun": lambda daemon, batch: put(daemon, batch["by_id"]["f3"], ITEMS[3][1]),
    "an item that it has not reached": lambda daemon, batch: put(daemon, batch["by_id"]["f9"], ITEMS[9][1]),
    "a cancel": lambda daemon, batch: daemon.ask("DELETE", sessions.session_path(batch["by_id"]["f11"])),
}


@pytest.mark.rule("pack.single")
@pytest.mark.parametrize("newcomer", NEWCOMERS)
def test_a_request_for_an_item_of_a_pack_interrupts_the_pack_which_can_be_resumed(
    daemon: Daemon, newcomer: str
) -> None:
    batch = open_pack(daemon, ITEMS)
    task = begin(daemon, batch)
    NEWCOMERS[newcomer](daemon, batch)
    error = task.exception() if task.done() else None
    assert isinstance(error, ServiceError)
    assert (error.code, error.rule.retryable) == ("request_in_progress", True)
    kept = CUT if newcomer != "an item that it has begun" else sum(len(data) for _, data in ITEMS[:4])
    assert part_kept(put(daemon, batch, b"", "bytes */*")) == f"bytes=0-{kept - 1}"
    body_of(put(daemon, batch, WHOLE[kept:], f"bytes {kept}-{len(WHOLE) - 1}/*"))
    ended = finalize_batch(daemon, batch)
    failed = {"f11": "failed"} if newcomer == "a cancel" else {}
    assert outcomes(ended) == dict.fromkeys(dict(ITEMS), "finalized") | failed
    for item in ended["finalized"]:
        assert stored_bytes(daemon, item["knowledge_id"]) == dict(ITEMS)[item["client_file_id"]]


def test_a_finalize_while_a_pack_is_sent_finalizes_the_items_that_have_arrived(daemon: Daemon) -> None:
    batch = open_pack(daemon, ITEMS)
    body_of(put(daemon, batch["by_id"]["f5"], ITEMS[5][1]))
    task = begin(daemon, batch)
    first = outcomes(finalize_batch(daemon, batch))
    assert [name for name, place in first.items() if place == "finalized"] == ["f0", "f1", "f2", "f5"]
    assert isinstance(task.exception(), ServiceError)
    assert part_kept(put(daemon, batch, b"", "bytes */*")) == f"bytes=0-{CUT - 1}"
    body_of(finalize(daemon, batch["by_id"]["f0"]))
    body_of(put(daemon, batch, WHOLE))
    assert set(outcomes(finalize_batch(daemon, batch)).values()) == {"finalized", "replayed"}


def test_abandoning_a_batch_while_its_pack_is_sent_keeps_only_the_items_that_have_arrived(daemon: Daemon) -> None:
    batch = open_pack(daemon, ITEMS)
    task = begin(daemon, batch)
    ended = outcomes(finalize_batch(daemon, batch, mode="abandon_pending"))
    # The pack is interrupted first, so the items that it has completed count.
    assert isinstance(task.exception(), ServiceError)
    assert ended == dict.fromkeys(dict(ITEMS), "failed") | dict.fromkeys(["f0", "f1", "f2"], "finalized")
    assert daemon.part_ids() == []
