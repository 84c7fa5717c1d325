"""Creates the schema of the state database, and upgrades it by running migrations in order.

Theory of operation of an upgrade:

- First, the database is copied to `state.db.before-<last migration>`.
- Then the migrations run. Each is committed with its record. After a crash, the next start continues, and keeps the
  copy.
- `installations.serving_installation` removes the copy after the new release has run and stopped cleanly.
- On a database server, `cluster.migrations` runs them: no copy is made, but all run in one transaction.
- A database with an unknown migration is from a newer release, and is refused before any write.
"""

import os
import sqlite3
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from svc_daemon.databases.contract import Connection
from svc_daemon.databases.schemas import SchemaObject, find_difference, read_objects
from svc_daemon.databases.sqlite import open_beside, open_unchanging
from svc_daemon.errors import StorageError
from svc_daemon.paths import sync_folder
from svc_daemon.store.schemas import SCHEMA, SORTED, SOURCE_VIEWS, WATCHERS
from svc_daemon.store.tables import Table, TableReference

OLDER = "The database was made by an older release; start the service once to upgrade it."
_NEWER = "The database was made by a newer release (it has {}); install that release."


def make_schema(connection: Connection) -> None:
    """Create the tables, indexes and views."""
    for statement in (*SCHEMA.split(";\n\n"), SOURCE_VIEWS):
        connection.execute(statement)


def add_reader(connection: Connection) -> None:
    """Record which version of the readers has read a source, so that sources of older versions are read again."""
    connection.execute("ALTER TABLE sources ADD COLUMN reader BIGINT NOT NULL DEFAULT 0")
    connection.execute("CREATE INDEX sources_of_reader ON sources (reader, id) WHERE status IN ('active', 'failed')")
    # On PostgreSQL, a view has only the columns that its tables had when it was made.
    connection.execute("DROP VIEW source_views")
    connection.execute(SOURCE_VIEWS)


def add_finalizing(connection: Connection) -> None:
    """Record which batches were finalized, and what was known of a source when its session was finalized."""
    connection.execute("ALTER TABLE batches ADD COLUMN finalized_at TEXT")
    connection.execute("ALTER TABLE uploads ADD COLUMN made TEXT")


def add_key_parents(connection: Connection) -> None:
    """Record with which key a key of the console ends."""
    connection.execute("ALTER TABLE keys ADD COLUMN parent_id TEXT")
    connection.execute("CREATE INDEX keys_of_parent ON keys (parent_id) WHERE parent_id IS NOT NULL")


def add_refreshes(connection: Connection) -> None:
    """Record how often a source is fetched again from its URL, when next, and how the last try ended."""
    for column in ("refresh", "refresh_host", "refresh_due_at"):
        connection.execute(f"ALTER TABLE sources ADD COLUMN {column} TEXT")
    connection.execute("CREATE INDEX sources_to_refresh ON sources (refresh_due_at) WHERE refresh_due_at IS NOT NULL")
    connection.execute("DROP VIEW source_views")
    connection.execute(SOURCE_VIEWS)


def add_look_ups(connection: Connection) -> None:
    """Copy what lists of a bucket are sorted by into its memberships, and keep the reports of watchers."""
    columns = {
        name: "BIGINT NOT NULL DEFAULT 0" if name == "size_bytes" else "TEXT NOT NULL DEFAULT ''" for name in SORTED
    }
    for name, kind in columns.items():
        connection.execute(f"ALTER TABLE memberships ADD COLUMN source_{name} {kind}")
    copies = ", ".join(f"source_{name}" for name in columns)
    connection.execute(
        f"UPDATE memberships SET ({copies}) ="  # noqa: S608
        f" (SELECT {', '.join(columns)} FROM sources s WHERE s.id = memberships.source_id)"
    )
    for name in columns:
        connection.execute(f"CREATE INDEX memberships_by_{name} ON memberships (bucket_id, source_{name}, source_id)")
    connection.execute(WATCHERS)


def add_scans(connection: Connection) -> None:
    """Give scans a queue of their own, and keep the pages that were recognised."""
    # No CHECK can be changed, so another column takes the place of this one.
    connection.execute("DROP INDEX tasks_open")
    connection.execute(
        "ALTER TABLE tasks ADD COLUMN queue TEXT NOT NULL DEFAULT 'single'"
        " CHECK (queue IN ('prompt', 'wave', 'single', 'suspect', 'scan'))"
    )
    connection.execute("UPDATE tasks SET queue = lane")
    connection.execute("ALTER TABLE tasks DROP COLUMN lane")
    connection.execute("ALTER TABLE tasks RENAME COLUMN queue TO lane")
    connection.execute("CREATE INDEX tasks_open ON tasks (type, status, lane, team_id, id) WHERE finished_at IS NULL")
    connection.execute("ALTER TABLE tasks ADD COLUMN pages_done BIGINT NOT NULL DEFAULT 0")
    connection.execute("ALTER TABLE tasks ADD COLUMN pages_total BIGINT")
    connection.execute("ALTER TABLE tasks ADD COLUMN pages_token BIGINT NOT NULL DEFAULT 0")
    connection.execute(
        "CREATE TABLE recognized_pages (source_id TEXT NOT NULL REFERENCES sources (id), page BIGINT NOT NULL,"
        " sha256 TEXT NOT NULL, text TEXT NOT NULL, confidence DOUBLE PRECISION NOT NULL, problem TEXT NOT NULL,"
        " PRIMARY KEY (source_id, page)) WITHOUT ROWID"
    )


def add_deaths(connection: Connection) -> None:
    """Count apart how often a process died that had a task, so that this uses up no attempt."""
    connection.execute("ALTER TABLE tasks ADD COLUMN deaths BIGINT NOT NULL DEFAULT 0")


def add_names(connection: Connection) -> None:
    """Put titles and file names into one index, in which the words of a filter are looked for."""
    connection.execute("ALTER TABLE memberships ADD COLUMN source_filename TEXT NOT NULL DEFAULT ''")
    connection.execute(
        "UPDATE memberships SET source_filename = (SELECT filename FROM sources s WHERE s.id = memberships.source_id)"
    )
    connection.execute("DROP INDEX memberships_by_title")
    connection.execute(
        "CREATE INDEX memberships_by_title ON memberships (bucket_id, source_title, source_id, source_filename)"
    )


#: The name under which the schema is recorded.
FIRST = "m013_vector_offers"
#: The migrations by name, oldest first. New migrations are appended, and their names sort in this order.
MIGRATIONS: dict[str, Callable[[Connection], None]] = {
    FIRST: make_schema,
    "m014_reader": add_reader,
    "m015_finalizing": add_finalizing,
    "m016_key_parents": add_key_parents,
    "m017_refreshes": add_refreshes,
    "m018_look_ups": add_look_ups,
    "m019_scans": add_scans,
    "m020_deaths": add_deaths,
    "m021_names": add_names,
}


def migrate(connection: sqlite3.Connection) -> None:
    """Upgrade the schema to this release. Raises StorageError if that isn't possible."""
    applied = _read_applied(connection)
    if not set(MIGRATIONS).difference(applied):
        return
    if applied:
        _copy(connection, copy_place(Path(connection.execute("PRAGMA database_list").fetchone()["file"])))
    _apply(connection, MIGRATIONS)


def _apply(connection: sqlite3.Connection, names: Collection[str]) -> None:
    import sqlite_utils  # noqa: PLC0415 - slow, and seldom needed

    state = sqlite_utils.Migrations("state")
    for name in names:
        state(name=name)(lambda db, change=MIGRATIONS[name]: change(db.conn))
    state.apply(sqlite_utils.Database(connection, execute_plugins=False))


@dataclass(frozen=True, slots=True)
class PendingMigration:
    """A migration that an upgrade will run."""

    name: str
    #: What the migration does, as a sentence.
    purpose: str


def list_pending(path: Path, *, is_in_use: bool = False) -> list[PendingMigration]:
    """List the migrations that this file still needs, oldest first, without changing it.

    `is_in_use` must be true if another process may have the file open. Raises StorageError if the file can't be
    read or upgraded.
    """
    try:
        with open_beside(path) if is_in_use else open_unchanging(path) as connection:
            return describe_pending(_read_applied(connection))
    except sqlite3.Error as error:
        raise StorageError(f"The database {path} can't be opened: {error}.") from error


def describe_pending(applied: Collection[str]) -> list[PendingMigration]:
    """List the migrations that are not among the applied ones."""
    missing = {name: change for name, change in MIGRATIONS.items() if name not in applied}
    return [PendingMigration(name, (change.__doc__ or "").partition("\n")[0]) for name, change in missing.items()]


def find_foreign(connection: Connection) -> str | None:
    """Return the name of a table, index, view or trigger that is not as this or an older release has made it.

    Returns None if there is none. Raises StorageError if the database can't be upgraded.
    """
    found = read_objects(connection)
    known = _objects_of(())
    # Before the applied migrations are read: a view in place of their table could compute forever.
    if all(found.get(name) == each for name, each in known.items()):
        applied = _read_applied(connection)
        known = _objects_of(tuple(name for name in MIGRATIONS if name in applied))
    return find_difference(found, known)


@cache
def _objects_of(names: tuple[str, ...]) -> Mapping[str, SchemaObject]:
    """Return what these migrations make in an empty database."""
    with _open_memory() as made:
        _apply(made, names)
        return read_objects(made)


def list_tables() -> tuple[Table, ...]:
    """List the schema's tables. A table comes before those that refer to it."""
    return _tables_of(tuple(MIGRATIONS))


@cache
def _tables_of(names: tuple[str, ...]) -> tuple[Table, ...]:
    with _open_memory() as connection:
        for name in names:
            MIGRATIONS[name](connection)
        listed = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
        found = {name: _read_table(connection, name) for (name,) in listed.fetchall()}
    ordered: dict[str, Table] = {}
    while len(ordered) < len(found):
        for table in found.values():
            if all(each.parent in {*ordered, table.name} for each in table.references):
                ordered[table.name] = table
    return tuple(ordered.values())


def _open_memory() -> closing[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.row_factory = sqlite3.Row
    return closing(connection)


def _read_table(connection: sqlite3.Connection, name: str) -> Table:
    columns = connection.execute("SELECT name, pk FROM pragma_table_info(?)", (name,)).fetchall()
    keyed = sorted((row["pk"], row["name"]) for row in columns if row["pk"])
    referring = connection.execute("SELECT * FROM pragma_foreign_key_list(?)", (name,)).fetchall()
    return Table(
        name,
        tuple(row["name"] for row in columns),
        tuple(column for _, column in keyed),
        tuple(TableReference(row["from"], row["table"], row["to"]) for row in referring),
    )


def check_current(connection: Connection) -> None:
    """Raise StorageError if the schema is not up to date."""
    if not set(MIGRATIONS) <= set(_read_applied(connection)):
        raise StorageError(OLDER)


def _read_applied(connection: Connection) -> list[str]:
    """List the applied migrations, oldest first. Raises StorageError if the database can't be upgraded."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = '_sqlite_migrations'").fetchall():
        return []
    query = "SELECT name FROM _sqlite_migrations WHERE migration_set = 'state' ORDER BY rowid"
    return check_applied([str(row["name"]) for row in connection.execute(query)])


def check_applied(applied: list[str]) -> list[str]:
    """Return the applied migrations from `FIRST` on. Raises StorageError if the database can't be upgraded."""
    since = [name for name in applied if name >= FIRST]
    if unknown := sorted(set(since).difference(MIGRATIONS)):
        raise StorageError(_NEWER.format(unknown[-1]))
    if applied and FIRST not in since:
        raise StorageError(
            f"The database was made before the first release (its last migration is {applied[-1]}), and only the "
            "version that made it can use it: upload its documents again."
        )
    return since


def copy_place(path: Path) -> Path:
    """Return the path for the copy made before this upgrade."""
    return path.with_name(f"{path.name}.before-{list(MIGRATIONS)[-1]}")


def list_copies(path: Path) -> list[Path]:
    """List the copies made before upgrades, including unfinished copies."""
    return sorted(path.parent.glob(f"{path.name}.before-m*"))


def _copy(connection: sqlite3.Connection, place: Path) -> None:
    """Copy the database to `place`, durably, so that a failed upgrade loses nothing.

    An existing copy with fewer migrations than the database is kept, because an interrupted upgrade made it.
    """
    if place.exists():
        with open_unchanging(place) as copied:
            if len(_read_applied(copied)) < len(_read_applied(connection)):
                return
    staged = place.with_name(f"{place.name}.partial")
    staged.unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(staged)) as copy:
            connection.backup(copy)
        descriptor = os.open(staged, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except BaseException:
        staged.unlink(missing_ok=True)
        raise
    staged.replace(place)
    sync_folder(place.parent)
