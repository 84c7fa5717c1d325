"""A small table of notes for the tests of databases, with functions that write and read it."""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from svc_daemon.databases.contract import Connection, Database
from tests.acceptance.installations import PATIENCE_S


def prepare(connection: Connection) -> None:
    connection.execute("CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, text TEXT)")


def insert(number: int, text: str = "") -> Callable[[Connection], int]:
    def work(connection: Connection) -> int:
        connection.execute("INSERT INTO notes (id, text) VALUES (:id, :text)", {"id": number, "text": text})
        return number

    return work


def ids(connection: Connection) -> list[int]:
    return [row["id"] for row in connection.execute("SELECT id FROM notes ORDER BY id").fetchall()]


@contextmanager
def held(start: Callable[[Callable[[Connection], None]], "Future[None]"]) -> Iterator["Future[None]"]:
    """Run work on a connection, started by `start` as a read or a write, until the block ends."""
    begun, let_go = threading.Event(), threading.Event()

    def hold(connection: Connection) -> None:
        ids(connection)
        begun.set()
        assert let_go.wait(PATIENCE_S)

    started = start(hold)
    assert begun.wait(PATIENCE_S)
    try:
        yield started
    finally:
        let_go.set()
    started.result(PATIENCE_S)


def busy_writer(database: Database) -> AbstractContextManager["Future[None]"]:
    """Keep the writer busy during the block, so that work submitted in the block is queued as a group."""
    return held(database.submit)


def submit_all(database: Database, works: list[Callable[[Connection], Any]]) -> list["Future[Any]"]:
    with busy_writer(database):
        return [database.submit(work) for work in works]


def ids_in(path: Path) -> list[int]:
    """Check the integrity of the file over a connection of its own, and return the ids in it."""
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    found = ids(connection)
    connection.close()
    return found
