"""Creates the schema of the state database, and upgrades it by running migrations in order.

Theory of operation of an upgrade:

- First, the database is copied to `state.db.before-<last migration>`.
- Then the migrations run. Each is committed with its record. After a crash, the next start continues, and keeps the
  copy.
- `installations.serving_installation` removes the copy after the new release has run and stopped cleanly.
- On a database server, no copy is made, but all migrations run in one transaction.
- A database with an unknown migration is from a newer release, and is refused before any write.
"""

import os
import sqlite3
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from svc_daemon.cluster import rate_limit_rows
from svc_daemon.data_directory import sync_folder
from svc_daemon.databases.contract import Connection
from svc_daemon.databases.schemas import find_difference, read_objects
from svc_daemon.databases.sqlite import open_beside, open_unchanging
from svc_daemon.errors import NotFound, StorageError
from svc_daemon.store.rows import vectors
from svc_daemon.store.schemas import EVENTS, SCHEMA, SOURCE_VIEWS
from svc_daemon.store.tables import Table, TableReference
from svc_daemon.wire.error_codes import ErrorCode

#: Migrations from before the first release. New databases record them as applied.
FORMER = (
    "m001_teams_buckets_sources",
    "m002_uploads_batches",
    "m003_urls_webhooks",
    "m004_cascades",
    "m005_rebuilds",
    "m006_agents",
)
#: The table of applied migrations, exactly as `sqlite_utils` creates it.
_RECORDS = """\
CREATE TABLE IF NOT EXISTS "_sqlite_migrations" (
   "id" INTEGER PRIMARY KEY,
   "migration_set" TEXT,
   "name" TEXT,
   "applied_at" TEXT
);

CREATE UNIQUE INDEX IF NOT EXISTS "idx__sqlite_migrations_migration_set_name"
    ON "_sqlite_migrations" ("migration_set", "name")"""
_RECORD = "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('state', ?, CURRENT_TIMESTAMP)"

#: Key of an advisory lock, which each node that may write holds in shared mode.
SERVING = 0x7376635F73727667
NO_INSTALLATION = "There is no installation in the database that SVC_STATE_URL names."
_OLDER = "The database was made by an older release; start the service once to upgrade it."
_NEWER = "The database was made by a newer release (it has {}); install that release."


def make_schema(connection: Connection) -> None:
    for statement in (*SCHEMA.split(";\n\n"), SOURCE_VIEWS):
        connection.execute(statement)


def add_lanes(connection: Connection) -> None:
    """Add the column `lane` to the tasks, which says how a task's document is read (see `core.lanes`).

    Existing tasks get the lane `single`.

    Indexes are added too, so that finding the next task doesn't take longer if more tasks are waiting.
    """
    connection.execute(
        "ALTER TABLE tasks ADD COLUMN lane TEXT NOT NULL DEFAULT 'single'"
        " CHECK (lane IN ('prompt', 'wave', 'single', 'suspect'))"
    )
    connection.execute("DROP INDEX tasks_open")
    connection.execute("CREATE INDEX tasks_open ON tasks (type, status, lane, team_id, id) WHERE finished_at IS NULL")
    connection.execute(
        "CREATE INDEX tasks_delayed ON tasks (type, next_attempt_at)"
        " WHERE finished_at IS NULL AND next_attempt_at IS NOT NULL"
    )


def add_retitles(connection: Connection) -> None:
    """Add columns for the number of a source's running title changes (`retitles`), and for the end of their lease."""
    connection.execute("ALTER TABLE detachments ADD COLUMN retitles BIGINT NOT NULL DEFAULT 0")
    connection.execute("ALTER TABLE detachments ADD COLUMN lease_until_s DOUBLE PRECISION")
    connection.execute("CREATE INDEX detachments_leased ON detachments (lease_until_s) WHERE lease_until_s IS NOT NULL")


def count_changes(connection: Connection) -> None:
    """Add a table in which each process counts its changes of a bucket; `buckets.revision` keeps the earlier count."""
    connection.execute(
        "CREATE TABLE bucket_changes (bucket_id TEXT NOT NULL REFERENCES buckets (id), writer BIGINT NOT NULL,"
        " changes BIGINT NOT NULL, PRIMARY KEY (bucket_id, writer)) WITHOUT ROWID"
    )


def add_events(connection: Connection) -> None:
    """Add the event log, the batch of each source, and the time at which a batch ended.

    Batches that ended before this migration also get an end time; otherwise, events would report their end now.
    """
    for statement in ("DROP VIEW source_views", *EVENTS.split(";\n\n"), SOURCE_VIEWS):
        connection.execute(statement)


def add_traces(connection: Connection) -> None:
    """Add a column for the trace of the request that queued a task."""
    connection.execute("ALTER TABLE tasks ADD COLUMN trace TEXT")


def add_vector_offers(connection: Connection) -> None:
    """Add the table of vectors that an import sends before its files (see `store.rows.vectors`)."""
    for statement in vectors.SCHEMA.split(";\n\n"):
        connection.execute(statement)


#: The migrations by name, oldest first. New migrations are appended.
MIGRATIONS: dict[str, Callable[[Connection], None]] = {
    "m007_rechunking": make_schema,
    "m008_lanes": add_lanes,
    "m009_retitles": add_retitles,
    "m010_changes": count_changes,
    "m011_events": add_events,
    "m012_traces": add_traces,
    "m013_vector_offers": add_vector_offers,
}


def migrate(connection: sqlite3.Connection) -> None:
    """Upgrade the schema to this release. Raises StorageError if that isn't possible."""
    applied = _applied(connection)
    pending = [name for name in MIGRATIONS if name not in applied]
    if not pending:
        return
    if not applied:
        # An empty database needs no copy. Its tables are created without `sqlite_utils`, which is slow to import.
        connection.execute("BEGIN IMMEDIATE")
        with connection:
            for statement in _RECORDS.split(";\n\n"):
                connection.execute(statement)
            # `FORMER` is recorded too, because otherwise older releases would run these migrations.
            connection.executemany(_RECORD, [(name,) for name in (*FORMER, *MIGRATIONS)])
            for change in MIGRATIONS.values():
                change(connection)
        return
    import sqlite_utils  # noqa: PLC0415

    _copy(connection, copy_place(Path(connection.execute("PRAGMA database_list").fetchone()["file"])))
    state = sqlite_utils.Migrations("state")
    for name, change in MIGRATIONS.items():
        state(name=name)(lambda db, change=change: change(db.conn))
    state.apply(sqlite_utils.Database(connection))


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
            return _describe(_applied(connection))
    except sqlite3.Error as error:
        raise StorageError(f"The database {path} can't be opened: {error}.") from error


def list_pending_shared(connection: Connection) -> list[PendingMigration]:
    """List the migrations that a server's database still needs, without changing it.

    Raises NotFound if the database has no schema, StorageError if it can't be upgraded.
    """
    return _describe(_find_applied_to_shared(connection))


def _describe(applied: Collection[str]) -> list[PendingMigration]:
    missing = {name: change for name, change in MIGRATIONS.items() if name not in applied}
    return [PendingMigration(name, (change.__doc__ or "").partition("\n")[0]) for name, change in missing.items()]


def migrate_shared(connection: Connection) -> None:
    """Upgrade a server's schema within the caller's transaction, which must exclude other nodes.

    Raises StorageError if the schema is from a newer release, or if nodes of an older release are running: they would
    write rows that this release can't read.
    """
    connection.execute("CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied_at TEXT NOT NULL)")
    applied = _applied_to_shared(connection)
    pending = [name for name in MIGRATIONS if name not in applied]
    # The lock is held until the transaction ends, so that nodes that connect meanwhile wait.
    alone = "SELECT pg_try_advisory_xact_lock(CAST(:lock AS BIGINT)) AS is_alone"
    if applied and pending and not connection.execute(alone, {"lock": SERVING}).fetchone()["is_alone"]:
        raise StorageError(
            "Daemons of an older release still serve this database, and this release changes its tables."
            " Stop them all, then start this one."
        )
    for name in pending:
        MIGRATIONS[name](connection)
        connection.execute(
            "INSERT INTO migrations (name, applied_at) VALUES (:name, CAST(CURRENT_TIMESTAMP AS TEXT))",
            {"name": name},
        )
    connection.execute(rate_limit_rows.SCHEMA)
    _adopt_events(connection)


def _adopt_events(connection: Connection) -> None:
    """Make events that were copied from another database sort before all events that this server will write.

    The transaction numbers (`turn`) of copied events mean nothing on this server.
    """
    connection.execute(
        "UPDATE events SET turn = 0 WHERE turn > 0 AND EXISTS (SELECT 1 FROM events WHERE turn >= next_turn())"
    )
    connection.execute(
        "SELECT setval(pg_get_serial_sequence('events', 'seq'), MAX(seq)) FROM events"
        " HAVING MAX(seq) > (SELECT last_value FROM events_seq_seq)"
    )


def join_shared(connection: Connection) -> None:
    """Take a lock so that newer releases can't change the schema while this connection is open.

    Raises StorageError if a newer release has already changed the schema.
    """
    connection.execute("SELECT pg_advisory_lock_shared(CAST(:lock AS BIGINT))", {"lock": SERVING})
    _applied_to_shared(connection)


def _applied_to_shared(connection: Connection) -> set[str]:
    """Return the migrations applied to a server's database. Raises StorageError if one is unknown."""
    applied = {str(row["name"]) for row in connection.execute("SELECT name FROM migrations")}
    if unknown := sorted(applied.difference(MIGRATIONS)):
        raise StorageError(_NEWER.format(unknown[-1]))
    return applied


def check_shared_current(connection: Connection) -> None:
    """Raise StorageError if a server's schema is not up to date, or NotFound if it has none."""
    if list_pending_shared(connection):
        raise StorageError(_OLDER)


def _find_applied_to_shared(connection: Connection) -> set[str]:
    is_there = connection.execute(
        "SELECT 1 FROM information_schema.tables WHERE table_name = 'migrations' AND table_schema = current_schema()"
    ).fetchall()
    if not is_there:
        raise NotFound(ErrorCode.NOT_FOUND, NO_INSTALLATION)
    return _applied_to_shared(connection)


@contextmanager
def _in_memory(applied: Collection[str]) -> Iterator[sqlite3.Connection]:
    """Open a database in memory, in which these migrations were applied."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.row_factory = sqlite3.Row
        for name, change in MIGRATIONS.items():
            if name in applied:
                change(connection)
        yield connection


def find_foreign(connection: Connection) -> str | None:
    """Return the name of a table, index, view or trigger that is not as this or an older release has made it.

    Returns None if there is none. Raises StorageError if the database can't be upgraded.
    """
    found = read_objects(connection)
    with _in_memory(()) as records:
        for statement in _RECORDS.split(";\n\n"):
            records.execute(statement)
        known = read_objects(records)
    # Before the applied migrations are read: a view in place of their table could compute forever.
    if any(found.get(name) != each for name, each in known.items()):
        return find_difference(found, known)
    with _in_memory(_applied(connection)) as made:
        return find_difference(found, known | read_objects(made))


def list_tables() -> list[Table]:
    """List the schema's tables. A table comes before those that refer to it."""
    with _in_memory(MIGRATIONS) as connection:
        listed = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
        names = [row["name"] for row in listed]
        found = {name: _read_table(connection, name) for name in names}
    ordered: dict[str, Table] = {}
    while len(ordered) < len(found):
        for table in found.values():
            if all(each.parent in {*ordered, table.name} for each in table.references):
                ordered[table.name] = table
    return list(ordered.values())


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
    if not set(MIGRATIONS) <= set(_applied(connection)):
        raise StorageError(_OLDER)


def _applied(connection: Connection) -> list[str]:
    """List the applied migrations, oldest first. Raises StorageError if the database can't be upgraded."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = '_sqlite_migrations'").fetchall():
        return []
    query = "SELECT name FROM _sqlite_migrations WHERE migration_set = 'state' ORDER BY rowid"
    applied = [row["name"] for row in connection.execute(query)]
    if unknown := sorted(set(applied).difference(FORMER, MIGRATIONS)):
        raise StorageError(_NEWER.format(unknown[-1]))
    if applied and "m007_rechunking" not in applied:
        raise StorageError(f"The database was made before the first release (its last migration is {applied[-1]}).")
    return applied


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
            if len(_applied(copied)) < len(_applied(connection)):
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
