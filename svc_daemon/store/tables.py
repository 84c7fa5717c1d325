"""The tables of the state as data: for work on all rows of all tables, such as checking references and moving.

They are read from the schema itself (`migrations.list_tables`), so that a new table can't be forgotten.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from svc_daemon.databases.contract import Connection

#: The values of a row, in the order of the table's columns.
Values = Sequence[str | int | float | None]


@dataclass(frozen=True, slots=True)
class TableReference:
    """A column whose values, unless they are NULL, are in a column of another table."""

    column: str
    parent: str
    parent_column: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the schema."""

    name: str
    columns: tuple[str, ...]
    #: The columns of its primary key, in order.
    key: tuple[str, ...]
    references: tuple[TableReference, ...]


def count_unreferred(connection: Connection, table: Table, reference: TableReference) -> int:
    """Count the rows whose reference names a row that doesn't exist."""
    (count,) = connection.execute(
        f"SELECT COUNT(*) FROM {table.name} c WHERE c.{reference.column} IS NOT NULL AND NOT EXISTS"  # noqa: S608
        f" (SELECT 1 FROM {reference.parent} p WHERE p.{reference.parent_column} = c.{reference.column})"
    ).fetchone()
    return int(count)


def count_rows(connection: Connection, table: Table) -> int:
    (count,) = connection.execute(f"SELECT COUNT(*) FROM {table.name}").fetchone()  # noqa: S608
    return int(count)


def list_rows(connection: Connection, table: Table, after: Values, limit: int) -> list[Values]:
    """List the next rows in the order of the key; `after` has the key of the last row before, or is empty."""
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


def delete_rows(connection: Connection, table: Table) -> None:
    connection.execute(f"DELETE FROM {table.name}")  # noqa: S608
