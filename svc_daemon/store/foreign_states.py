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
    for (table, column), shape in NAMES.items():
        rows = connection.execute(f"SELECT {column} AS name FROM {table} NOT INDEXED WHERE {column} IS NOT NULL")  # noqa: S608
        for row in rows:
            try:
                ids.file_name(row["name"], shape, row=f"{table}.{column}")
            except StorageError as error:
                raise BackupRefused(f"A row of the backup is not valid: {error.message}", hint) from error
    for table, column in list_deep_columns(connection):
        raise BackupRefused(f"The backup has {table}.{column} with JSON that is nested too deeply.", hint)
