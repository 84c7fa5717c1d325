"""The schema of the state database, one ordered migration at a time.

Each migration commits together with its record, and the file is copied before a pending one runs. A database that knows
migrations which this release doesn't is newer: it is refused, never downgraded.
"""

import sqlite3
from pathlib import Path

import sqlite_utils
from sqlite_utils import Migrations

from svc_daemon.errors import StorageError
from svc_daemon.store import schemas

state = Migrations("state")


@state()
def m001_teams_buckets_sources(db: sqlite_utils.Database) -> None:
    _run(db, schemas.FIRST)


@state()
def m002_uploads_batches(db: sqlite_utils.Database) -> None:
    _run(db, schemas.SECOND)


@state()
def m003_urls_webhooks(db: sqlite_utils.Database) -> None:
    _run(db, schemas.THIRD)


@state()
def m004_cascades(db: sqlite_utils.Database) -> None:
    _run(db, schemas.FOURTH)


@state()
def m005_rebuilds(db: sqlite_utils.Database) -> None:
    _run(db, schemas.FIFTH)


@state()
def m006_agents(db: sqlite_utils.Database) -> None:
    _run(db, schemas.SIXTH)


@state()
def m007_rechunking(db: sqlite_utils.Database) -> None:
    _run(db, schemas.SEVENTH)


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the schema up to date; raises StorageError for a newer database."""
    db = sqlite_utils.Database(connection)
    known = [migration.name for migration in state.pending(db)]
    applied = [migration.name for migration in state.applied(db)]
    _refuse_newer(applied)
    if applied and known:
        _copy(connection, suffix=f"before-{known[0]}")
    state.apply(db)


def check_current(connection: sqlite3.Connection) -> None:
    """Change nothing; raises StorageError for a database that another release made."""
    db = sqlite_utils.Database(connection)
    applied = [migration.name for migration in state.applied(db)]
    _refuse_newer(applied)
    if state.pending(db):
        raise StorageError(
            "The database was made by an older release; start the service once, which brings it up to date."
        )


def names() -> list[str]:
    """The migrations of this release, oldest first."""
    return [migration.name for migration in state.pending(sqlite_utils.Database(memory=True))]


def _refuse_newer(applied: list[str]) -> None:
    if unknown := sorted(set(applied) - set(names())):
        raise StorageError(f"The database was made by a newer release (it knows {unknown[-1]}); install that release.")


def _copy(connection: sqlite3.Connection, suffix: str) -> None:
    """A whole copy beside the file, so that a migration that goes wrong costs nothing."""
    path = Path(connection.execute("PRAGMA database_list").fetchone()["file"])
    with sqlite3.connect(path.with_name(f"{path.name}.{suffix}")) as copy:
        connection.backup(copy)
    copy.close()


def _run(db: sqlite_utils.Database, statements: str) -> None:
    for statement in statements.split(";\n\n"):
        db.execute(statement)
