"""Checks a state database that may come from a stranger, before anything else is read from it or made of it.

Keys, texts and addresses in it may be anything, and a restore uses them. But no name in it leads
out of the data directory, its schema is that of this program, and each value has the shape that the service reads.
"""

import json
import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache, partial
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from typing import Annotated, Any, get_type_hints

from pydantic import AfterValidator, TypeAdapter, ValidationError

from svc_daemon.core import ids
from svc_daemon.core.access.api_keys import GRANTABLE
from svc_daemon.core.times import from_text
from svc_daemon.databases.contract import Connection
from svc_daemon.databases.sqlite import LAST_TURN
from svc_daemon.errors import StorageError
from svc_daemon.store.checks import JSON_COLUMNS, STATES, list_deep_columns
from svc_daemon.store.files.backups import BackupRefused
from svc_daemon.store.migrations import find_foreign
from svc_daemon.store.rows.batches import BatchRow
from svc_daemon.store.rows.buckets import BucketRow
from svc_daemon.store.rows.keys import KeyRow, WatcherRow
from svc_daemon.store.rows.moves import find_arrival, find_departure
from svc_daemon.store.rows.sessions import SessionRow
from svc_daemon.store.rows.sources.sources import SourceRow
from svc_daemon.store.rows.tasks import TaskRow
from svc_daemon.store.rows.teams import find_fact
from svc_daemon.store.rows.webhook_deliveries import Attempt
from svc_daemon.wire.agents import AGENT_ID_PATTERN
from svc_daemon.wire.buckets import SLUG_PATTERN, Chunking, ChunkSizes
from svc_daemon.wire.light.names import find_fault_of_name, find_fault_of_text
from svc_daemon.wire.requests import faults_of

#: Says what is wrong with a value, or None.
Check = Callable[[Any], str | None]

#: The types of values by the declared type of a column.
TYPES = {"TEXT": "'text'", "BIGINT": "'integer'", "INTEGER": "'integer'", "DOUBLE PRECISION": "'real', 'integer'"}
#: Most bytes of a text, and of a JSON document, in a column. They are generous, because limits can be raised.
MOST_TEXT_BYTES, MOST_JSON_BYTES = 2**20, 2**24
#: The largest number in a column. Greater ones lose digits in JSON, and overflow when they are counted on.
MOST = 2**53
#: The columns whose numbers have other bounds.
RANGES = {("tasks", "max_attempts"): (1, MOST), ("events", "turn"): (0, LAST_TURN)}
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
    "uploads": SessionRow,
    "delivery_attempts": Attempt,
    "watchers": WatcherRow,
}
#: The form of other texts, by table and column.
TEXTS = {
    ("keys", "secret_hash"): re.compile("[0-9a-f]{64}"),
    ("keys", "parent_id"): ids.SHAPES[ids.KEY],
    ("sources", "sha256"): re.compile("[0-9a-f]{64}"),
    ("usage", "month"): re.compile(r"\d{4}-\d\d"),
    ("buckets", "slug"): re.compile(SLUG_PATTERN),
    ("agents", "id"): re.compile(AGENT_ID_PATTERN),
}
#: The checks of names and other words that users give. A value that may be missing can be empty.
WORDS: dict[tuple[str, str], Check] = {
    **dict.fromkeys(
        [
            *[(table, "name") for table in ("teams", "keys", "buckets", "agents")],
            *[(table, column) for table in ("sources", "uploads") for column in ("title", "filename", "mapping")],
            ("agents", "bound_surface"),
        ],
        lambda name: find_fault_of_name(name) if name else None,
    ),
    **dict.fromkeys([("buckets", "description"), ("agents", "role"), ("agents", "instructions")], find_fault_of_text),
}
#: Columns that refer to another row of the table, as columns of its id and of the other's.
LINKS = {"sources": ("id", "replaces"), "tombstones": ("source_id", "replaced_by")}
#: The column that a source of a type needs.
NEEDED = {"page": "source_url", "qa": "qa"}
#: The form of facts about the installation that are not just names, by name.
FACTS = {"search_disabled": re.compile(r"\d{1,9}")}
#: Times as `core.times.to_text` writes them. Texts of another form would not sort by time.
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
#: From this year on, adding some days to a time fails.
_END = "9999"
#: Half of a pair of surrogates, which Python's parser reads and the other one refuses.
_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
#: NUL, and what stands for bytes that are not UTF-8.
_NO_TEXT = re.compile("[\0\ud800-\udfff]")


def refuse_foreign(connection: Connection, size_bytes: int) -> None:
    """Check the state database of a backup, a file of this size. The connection reads texts by `read_any_text`.

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


def read_any_text(stored: bytes) -> str:
    """Return a text of the database, even if it is not UTF-8, so that the error can name its row."""
    return stored.decode(errors="surrogateescape")


def _refuse_values(connection: Connection, tables: list[str], hint: str) -> None:
    """Raise BackupRefused if a value is not of its type, is no name of its kind, or doesn't have its shape."""
    for table in tables:
        if (found := _find_outsized(connection, table)) is not None:
            raise BackupRefused(f"The backup has a value {found}.", hint)
    for (name, column), shape in NAMES.items():
        rows = connection.execute(f"SELECT {column} AS name FROM {name} NOT INDEXED WHERE {column} IS NOT NULL")  # noqa: S608
        for row in rows:
            try:
                ids.file_name(row["name"], shape, row=f"{name}.{column}")
            except StorageError as error:
                raise BackupRefused(f"A row of the backup is not valid: {error.message}", hint) from error
    # An older release has fewer columns, too.
    listing = "SELECT name FROM pragma_table_info(:table)"
    columns = {table: [row["name"] for row in connection.execute(listing, {"table": table})] for table in tables}
    for name, column in list_deep_columns(connection, columns):
        raise BackupRefused(f"The backup has {name}.{column} with JSON that is nested too deeply.", hint)
    for table in tables:
        for place, fault in chain(_list_faults(connection, table), _list_faults_of_tables(connection, table)):
            raise BackupRefused(f"A row of the backup is not valid: {place} {fault.rstrip('.')}.", hint)


def _find_outsized(connection: Connection, table: str) -> str | None:
    """Return which column has a value of another type than declared, which SQLite doesn't enforce, or a very long one.

    Returns None without one.
    """
    columns = connection.execute("SELECT name, type FROM pragma_table_info(:table)", {"table": table}).fetchall()
    tests = []
    for name, kind in columns:
        most_bytes = MOST_JSON_BYTES if name in (*JSON_COLUMNS.get(table, ()), "policy") else MOST_TEXT_BYTES
        tests += [
            f"WHEN typeof({name}) NOT IN ({TYPES[kind]}, 'null') THEN 'of another type in {table}.{name}'",
            f"WHEN length(CAST({name} AS BLOB)) > {most_bytes} THEN 'of over {most_bytes} bytes in {table}.{name}'",
        ]
    statement = (
        f"SELECT fault FROM (SELECT CASE {' '.join(tests)} END AS fault FROM {table}) WHERE fault IS NOT NULL LIMIT 1"  # noqa: S608
    )
    found = connection.execute(statement).fetchone()
    return found["fault"] if found else None


def _list_faults(connection: Connection, table: str) -> Iterator[tuple[str, str]]:
    """Yield each value of a table that doesn't have its shape: its column and row, and what is wrong with it."""
    columns = connection.execute("SELECT name, type, pk FROM pragma_table_info(:table)", {"table": table}).fetchall()
    keys = [row["name"] for row in sorted(columns, key=lambda row: row["pk"]) if row["pk"]]
    checks = {row["name"]: _find_check(table, row["name"], row["type"]) for row in columns}
    for row in connection.execute(f"SELECT * FROM {table} NOT INDEXED"):  # noqa: S608
        for column, check in checks.items():
            fault = check(row[column]) if row[column] is not None else None
            if table == "sources" and row[column] is None and NEEDED.get(row["type"]) == column:
                fault = f"is missing, and its type is {row['type']}"
            if fault is not None:
                yield f"{table}.{column} of {', '.join(f'{key} {str(row[key])[:100]!r}' for key in keys)}", fault


def _list_faults_of_tables(connection: Connection, table: str) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a fact, with the names of teams, or with references between rows of a table."""
    for name, shape in FACTS.items() if table == "facts" else ():
        if (value := find_fact(connection, name)) is not None and not shape.fullmatch(value):
            yield f"facts.value of name {name!r}", f"is {value[:100]!r}"
    if table == "teams":
        # An operator's command names a team, and would take the older one.
        for row in connection.execute("SELECT name FROM teams GROUP BY name HAVING count(*) > 1"):
            yield "teams.name", f"is {row['name'][:100]!r} for two teams"
    if table in LINKS:
        key, link = LINKS[table]
        rows = connection.execute(f"SELECT {key}, {link} FROM {table} WHERE {link} IS NOT NULL")  # noqa: S608
        try:
            TopologicalSorter({row[key]: (row[link],) for row in rows}).prepare()
        except CycleError as error:
            yield f"{table}.{link} of {key} {error.args[1][0]!r}", "leads back to the row itself"


def _find_check(table: str, column: str, kind: str) -> Check:
    """Return the check of a column's values, which have this type."""
    if TYPES[kind] != TYPES["TEXT"]:
        least, most = RANGES.get((table, column), (0, MOST))
        return lambda value: None if least <= value <= most else f"is {value}, which is not from {least} to {most}"
    check = _find_check_of_text(table, column)
    return lambda text: "has NUL or is not valid UTF-8" if _NO_TEXT.search(text) else check(text)


@cache
def _find_check_of_text(table: str, column: str) -> Check:
    if column in JSON_COLUMNS.get(table, ()):
        shape = get_type_hints(ROWS[table])[column] if table in ROWS else dict[str, Any]
        shapes = {
            "chunking": Annotated[ChunkSizes, AfterValidator(_check_sizes)],
            "tags": Annotated[tuple[str, ...], AfterValidator(_check_tags)],
        }
        if table == "keys":
            shapes = {name: Annotated[shape, AfterValidator(partial(_check_granted, name))] for name in GRANTABLE}
        return _check_json(shapes.get(column, shape), may_have_halves=column != "tags")
    if (table, column) in STATES:
        return lambda value: None if value in STATES[table, column] else f"is {value[:100]!r}, which is no {column}"
    if (table, column) in TEXTS:
        return lambda value: None if TEXTS[table, column].fullmatch(value) else f"is {value[:100]!r}"
    if (table, column) in WORDS:
        return WORDS[table, column]
    # The library that runs migrations writes its own times.
    if column.endswith("_at") and not table.startswith("_"):
        # Keys may never expire, in effect.
        return lambda value: _check_time(value, has_end=column != "expires_at")
    return lambda _: None


def _check_time(text: str, *, has_end: bool) -> str | None:
    try:
        from_text(text)
    except ValueError:
        return f"is {text[:100]!r}, which is no time"
    is_right = _TIME.fullmatch(text) and (text < _END or not has_end)
    return None if is_right else f"is {text[:100]!r}, which is no time of this program"


def _check_json(shape: Any, *, may_have_halves: bool) -> Check:
    """Return the check of a JSON document, of which the same text is checked once."""
    adapter = TypeAdapter(shape)

    @lru_cache(maxsize=1000)
    def check(text: str) -> str | None:
        try:
            whole = _HALF_PAIR.sub(r"\\u0020", text) if may_have_halves else text
            document = adapter.validate_json(whole, strict=True)
            # Python reads infinity and NaN, which no JSON can have, and can't write an integer of thousands of digits.
            json.dumps(document, allow_nan=False)
        except ValidationError as error:
            return f"has a wrong shape: {': '.join(filter(None, faults_of(error)[0])).rstrip('.')}"
        except ValueError as error:
            return f"has a number that is not valid: {error}"
        return "is null" if document is None else None

    return check


def _check_sizes(sizes: ChunkSizes) -> ChunkSizes:
    """Raise ValueError unless these chunk sizes are allowed."""
    try:
        Chunking.model_validate(sizes)
    except ValidationError as error:
        raise ValueError(": ".join(filter(None, faults_of(error)[0]))) from error
    return sizes


def _check_granted(kind: str, granted: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Raise ValueError if a key's list of this kind has what no key can have."""
    for each in granted or ():
        if not GRANTABLE[kind](each):
            raise ValueError(f"{each[:100]!r} is none of the {kind} that a key can have")
    return granted


def _check_tags(tags: tuple[str, ...]) -> tuple[str, ...]:
    """Raise ValueError if a tag is one that the service refuses."""
    for fault in filter(None, map(find_fault_of_name, tags)):
        raise ValueError(f"a tag {fault}")
    return tags
