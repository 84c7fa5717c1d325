"""What the last run knew of a mapping: one SQLite file with a row a file, a row a batch on its way, and a few facts.

Theory of operation. The index saves work and nothing depends on it: lost, it is made again from the bucket's sources.
A batch is written down before it is sent and taken out in the transaction that writes its files' rows; what a run that
was killed left here is finished by the next one, with the same request, so that nothing is sent or stored twice.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from svc_cli.errors import UsageError
from svc_cli.sync.snapshots import Fingerprint

#: A file whose time of change is so near the moment of its hashing may have been written once more within the clock's
#: grain; git's rule for "racily clean".
RACY_NS = 2_000_000_000
#: The file is broken, no database, or has other tables than ours.
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR})
#: The number of migrations that a file of this release has seen.
SCHEMA_VERSION = 1


class State(StrEnum):
    """What became of a file."""

    #: Its source is there, and not settled yet.
    SENT = "sent"
    READY = "ready"
    #: Its source has failed.
    FAILED = "failed"
    #: Left out for what is in it.
    SKIPPED = "skipped"


class Row(NamedTuple):
    """One file as the last run left it; its first fields are its fingerprint."""

    size_bytes: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    device: int
    #: When it was hashed, by the clock that the file system uses.
    hashed_ns: int
    #: Below the root, composed.
    path: str
    #: As the file system spells it.
    raw: str
    sha256: str
    #: The newest source of this path.
    source_id: str | None
    #: The source that holds the path's place in the bucket; another one only while the newest is not ready.
    place_id: str | None
    state: str
    #: JSON of the error of a source that failed; the reason of a skip.
    reason: str | None

    def is_same(self, fingerprint: Fingerprint) -> bool:
        """Whether the file is what was hashed, by all that can be told without reading it."""
        return self[:5] == fingerprint and self.mtime_ns < self.hashed_ns - RACY_NS

    @property
    def error(self) -> dict[str, Any] | None:
        """The error of FAILED."""
        return json.loads(self.reason) if self.reason and self.state == State.FAILED else None


@dataclass(frozen=True, slots=True)
class Journaled:
    """A batch that was begun: its request as sent, and the rows that its files are to become."""

    key: str
    body: dict[str, Any]
    #: By client_file_id.
    rows: dict[str, Row]


class Index:
    """One mapping's file. Used from one thread at a time."""

    def __init__(self, path: Path) -> None:
        """Open the file, made where there is none, and anew where it is damaged.

        Raises UsageError for one of a newer release, and where the system refuses it.
        """
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            self._connection = _open(path)
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", None) not in _DAMAGED:
                raise unwritable(path, error) from error
            self._connection = _open_anew(path)
        except (ValueError, TypeError):
            self._connection = _open_anew(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def load(self) -> dict[str, Row]:
        """Every row, by path."""
        cursor = self._connection.execute(f"SELECT {_COLUMNS} FROM files")  # noqa: S608 - our own names
        return {row.path: row for row in map(Row._make, cursor)}

    def load_within(self, paths: Iterable[str]) -> dict[str, Row]:
        """The rows of these paths, and of those below them."""
        query = f"SELECT {_COLUMNS} FROM files WHERE path = ? OR (path > ? AND path < ?)"  # noqa: S608 - our own names
        found: dict[str, Row] = {}
        for path in paths:
            # "0" sorts right behind "/".
            cursor = self._connection.execute(query, (path, f"{path}/", f"{path}0"))
            found |= {row.path: row for row in map(Row._make, cursor)}
        return found

    def save(self, rows: Iterable[Row]) -> None:
        """Insert or replace rows."""
        with self._transaction():
            self._put(rows)

    def replace_all(self, rows: Iterable[Row]) -> None:
        """Make these the only rows."""
        with self._transaction():
            self._connection.execute("DELETE FROM files")
            self._put(rows)

    def remove(self, paths: Iterable[str]) -> None:
        """Forget files."""
        with self._transaction():
            self._connection.executemany("DELETE FROM files WHERE path = ?", ((path,) for path in paths))

    def move(self, path: str, row: Row) -> None:
        """Keep a file under its new path alone."""
        with self._transaction():
            self._connection.execute("DELETE FROM files WHERE path = ?", (path,))
            self._put([row])

    def clear(self) -> None:
        """Forget everything: the bucket is another one."""
        with self._transaction():
            for table in ("files", "batches", "facts"):
                self._connection.execute(f"DELETE FROM {table}")  # noqa: S608 - our own names

    def begin_batch(self, batch: Journaled) -> None:
        """Write a batch down before it is sent."""
        rows = json.dumps({name: list(row) for name, row in batch.rows.items()})
        with self._transaction():
            self._connection.execute(
                "INSERT OR REPLACE INTO batches (key, body, files) VALUES (?, ?, ?)",
                (batch.key, json.dumps(batch.body), rows),
            )

    def finish_batch(self, key: str, rows: Iterable[Row]) -> None:
        """Take a batch out and write what became of its files."""
        with self._transaction():
            self._put(rows)
            self._connection.execute("DELETE FROM batches WHERE key = ?", (key,))

    def list_batches(self) -> list[Journaled]:
        """The batches that were begun and not finished."""
        return _read_batches(self._connection)

    def find_fact(self, name: str) -> str | None:
        found = self._connection.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return str(found[0]) if found else None

    def set_fact(self, name: str, value: str) -> None:
        with self._transaction():
            self._connection.execute("INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)", (name, value))

    def _put(self, rows: Iterable[Row]) -> None:
        marks = ", ".join("?" * len(Row._fields))
        self._connection.executemany(f"INSERT OR REPLACE INTO files ({_COLUMNS}) VALUES ({marks})", rows)  # noqa: S608

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")


_COLUMNS = ", ".join(Row._fields)


def _rows(stored: dict[str, list[Any]]) -> dict[str, Row]:
    return {name: Row._make(values) for name, values in stored.items()}


def _read_batches(connection: sqlite3.Connection) -> list[Journaled]:
    found = connection.execute("SELECT key, body, files FROM batches").fetchall()
    return [Journaled(key, json.loads(body), _rows(json.loads(files))) for key, body, files in found]


def unwritable(path: Path, error: sqlite3.Error) -> UsageError:
    """What to say where the system, or a full disk, refuses the file."""
    return UsageError(
        f"{path}: {error}.",
        code="svc_file_refused",
        hint="make room, or make the folder writable, and run it again; what was sent is safe in the bucket.",
    )


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        _prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    # A power cut may cost the last rows, which the bucket knows too.
    connection.execute("PRAGMA synchronous = NORMAL")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > SCHEMA_VERSION:
        raise UsageError(f"{path} was made by a newer release of svc.", hint="install that release.")
    if version < SCHEMA_VERSION:
        _migrate(connection)
    _read_through(connection)


def _read_through(connection: sqlite3.Connection) -> None:
    """Touch every page: damage is to show now, while the file can still be made anew, and not in the middle of a run.

    Raises sqlite3.Error, ValueError or TypeError.
    """
    connection.execute(f"SELECT count(*) FROM (SELECT {_COLUMNS} FROM files)").fetchone()  # noqa: S608 - our own names
    connection.execute("SELECT name, value FROM facts").fetchall()
    _read_batches(connection)


def _open_anew(path: Path) -> sqlite3.Connection:
    _set_aside(path)
    return _open(path)


def _set_aside(path: Path) -> None:
    """Nothing depends on an index; what is left of a damaged one is kept for whoever wants to know."""
    path.replace(path.with_suffix(".damaged"))
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _migrate(connection: sqlite3.Connection) -> None:
    """Bring the schema up to date; only then is it worth loading the library, which takes 60 ms."""
    import sqlite_utils

    from svc_cli.sync.migrations import sync

    sync.apply(sqlite_utils.Database(connection))
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
