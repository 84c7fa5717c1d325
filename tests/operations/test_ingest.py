"""Tests that an upload that is canceled during its commit leaves no row without a blob."""

import sqlite3
import threading
from concurrent.futures import CancelledError

import pytest

from svc_daemon.databases.contract import Connection
from svc_daemon.store.sources import list_all_ids
from tests.acceptance.installations import PATIENCE_S
from tests.api.answers import body_of
from tests.api.daemons import NOTES, Daemon


def rows_and_blobs(daemon: Daemon) -> tuple[set[str], set[str]]:
    return daemon.read(list_all_ids), set(daemon.blob_names())


@pytest.mark.parametrize("begun", [False, pytest.param(True, marks=pytest.mark.sqlite)])
def test_an_upload_that_is_canceled_during_its_commit_leaves_no_row_without_a_blob(daemon: Daemon, begun: bool) -> None:
    """A shutdown that times out cancels requests, whose commits may be queued or running."""
    may_commit, inside = threading.Event(), threading.Event()

    def slow(*_: object) -> None:
        inside.set()
        assert may_commit.wait(PATIENCE_S)

    if begun:

        def hold(connection: Connection) -> None:
            assert isinstance(connection, sqlite3.Connection)
            connection.create_function("hold_on", 0, slow)
            connection.execute("CREATE TEMP TRIGGER held AFTER INSERT ON main.sources BEGIN SELECT hold_on(); END")

        daemon.write(hold)
    else:
        daemon.context.database.submit(slow)
    asked = daemon.asking("POST", "/v1/buckets/inbox/files", files={"file": ("a.md", NOTES)})
    uploading = daemon.loop.begin(asked())
    daemon.wait(lambda: inside.is_set() and bool(rows_and_blobs(daemon)[1]), "the blob is stored")
    uploading.cancel()
    with pytest.raises(CancelledError):
        uploading.result(PATIENCE_S)
    for _ in range(5):
        # Let the cancellation reach the commit.
        daemon.loop.call(lambda: None)
    may_commit.set()
    body_of(daemon.ask("PUT", "/v1/buckets/afterwards"), 201)
    rows, blobs = rows_and_blobs(daemon)
    assert rows <= blobs and (not begun or len(rows) == 1)
