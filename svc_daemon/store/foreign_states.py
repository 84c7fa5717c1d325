"""Checks a state database that may come from a stranger, before anything else is read from it or made of it.

Keys, texts and addresses in it may be anything: whoever restores a backup uses what is in it. But no name in it leads
out of the data directory, its schema is that of this program, and each value has the shape that the service reads.
"""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Annotated, Any, get_type_hints

from pydantic import AfterValidator, TypeAdapter, ValidationError

from svc_daemon.core import ids
from svc_daemon.core.times import from_text
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import StorageError
from svc_daemon.store.checks import JSON_COLUMNS, STATES, list_deep_columns
from svc_daemon.store.files.backups import BackupRefused
from svc_daemon.store.migrations import find_foreign
from svc_daemon.store.rows.batches import BatchRow
from svc_daemon.store.rows.buckets import BucketRow
from svc_daemon.store.rows.keys import KeyRow
from svc_daemon.store.rows.moves import find_arrival, find_departure
from svc_daemon.store.rows.sources import SourceRow
from svc_daemon.store.rows.tasks import TaskRow
from svc_daemon.store.rows.teams import find_fact
from svc_daemon.store.rows.uploads import UploadRow
from svc_daemon.store.rows.webhook_deliveries import Attempt
from svc_daemon.wire.buckets import Chunking, ChunkSizes
from svc_daemon.wire.requests import faults_of

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

#: The classes whose fields say the shape of the JSON in their table.
ROWS = {
    "keys": KeyRow,
    "buckets": BucketRow,
    "sources": SourceRow,
    "tasks": TaskRow,
    "batches": BatchRow,
    "uploads": UploadRow,
    "delivery_attempts": Attempt,
}
#: The form of other texts, by table and column.
TEXTS = {
    ("keys", "secret_hash"): re.compile("[0-9a-f]{64}"),
    ("sources", "sha256"): re.compile("[0-9a-f]{64}"),
    ("usage", "month"): re.compile(r"\d{4}-\d\d"),
}
#: The form of facts about the installation that are not just names, by name.
FACTS = {"search_disabled": re.compile(r"\d{1,9}")}
#: Times as `core.times.to_text` writes them. Texts of another form would not sort by time.
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
#: From this year on, adding some days to a time fails.
_END = "9999"
#: Half of a pair of surrogates, which Python's parser reads and the other one refuses.
_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
#: Says what is wrong with a value, or None.
Check = Callable[[Any], str | None]


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
    # Raise StorageError if these records can't be read.
    find_departure(connection)
    find_arrival(connection)
    _refuse_values(connection, tables, hint)


def _refuse_values(connection: Connection, tables: list[str], hint: str) -> None:
    """Raise BackupRefused if a value is not of its type, is no name of its kind, or doesn't have its shape."""
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
    for name, column in list_deep_columns(connection, tables):
        raise BackupRefused(f"The backup has {name}.{column} with JSON that is nested too deeply.", hint)
    for place, fault in (found for table in tables for found in _list_faults(connection, table)):
        raise BackupRefused(f"A row of the backup is not valid: {place} {fault}.", hint)


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


def _list_faults(connection: Connection, table: str) -> Iterator[tuple[str, str]]:
    """Yield each value of a table that doesn't have its shape: its column and row, and what is wrong with it."""
    columns = connection.execute("SELECT name, pk FROM pragma_table_info(:table)", {"table": table}).fetchall()
    keys = [row["name"] for row in sorted(columns, key=lambda row: row["pk"]) if row["pk"]]
    checks = {row["name"]: check for row in columns if (check := _find_check(table, row["name"])) is not None}
    for name, shape in FACTS.items() if table == "facts" else ():
        if (value := find_fact(connection, name)) is not None and not shape.fullmatch(value):
            yield f"facts.value of name {name!r}", f"is {value[:100]!r}"
    if not checks:
        return
    for row in connection.execute(f"SELECT {', '.join({*keys, *checks})} FROM {table} NOT INDEXED"):  # noqa: S608
        for column, check in checks.items():
            fault = check(row[column]) if row[column] is not None else None
            if fault is not None:
                yield f"{table}.{column} of {', '.join(f'{key} {str(row[key])[:100]!r}' for key in keys)}", fault


def _find_check(table: str, column: str) -> Check | None:
    """Return the check of a column's values; None if any value will do."""
    if column in JSON_COLUMNS.get(table, ()):
        shape = get_type_hints(ROWS[table])[column] if table in ROWS else dict[str, Any]
        return _check_json(Annotated[ChunkSizes, AfterValidator(_check_sizes)] if column == "chunking" else shape)
    if (table, column) in STATES:
        return lambda value: None if value in STATES[table, column] else f"is {value[:100]!r}, which is no {column}"
    if (table, column) in TEXTS:
        return lambda value: None if TEXTS[table, column].fullmatch(value) else f"is {value[:100]!r}"
    # The library that runs migrations writes its own times.
    is_time = column.endswith("_at") and not table.startswith("_")
    # Keys may never expire, in effect.
    return (lambda value: _check_time(value, has_end=column != "expires_at")) if is_time else None


def _check_time(text: str, *, has_end: bool) -> str | None:
    try:
        from_text(text)
    except ValueError:
        return f"is {text[:100]!r}, which is no time"
    is_right = _TIME.fullmatch(text) and (text < _END or not has_end)
    return None if is_right else f"is {text[:100]!r}, which is no time of this program"


def _check_json(shape: Any) -> Check:
    """Return the check of a JSON document, of which the same text is checked once."""
    adapter = TypeAdapter(shape)

    @lru_cache(maxsize=1000)
    def check(text: str) -> str | None:
        try:
            document = adapter.validate_json(_HALF_PAIR.sub(r"\\u0020", text), strict=True)
        except ValidationError as error:
            return f"has a wrong shape: {': '.join(filter(None, faults_of(error)[0])).rstrip('.')}"
        return "is null" if document is None else None

    return check


def _check_sizes(sizes: ChunkSizes) -> ChunkSizes:
    """Raise ValueError unless these chunk sizes are allowed."""
    try:
        Chunking.model_validate(sizes)
    except ValidationError as error:
        raise ValueError(": ".join(filter(None, faults_of(error)[0]))) from error
    return sizes
