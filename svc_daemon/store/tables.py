"""Describes the tables of the state database, for work on all of them, such as checks and moves."""

from collections.abc import Sequence
from dataclasses import dataclass

from svc_daemon.databases.contract import Connection

#: A row's values, in the order of the columns.
Values = Sequence[str | int | float | None]


@dataclass(frozen=True, slots=True)
class TableReference:
    """A column that refers to another table's column, like a foreign key."""

    column: str
    parent: str
    parent_column: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the schema."""

    name: str
    columns: tuple[str, ...]
    #: The primary key's columns, in order.
    key: tuple[str, ...]
    references: tuple[TableReference, ...]


def count_unreferred(connection: Connection, table: Table, reference: TableReference) -> int:
    """Count the rows that refer to a row that doesn't exist."""
    (count,) = connection.execute(
        f"SELECT COUNT(*) FROM {table.name} c WHERE c.{reference.column} IS NOT NULL AND NOT EXISTS"  # noqa: S608
        f" (SELECT 1 FROM {reference.parent} p WHERE p.{reference.parent_column} = c.{reference.column})"
    ).fetchone()
    return int(count)


def count_rows(connection: Connection, table: Table) -> int:
    (count,) = connection.execute(f"SELECT COUNT(*) FROM {table.name}").fetchone()  # noqa: S608
    return int(count)


def list_rows(connection: Connection, table: Table, after: Values, limit: int) -> list[Values]:
    """List the next rows, ordered by primary key, after the key `after`."""
    order = ", ".join(table.key)
    names = ", ".join(f":k{place}" for place in range(len(table.key)))
    condition = f"WHERE ({order}) > ({names})" if after else ""
    rows = connection.execute(
        f"SELECT {', '.join(table.columns)} FROM {table.name} {condition} ORDER BY {order} LIMIT :limit",  # noqa: S608
        {"limit": limit} | {f"k{place}": value for place, value in enumerate(after)},
    ).fetchall()
    return [tuple(row) for row in rows]


def key_of(table: Table, row: Values) -> list[str | int | float | None]:
    return [row[table.columns.index(column)] for column in table.key]


def insert_rows(connection: Connection, table: Table, rows: Sequence[Values]) -> None:
    names = ", ".join(f":c{place}" for place in range(len(table.columns)))
    connection.executemany(
        f"INSERT INTO {table.name} ({', '.join(table.columns)}) VALUES ({names})",  # noqa: S608
        [{f"c{place}": value for place, value in enumerate(row)} for row in rows],
    )


def delete_team_rows(
    connection: Connection, table: Table, team_id: str, limit: int, *, except_for: str = "1 = 0"
) -> int:
    """Delete at most `limit` rows of the team, and return how many. Rows that match `except_for` are kept."""
    of_team = "team_id = :team_id"
    if "team_id" not in table.columns:
        # Rows without a team id belong to the team of the row that they refer to.
        owners = [
            f"{each.column} IN (SELECT {each.parent_column} FROM {each.parent} WHERE {of_team})"  # noqa: S608
            for each in table.references
        ]
        if not owners:
            return 0
        of_team = owners[0]
    key = ", ".join(table.key)
    chosen = f"SELECT {key} FROM {table.name} WHERE {of_team} AND NOT ({except_for}) LIMIT :limit"  # noqa: S608
    cursor = connection.execute(
        f"DELETE FROM {table.name} WHERE ({key}) IN ({chosen})",  # noqa: S608
        {"team_id": team_id, "limit": limit},
    )
    return cursor.rowcount


def delete_rows(connection: Connection, table: Table) -> None:
    connection.execute(f"DELETE FROM {table.name}")  # noqa: S608
