"""Creates and upgrades the schema of the state on a database server, which all nodes of a cluster share."""

from svc_daemon.cluster import rate_limit_rows
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import NotFound, StorageError
from svc_daemon.store import migrations
from svc_daemon.store.migrations import PendingMigration
from svc_daemon.wire.light.error_codes import ErrorCode

#: Key of an advisory lock, which each node that may write holds in shared mode.
SERVING = 0x7376635F73727667
NO_INSTALLATION = "There is no installation in the database that SVC_STATE_URL names."


def list_pending_shared(connection: Connection) -> list[PendingMigration]:
    """List the migrations that a server's database still needs, without changing it.

    Raises NotFound if the database has no schema, StorageError if it can't be upgraded.
    """
    return migrations.describe_pending(_find_applied_to_shared(connection))


def migrate_shared(connection: Connection) -> None:
    """Upgrade a server's schema within the caller's transaction, which must exclude other nodes.

    Raises StorageError if the schema is from a newer release, or if nodes of an older release are running: they would
    write rows that this release can't read.
    """
    connection.execute("CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied_at TEXT NOT NULL)")
    applied = _applied_to_shared(connection)
    pending = [name for name in migrations.MIGRATIONS if name not in applied]
    # The lock is held until the transaction ends, so that nodes that connect meanwhile wait.
    alone = "SELECT pg_try_advisory_xact_lock(CAST(:lock AS BIGINT)) AS is_alone"
    if applied and pending and not connection.execute(alone, {"lock": SERVING}).fetchone()["is_alone"]:
        raise StorageError(
            "Daemons of an older release still serve this database, and this release changes its tables."
            " Stop them all, then start this one."
        )
    for name in pending:
        migrations.MIGRATIONS[name](connection)
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
    return set(
        migrations.check_applied([str(row["name"]) for row in connection.execute("SELECT name FROM migrations")])
    )


def check_shared_current(connection: Connection) -> None:
    """Raise StorageError if a server's schema is not up to date, or NotFound if it has none."""
    if list_pending_shared(connection):
        raise StorageError(migrations.OLDER)


def _find_applied_to_shared(connection: Connection) -> set[str]:
    is_there = connection.execute(
        "SELECT 1 FROM information_schema.tables WHERE table_name = 'migrations' AND table_schema = current_schema()"
    ).fetchall()
    if not is_there:
        raise NotFound(ErrorCode.NOT_FOUND, NO_INSTALLATION)
    return _applied_to_shared(connection)
