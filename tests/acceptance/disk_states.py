"""What is wrong with a data directory whose daemon is not running."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

from svc_daemon.paths import DataFiles


def problems(files: DataFiles) -> list[str]:
    """A sentence for each broken promise of the disk; empty for a whole directory that the sweeper has seen."""
    with closing(sqlite3.connect(f"file:{files.state}?mode=ro", uri=True)) as state:
        return [*_of_database(state), *_of_blobs(state, files), *_of_staging(files)]


def _of_database(state: sqlite3.Connection) -> Iterator[str]:
    for (message,) in state.execute("PRAGMA integrity_check").fetchall():
        if message != "ok":
            yield f"integrity_check: {message}"
    for table, row, parent, _ in state.execute("PRAGMA foreign_key_check").fetchall():
        yield f"row {row} of {table} names nothing in {parent}"


def _of_blobs(state: sqlite3.Connection, files: DataFiles) -> Iterator[str]:
    rows = {row[0]: row[1] for row in state.execute("SELECT id, size_bytes FROM sources").fetchall()}
    sizes = {path.name: path.stat().st_size for path in files.blobs.iterdir()}
    yield from (f"source {source_id} has no blob" for source_id in sorted(rows.keys() - sizes.keys()))
    yield from (f"blob {name} has no source" for name in sorted(sizes.keys() - rows.keys()))
    for source_id in sorted(rows.keys() & sizes.keys()):
        if rows[source_id] != sizes[source_id]:
            yield f"blob {source_id} has {sizes[source_id]} bytes, its source says {rows[source_id]}"


def _of_staging(files: DataFiles) -> Iterator[str]:
    yield from (f"staging file {path.name} belongs to nobody" for path in files.staging.iterdir())
