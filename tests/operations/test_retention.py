"""Tests the retention of ended tasks, sessions, batches and webhook deliveries."""

from dataclasses import replace

import pytest

from svc_daemon.offline_verify import verify_directory
from svc_daemon.operations import sweeping
from svc_daemon.operations.sweeping import expire_uploads
from tests.api.answers import body_of
from tests.api.daemons import NOTES, UNLIMITED, Daemon
from tests.api.fixtures import MakeDaemon
from tests.api.sessions import batch_status, finalize, finalize_batch, open_batch, open_session, put, session_path
from tests.api.sites import Receiver, Site, hosting, receiving

DAY_S = 86_400
TABLES = ("uploads", "batches", "tasks", "cascades", "deliveries", "delivery_attempts")


def counts(daemon: Daemon) -> dict[str, int]:
    return {table: daemon.count(table) for table in TABLES}


def forget(daemon: Daemon) -> int:
    return daemon.loop.run(sweeping.forget_ended(daemon.context))


def import_called(daemon: Daemon, site: Site, receiver: Receiver, path: str) -> str:
    """Import a page into `inbox`, and wait until the call of its webhook is recorded."""
    body = {"url": site.url(path), "webhook": {"url": receiver.url}}
    before = daemon.count("delivery_attempts")
    source_id = str(daemon.post("/v1/buckets/inbox/files/import", 201, json=body)["id"])
    daemon.wait_ready(source_id)
    daemon.wait(lambda: daemon.count("delivery_attempts") > before, "the call is recorded")
    return source_id


def test_deliveries_and_tasks_are_kept_until_their_retention_after_the_source_is_deleted(working: Daemon) -> None:
    with hosting() as site, receiving() as receiver:
        kept, gone = (import_called(working, site, receiver, path) for path in ("/notes.md", "/paper.pdf"))
    working.delete(f"/v1/sources/{gone}")
    working.stop()
    assert (working.count("deliveries"), working.count("tasks")) == (2, 2)
    for days, forgotten in ((0, 0), (29, 0), (2, 2)):
        working.advance(days * DAY_S)
        assert forget(working) == forgotten, days
    assert counts(working) == dict.fromkeys(TABLES, 0) | {"tasks": 1, "deliveries": 1, "delivery_attempts": 1}
    (delivery,) = working.show("/v1/webhooks/deliveries")["deliveries"]
    assert (delivery["source_id"], forget(working)) == (kept, 0)


def test_ended_sessions_and_batches_are_deleted_after_their_retention_but_not_their_sources(working: Daemon) -> None:
    session, canceled = open_session(working), open_session(working)
    put(working, session, NOTES)
    source_id = body_of(finalize(working, session), 201)["id"]
    body_of(working.ask("DELETE", session_path(canceled)))
    files = [("a", NOTES), ("x", b"xyz")]
    whole, half = open_batch(working, files), open_batch(working, files)
    for batch, name, data in ((whole, *files[0]), (whole, *files[1]), (half, *files[0])):
        put(working, batch["by_id"][name], data)
    made = [source_id] + [each["knowledge_id"] for each in finalize_batch(working, whole)["finalized"]]
    working.wait_ready(*made)
    working.stop()
    working.advance(31 * DAY_S)
    # A file of `half` was never sent, so that batch has not ended until the sweeper expires the file's session.
    assert forget(working) == 3
    assert batch_status(working, half)["terminal"]
    working.loop.run(expire_uploads(working.context))
    assert (forget(working), counts(working)) == (1, dict.fromkeys(TABLES, 0) | {"tasks": 3})
    assert all(working.show(f"/v1/sources/{each}")["ready"] for each in made)


@pytest.mark.index_files
@pytest.mark.sqlite
@pytest.mark.folders
def test_after_the_retention_a_deleted_bucket_leaves_no_rows_and_no_problems(working: Daemon) -> None:
    working.make_bucket("gone")
    working.add_ready(bucket="gone")
    working.add_ready()
    working.delete("/v1/buckets/gone", force="true")
    working.wait(lambda: working.count("buckets") == 1, "the bucket is deleted")
    working.stop()
    working.advance(31 * DAY_S)
    forget(working)
    assert counts(working) == dict.fromkeys(TABLES, 0) | {"tasks": 1}
    working.close()
    assert list(verify_directory(working.files.root, read_data=True, repair=False).lines())[:-1] == []


def test_sessions_are_kept_as_long_as_idempotency_keys(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon(limits=replace(UNLIMITED, history_days=1, idempotency_days=7))
    daemon.make_bucket()
    body_of(daemon.ask("DELETE", session_path(open_session(daemon))))
    for days, forgotten in ((7, 0), (2, 1)):
        daemon.advance(days * DAY_S)
        assert forget(daemon) == forgotten, days
