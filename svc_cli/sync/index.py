"""The sync index: an SQLite file with a row for each file that the last sync of a folder found.

A lost index is rebuilt from the bucket's sources, apart from which of them were sent from this folder. The index also
records each batch of files before the batch is sent. If a run is killed, the next run finishes the recorded batches.

It is plain `sqlite3`. With sqlite-utils, as the daemon's state has it, each `svc sync` would take 60 to 150 ms of a
processor to import it instead of 4, and with 100,000 rows 1.8 s to write them instead of 0.5 and 0.9 to read them
instead of 0.45, to save 17 lines. What it is good at is not needed: an older index is replaced as if it were lost.
"""

import contextlib
import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from svc_cli.errors import NoRoom, SvcError, SyncRunning, UsageError, refused_by_system
from svc_cli.private_files import lock as lock_file
from svc_cli.transfer.contents import Fingerprint
from svc_cli.transfer.rooted_files import Way
from svc_daemon.wire.light.parsing import parse_json

#: If a file was modified within this time before it was hashed, the next run hashes it again: a change after the
#: hashing may have left the modification time the same.
RACY_NS = 2_000_000_000
#: The most ids of ended sources that are kept.
MOST_ENDED = 100_000
#: SQLite result codes for a damaged file.
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR})
#: Those for a full disk, which SQLite reports as an I/O error in the middle of a write.
_FULL = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE})
#: The errors of a value that can't be stored, unlike those of the file or the disk.
UNSTORABLE = (ArithmeticError, ValueError, TypeError, sqlite3.InterfaceError, sqlite3.ProgrammingError)
#: Keys of the table `facts`: the bucket's id, its revision when last listed, the folder's device and inode, its owner
#: with the links on the way to it, the folders in it where another disk begins, and the tags that the mapping gave.
BUCKET_ID, REVISION, ROOT, WAY, MOUNTS, TAGS = "bucket_id", "revision", "root", "way", "mounts", "tags"
#: The version of the schema.
SCHEMA_VERSION = 2
_SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS files (
  size_bytes INTEGER NOT NULL,
  mtime_ns INTEGER NOT NULL,
  ctime_ns INTEGER NOT NULL,
  inode INTEGER NOT NULL,
  device INTEGER NOT NULL,
  hashed_ns INTEGER NOT NULL,
  path TEXT PRIMARY KEY,
  raw TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  source_id TEXT,
  place_id TEXT,
  state TEXT NOT NULL,
  reason TEXT
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batches (key TEXT PRIMARY KEY, body TEXT NOT NULL, files TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
-- The sources that were sent from this folder, and the files that are being sent.
CREATE TABLE IF NOT EXISTS sent (source_id TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sending (path TEXT, sha256 TEXT, PRIMARY KEY (path, sha256)) WITHOUT ROWID;
PRAGMA user_version = {SCHEMA_VERSION};
COMMIT;
"""


class State(StrEnum):
    """The state of a file when the last sync ended."""

    #: The source was created, but is neither ready nor failed yet.
    SENT = "sent"
    READY = "ready"
    #: The source has failed.
    FAILED = "failed"
    #: Not sent, because the service can't read this type.
    SKIPPED = "skipped"


class FileRow(NamedTuple):
    """One file as the last run found it. The first five fields are its fingerprint."""

    size_bytes: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    device: int
    #: When the file was hashed, in Unix nanoseconds; 0 if this machine has not hashed it.
    hashed_ns: int
    #: The path relative to the root, in Unicode NFC; also the source's title.
    path: str
    #: The path as the file system spells it.
    raw: str
    sha256: str
    #: Id of the newest source of this path.
    source_id: str | None
    #: Id of the source that searches find: an older source while the newest is not ready.
    place_id: str | None
    state: str
    #: The error of a failed source as JSON, or why the file was skipped.
    reason: str | None

    def is_same(self, fingerprint: Fingerprint) -> bool:
        """Whether the file is unchanged since it was hashed, judged by its metadata."""
        return self[:5] == fingerprint and self.mtime_ns < self.hashed_ns - RACY_NS

    @property
    def source_ids(self) -> list[str]:
        """Return the newest source and, if there is one, the older one that the newest has not replaced yet."""
        return list(dict.fromkeys(each for each in (self.source_id, self.place_id) if each))

    @property
    def error(self) -> dict[str, Any] | None:
        """Return the error of a file in state FAILED."""
        return parse_json(self.reason) if self.reason and self.state == State.FAILED else None


@dataclass(frozen=True, slots=True)
class Journaled:
    """An unfinished batch: the request that opens the batch, and the index rows to write when the batch ends."""

    key: str
    body: dict[str, Any]
    #: The index rows of the batch's files, by `client_file_id`.
    rows: dict[str, FileRow]

    @classmethod
    def parse(cls, key: str, body: str, files: str) -> Self:
        """Parse a stored batch; it has no rows if it can't be read."""
        try:
            rows = {name: FileRow._make(row) for name, row in parse_json(files).items()}
            return cls(key, parse_json(body), rows)
        except (ValueError, TypeError, AttributeError):
            return cls(key, {}, {})


class Index:
    """Stores what the last sync of a folder found. Not thread-safe."""

    def __init__(self, path: Path) -> None:
        """Open the file; it is created if missing, and replaced if damaged or older.

        Raises UsageError if a newer release wrote it, or if it can't be accessed.
        """
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            self._connection = _open(path)
        except (sqlite3.Error, ValueError, TypeError) as error:
            if isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", None) not in _DAMAGED:
                raise unwritable(path, error) from error
            # An index can be rebuilt. Keep the damaged file for inspection.
            path.replace(path.with_suffix(".damaged"))
            for suffix in ("-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
            self._connection = _open(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def load(self) -> dict[str, FileRow]:
        """Load all rows, by path."""
        cursor = self._connection.execute(f"SELECT {_COLUMNS} FROM files")  # noqa: S608 - our own names
        rows = list(map(FileRow._make, cursor))
        return dict(zip(map(_path_of, rows), rows, strict=True))

    def load_within(self, paths: Iterable[str]) -> dict[str, FileRow]:
        """Load the rows of these paths and of all paths below them."""
        query = f"SELECT {_COLUMNS} FROM files WHERE path = ? OR (path > ? AND path < ?)"  # noqa: S608 - our own names
        found: dict[str, FileRow] = {}
        for path in paths:
            # "0" comes after "/", so this is the range of the paths below `path`.
            cursor = self._connection.execute(query, (path, f"{path}/", f"{path}0"))
            found |= {row.path: row for row in map(FileRow._make, cursor)}
        return found

    def save(self, rows: Iterable[FileRow]) -> None:
        """Insert or replace rows."""
        with self._transaction():
            self._put(rows)

    def replace_all(self, rows: Iterable[FileRow], source_ids: Collection[str]) -> None:
        """Replace all rows of the index with `rows`. `source_ids` are those of all the mapping's sources.

        Of the sources that were sent and have ended, the newest stay known: a restored backup brings them back.
        """
        with self._transaction():
            self._connection.execute("DELETE FROM files")
            self._put(rows)
            sent = self._connection.execute("SELECT source_id FROM sent ORDER BY source_id DESC").fetchall()
            ended = [row for row in sent if row[0] not in source_ids]
            self._connection.executemany("DELETE FROM sent WHERE source_id = ?", ended[MOST_ENDED:])

    def remove(self, paths: Iterable[str]) -> None:
        """Delete the rows of these paths."""
        with self._transaction():
            self._connection.executemany("DELETE FROM files WHERE path = ?", ((path,) for path in paths))

    def move(self, path: str, row: FileRow) -> None:
        """Replace the row at `path` with `row`, which has the new path."""
        with self._transaction():
            self._connection.execute("DELETE FROM files WHERE path = ?", (path,))
            self._put([row])

    def has_sent(self, source_id: str, path: str = "", sha256: str = "") -> bool:
        """Whether the source was sent from this folder. Of a killed run, only path and hash may be known."""
        query = "SELECT 1 FROM sent WHERE source_id = ? UNION ALL SELECT 1 FROM sending WHERE path = ? AND sha256 = ?"
        return self._connection.execute(query, (source_id, path, sha256)).fetchone() is not None

    def clear(self) -> None:
        """Delete all rows, batches and facts."""
        with self._transaction():
            for table in ("files", "batches", "facts", "sent", "sending"):
                self._connection.execute(f"DELETE FROM {table}")  # noqa: S608 - our own names

    def begin(self, rows: Iterable[FileRow], batch: Journaled | None = None) -> None:
        """Record the files of a group before it is sent, and the whole group if it is a batch."""
        with self._transaction():
            files = [(row.path, row.sha256) for row in rows]
            self._connection.executemany("INSERT OR IGNORE INTO sending (path, sha256) VALUES (?, ?)", files)
            if batch is not None:
                body, members = json.dumps(batch.body), {name: list(row) for name, row in batch.rows.items()}
                self._connection.execute(
                    "INSERT OR REPLACE INTO batches (key, body, files) VALUES (?, ?, ?)",
                    (batch.key, body, json.dumps(members)),
                )

    def finish(self, key: str, rows: Iterable[FileRow]) -> None:
        """Remove a group that was sent, and write the rows of the files that have a source."""
        rows = list(rows)
        with self._transaction():
            self._put(rows)
            ids = [(row.source_id,) for row in rows]
            self._connection.executemany("INSERT OR IGNORE INTO sent (source_id) VALUES (?)", ids)
            self._connection.executemany("DELETE FROM sending WHERE path = ?", [(row.path,) for row in rows])
            self._connection.execute("DELETE FROM batches WHERE key = ?", (key,))

    def list_batches(self) -> list[Journaled]:
        """Return the batches that were begun and not finished; without rows if one can't be read."""
        return [
            Journaled.parse(*row) for row in self._connection.execute("SELECT key, body, files FROM batches").fetchall()
        ]

    def set_aside(self, key: str) -> None:
        """Put a batch that can't be finished where no run looks for it, for inspection."""
        with self._transaction():
            columns = "key TEXT PRIMARY KEY, body TEXT NOT NULL, files TEXT NOT NULL"
            self._connection.execute(f"CREATE TABLE IF NOT EXISTS set_aside ({columns}) WITHOUT ROWID")
            self._connection.execute("INSERT OR REPLACE INTO set_aside SELECT * FROM batches WHERE key = ?", (key,))
            self._connection.execute("DELETE FROM batches WHERE key = ?", (key,))

    def adopt_bucket(self, bucket_id: str) -> None:
        """Clear the index if it belongs to another bucket."""
        if self.find_fact(BUCKET_ID) != bucket_id:
            self.clear()
            self.set_fact(BUCKET_ID, bucket_id)

    def find_fact(self, name: str) -> str | None:
        found = self._connection.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return str(found[0]) if found else None

    def set_fact(self, name: str, value: str) -> None:
        with self._transaction():
            self._connection.execute("INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)", (name, value))

    def find_way(self) -> Way | None:
        """Return the folder's owner, and the links on the way to it, in the last run."""
        return _way_of(self.find_fact(WAY))

    def set_way(self, way: Way) -> None:
        if self.find_way() != way:
            self.set_fact(WAY, json.dumps(way))

    def find_mounts(self) -> dict[str, int]:
        """Return the folders, with a trailing slash, where another disk began in the last run, and its device."""
        return _mounts_of(self.find_fact(MOUNTS))

    def set_mounts(self, mounts: Mapping[str, int]) -> None:
        if self.find_mounts() != mounts:
            self.set_fact(MOUNTS, json.dumps(mounts))

    def _put(self, rows: Iterable[FileRow]) -> None:
        marks = ", ".join("?" * len(FileRow._fields))
        self._connection.executemany(f"INSERT OR REPLACE INTO files ({_COLUMNS}) VALUES ({marks})", rows)  # noqa: S608

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")


_COLUMNS = ", ".join(FileRow._fields)
_path_of = attrgetter("path")


@contextlib.contextmanager
def hold(path: Path, what: str) -> Iterator[None]:
    """Lock an index during the block. Raises SyncRunning if another sync has locked it."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        opened = path.with_suffix(".lock").open("a")
    except OSError as error:
        raise refused_by_system(error, "set SVC_STATE_DIR to a folder that this user may write.") from error
    with opened as lock:
        try:
            lock_file(lock.fileno())
        except BlockingIOError as error:
            raise SyncRunning(
                f"Another sync of {what} is running.", hint="wait for it, or stop `svc watch` for this folder."
            ) from error
        yield


def unwritable(path: Path, error: sqlite3.Error) -> SvcError:
    """Return the error for an index that can't be written, for example because the disk is full."""
    safe = "and run it again; what was sent is safe in the bucket."
    if getattr(error, "sqlite_errorcode", None) in _FULL:
        return NoRoom(f"{path}: {error}.", hint=f"free some space there, {safe}")
    return UsageError(f"{path}: {error}.", code="svc_file_refused", hint=f"make the folder writable, {safe}")


def _way_of(value: str | None) -> Way | None:
    """Parse the value of the fact. Raises ValueError or TypeError if it is damaged."""
    if value is None:
        return None
    owner, links, link_owners = parse_json(value)
    return Way(owner, tuple(links), tuple(link_owners))


def _mounts_of(value: str | None) -> dict[str, int]:
    """Parse the value of the fact. Raises ValueError or TypeError if it is damaged."""
    return dict(parse_json(value)) if value is not None else {}


def _open(path: Path) -> sqlite3.Connection:
    """Open the file, create its tables, and read every row.

    Raises sqlite3.Error, ValueError or TypeError if it is damaged or older, and UsageError if a newer release wrote it.
    """
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    with contextlib.ExitStack() as stack:
        stack.callback(connection.close)
        connection.execute("PRAGMA journal_mode = WAL")
        # A power failure may lose the last rows, which can be restored from the bucket.
        connection.execute("PRAGMA synchronous = NORMAL")
        # The names of deleted files must not stay in the file.
        connection.execute("PRAGMA secure_delete = ON")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > SCHEMA_VERSION:
            raise UsageError(f"{path} was made by a newer release of svc.", hint="install that release.")
        if 0 < version < SCHEMA_VERSION:
            raise ValueError(f"{path} is of version {version}")
        if version == 0:
            connection.executescript(_SCHEMA)
        # Find damage now, while the file can still be replaced.
        connection.execute(f"SELECT count(*) FROM (SELECT {_COLUMNS} FROM files)").fetchone()  # noqa: S608 - our own names
        facts = dict(connection.execute("SELECT name, value FROM facts"))
        _way_of(facts.get(WAY))
        _mounts_of(facts.get(MOUNTS))
        connection.execute("SELECT count(*) FROM (SELECT source_id FROM sent UNION ALL SELECT path FROM sending)")
        connection.execute("SELECT key, body, files FROM batches").fetchall()
        stack.pop_all()
    return connection
