"""Checks a state database that may come from a stranger, before anything else is read from it or made of it.

Keys, texts and addresses in it may be anything: whoever restores a backup uses what is in it. But no name in it leads
out of the data directory, and its schema is that of this program.
"""

import re

from svc_daemon.core import ids
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import StorageError
from svc_daemon.store.backups import BackupRefused
from svc_daemon.store.checks import list_deep_columns
from svc_daemon.store.migrations import find_foreign
from svc_daemon.store.moves import find_arrival, find_departure

#: The types of values by the declared type of a column.
TYPES = {"TEXT": "'text'", "BIGINT": "'integer'", "INTEGER": "'integer'", "DOUBLE PRECISION": "'real', 'integer'"}
#: Columns whose values name files, or are the ids of objects, and the shape of these.
NAMES: dict[tuple[str, str], re.Pattern[str]] = {
    ("teams", "id"): ids.TEAM_ID,
    ("keys", "id"): ids.SHAPES[ids.KEY],
    ("buckets", "id"): ids.SHAPES[ids.BUCKET],
    ("sources", "id"): ids.SHAPES[ids.SOURCE],
    ("sources", "team_id"): ids.TEAM_ID,
    ("sources", "blob"): ids.BLOB_NAME,
    ("tombstones", "source_id"): ids.BLOB_NAME,
    ("tombstones", "team_id"): ids.TEAM_ID,
    ("tombstones", "blob"): ids.BLOB_NAME,
    ("detachments", "source_id"): ids.SHAPES[ids.SOURCE],
    ("detachments", "team_id"): ids.TEAM_ID,
    ("uploads", "id"): ids.PART_NAME,
    ("uploads", "source_id"): ids.SHAPES[ids.SOURCE],
    ("batches", "id"): ids.SHAPES[ids.BATCH],
    ("tasks", "id"): ids.SHAPES[ids.TASK],
    ("tasks", "team_id"): ids.TEAM_ID,
}


def refuse_foreign(connection: Connection, size_bytes: int) -> None:
    """Check the state database of a backup, a file of this size.

    Raises BackupRefused if it is not one that this program has made, and StorageError if it can't be upgraded.
    """
    hint = "It may have been tampered with. Restore another backup."
    if (name := find_foreign(connection)) is not None:
        raise BackupRefused(
            f"The state database of the backup is not of this program: see {name!r} in its schema.", hint
        )
    (pages,), (page_bytes,) = (connection.execute(f"PRAGMA {each}").fetchone() for each in ("page_count", "page_size"))
    if pages * page_bytes != size_bytes:
        raise BackupRefused(f"The state database has {size_bytes} bytes, and {pages * page_bytes} are in use.", hint)
    # An older release has fewer tables.
    listed = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    tables = [row["name"] for row in listed if not row["name"].startswith("sqlite_")]
    for table in tables:
        if (column := _find_mistyped(connection, table)) is not None:
            raise BackupRefused(f"The backup has a value of another type in {table}.{column}.", hint)
    for (name, column), shape in NAMES.items():
        rows = connection.execute(f"SELECT {column} AS name FROM {name} NOT INDEXED WHERE {column} IS NOT NULL")  # noqa: S608
        for row in rows:
            try:
                ids.file_name(row["name"], shape, row=f"{name}.{column}")
            except StorageError as error:
                raise BackupRefused(f"A row of the backup is not valid: {error.message}", hint) from error
    # Raise StorageError if these records can't be read.
    find_departure(connection)
    find_arrival(connection)
    for name, column in list_deep_columns(connection, tables):
        raise BackupRefused(f"The backup has {name}.{column} with JSON that is nested too deeply.", hint)


def _find_mistyped(connection: Connection, table: str) -> str | None:
    """Return a column with a value that is not of its declared type, which SQLite doesn't enforce; None without one."""
    columns = connection.execute("SELECT name, type FROM pragma_table_info(:table)", {"table": table}).fetchall()
    tests = [
        f"WHEN typeof({row['name']}) NOT IN ({TYPES[row['type']]}, 'null') THEN '{row['name']}'" for row in columns
    ]
    statement = (
        f"SELECT name FROM (SELECT CASE {' '.join(tests)} END AS name FROM {table}) WHERE name IS NOT NULL LIMIT 1"  # noqa: S608
    )
    found = connection.execute(statement).fetchone()
    return found["name"] if found else None
