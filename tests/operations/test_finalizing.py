"""Tests finalizing upload sessions after kills, in races, on disk errors, and in a bucket that was archived."""

import asyncio
import errno
import os
from concurrent.futures import CancelledError
from itertools import count
from typing import Any
from unittest.mock import Mock

import pytest

from svc_daemon.databases.sqlite import SqliteDatabase
from svc_daemon.operations.finalizing import Finalized, finalize_all
from svc_daemon.operations.setting_aside import sort_leftovers
from svc_daemon.process import locks
from svc_daemon.store.uploads import UploadRow, get_upload, list_uploads
from tests.acceptance.installations import PATIENCE_S
from tests.api import sessions
from tests.api.answers import body_of, details_of
from tests.api.daemons import NOTES, Daemon
from tests.api.sessions import finalize, finalize_batch, open_batch, open_session, outcomes, put, state_of, stored_bytes

FILES = [(f"f{number}", b"Crane %d.\n" % number) for number in range(5)]


def filled(daemon: Daemon) -> dict[str, Any]:
    """Open a batch and send all of its bytes."""
    batch = open_batch(daemon, FILES)
    for name, data in FILES:
        body_of(put(daemon, batch["by_id"][name], data))
    return batch


def uploads_of(daemon: Daemon, batch: dict[str, Any]) -> list[UploadRow]:
    return daemon.read(lambda connection: list_uploads(connection, batch["batch_id"]))


@pytest.mark.sqlite
@pytest.mark.folders
def test_a_kill_between_linking_the_blob_and_the_commit_loses_no_bytes(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = open_session(daemon)
    body_of(put(daemon, session, NOTES))
    row = daemon.read(lambda connection: get_upload(connection, daemon.team_id, session["session_id"]))
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


def test_finalizing_with_stale_rows_replays_and_creates_no_second_source(daemon: Daemon) -> None:
    batch = filled(daemon)
    stale = uploads_of(daemon, batch)
    made = finalize_batch(daemon, batch)["finalized"]
    outcome = daemon.loop.run(finalize_all(daemon.context, stale, daemon.admin))
    assert [one.source.id for one in outcome if one.source] == [item["knowledge_id"] for item in made]
    assert all(one.replayed for one in outcome)
    assert daemon.count("sources") == len(daemon.blob_names()) == len(FILES)


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
