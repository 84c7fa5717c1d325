"""Compares the schema of an SQLite file with the one that this program makes.

A file from a stranger may have triggers that change rows, views in place of tables, and tables that compute values.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from svc_daemon.databases.contract import Connection

#: Tables that SQLite itself makes in any file, for numbers of rows and for statistics.
_OF_SQLITE = {
    "sqlite_sequence": "CREATE TABLE sqlite_sequence(name,seq)",
    "sqlite_stat1": "CREATE TABLE sqlite_stat1(tbl,idx,stat)",
}
_TABLE = re.compile(r"(CREATE TABLE \w+)\((.*)\)([^()]*)")


class SchemaObject(NamedTuple):
    """A table, index, view or trigger."""

    kind: str
    #: The parts of the statement that made it, without white space and quotation marks. Columns are in any order, since
    #: migrations append them.
    parts: tuple[str, ...]


def read_objects(connection: Connection) -> dict[str, SchemaObject]:
    """Map the names of all tables, indexes, views and triggers to what they are, without using any of them."""
    rows = connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
    return {
        row["name"]: SchemaObject(row["type"], _split(row["sql"]))
        for row in rows
        # The index of a primary key or unique column has no statement of its own.
        if row["sql"] is not None and row["sql"] != _OF_SQLITE.get(row["name"])
    }


def find_difference(found: Mapping[str, SchemaObject], known: Mapping[str, SchemaObject]) -> str | None:
    """Return the name of an object that is missing or differs in one of the schemas; None if they are the same."""
    return next((name for name in sorted({*found, *known}) if found.get(name) != known.get(name)), None)


def _split(statement: str) -> tuple[str, ...]:
    plain = re.sub(r"\s*([(),])\s*", r"\1", re.sub(r"\s+", " ", statement.replace('"', "")))
    table = _TABLE.fullmatch(plain)
    return (plain,) if table is None else (table[1], *sorted(table[2].split(",")), table[3])
