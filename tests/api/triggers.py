"""Has the state's database refuse to change some rows, as if something else still needed them."""

from svc_daemon.databases.contract import Connection
from svc_daemon.databases.sqlite import SqliteDatabase
from tests.api.daemons import Daemon


def refuse(daemon: Daemon, change: str, table: str, condition: str = "1 = 1") -> None:
    """Refuse this change, `INSERT`, `UPDATE` or `DELETE`, of the table's rows; `condition` may name `OLD` and `NEW`."""
    trigger = f"CREATE TRIGGER refused BEFORE {change} ON {table}"
    if isinstance(daemon.context.database, SqliteDatabase):
        statements = [f"{trigger} WHEN {condition} BEGIN SELECT RAISE(ABORT, 'refused by the test'); END"]
    else:
        raising = "BEGIN RAISE EXCEPTION 'refused by the test'; END"
        statements = [
            f"CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $${raising}$$",
            f"{trigger} FOR EACH ROW WHEN ({condition}) EXECUTE FUNCTION refuse()",
        ]

    def work(connection: Connection) -> None:
        for statement in statements:
            connection.execute(statement)

    daemon.write(work)


def allow(daemon: Daemon, table: str) -> None:
    """Allow it again."""
    is_sqlite = isinstance(daemon.context.database, SqliteDatabase)
    daemon.write(lambda c: c.execute("DROP TRIGGER refused" if is_sqlite else f"DROP TRIGGER refused ON {table}"))
