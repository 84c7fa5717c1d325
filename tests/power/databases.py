"""What SQLite recovers from the files of a replayed disk, so that disks with the same rows are asked only once.

Most of the open changes are pages of a transaction whose commit was never synced, and SQLite ignores all of them. Its
own code decides that here.
"""

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.power.disks import Disk

_FILES = ("", "-wal", "-journal")


class Recoveries:
    """Hashes disks by what they contain once SQLite has recovered its databases."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def digest(self, disk: Disk) -> str:
        hashed = hashlib.sha256()
        rest = dict(disk)
        for path in [path for path, data in disk.items() if data and path.endswith(".db")]:
            parts = [rest.pop(f"{path}{suffix}", None) for suffix in _FILES]
            hashed.update(f"{path}\0{self._recover(parts)}\0".encode())
        for line in _lines(rest):
            hashed.update(line)
        return hashed.hexdigest()

    def _recover(self, parts: list[bytes | None]) -> str:
        """Return a hash of a database's pages after its recovery; of its files if it can't be recovered."""
        raw = hashlib.sha256(b"".join(_lines({str(number): part for number, part in enumerate(parts)}))).hexdigest()
        if raw not in self._known:
            with TemporaryDirectory() as folder:
                for suffix, part in zip(_FILES, parts, strict=True):
                    if part is not None:
                        Path(folder, f"one.db{suffix}").write_bytes(part)
                self._known[raw] = _checkpoint(Path(folder, "one.db")) or raw
        return self._known[raw]


def _checkpoint(path: Path) -> str | None:
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.DatabaseError:
        return None
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _lines(disk: Disk) -> Iterator[bytes]:
    """Yield all names and bytes of a disk."""
    for path, data in sorted(disk.items()):
        yield f"{path}\0{'-' if data is None else len(data)}\0".encode(errors="surrogateescape")
        yield data or b""
