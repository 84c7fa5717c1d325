"""Inserts many rows with few statements.

For each statement, sqlite3 releases Python's global lock and then waits for it. During uploads, that takes longer than
the insert. So `executemany` inserts several rows per statement.
"""

import re
import sqlite3
from collections.abc import Iterable
from functools import lru_cache, partial
from itertools import chain
from typing import Any

#: Number of rows per statement. More rows would save little time.
GROUP_ROWS = 16
#: Matches an insert of one row. The groups are the head, the row in parentheses, and the rest.
_INSERT = re.compile(r"(\s*INSERT INTO \w+ \([^()]*\)\s+VALUES )(\((?:[^()']|\(\)|'[^']*')*\))(.*)", re.DOTALL)
#: Matches a quoted text, which is left as it is, or a named parameter.
_PARAMETER = re.compile(r"'[^']*'|:(\w+)")


class _Inserted(sqlite3.Cursor):
    """A cursor whose `rowcount` is the sum over all statements of an `executemany`."""

    inserted = 0

    @property
    def rowcount(self) -> int:
        return self.inserted


class GroupingConnection(sqlite3.Connection):
    """An ordinary connection, but its `executemany` inserts several rows per statement."""

    def executemany(self, statement: str, parameters: Iterable[Any], /) -> sqlite3.Cursor:
        rows = list(parameters)
        grouped = group_rows(statement) if len(rows) >= GROUP_ROWS else None
        if grouped is None:
            return super().executemany(statement, rows)
        group, names = grouped
        cursor, whole = self.cursor(_Inserted), len(rows) - len(rows) % GROUP_ROWS
        values = [[row[name] for name in names] for row in rows] if names else rows
        for start in range(0, whole, GROUP_ROWS):
            cursor.inserted += self.execute(group, [*chain(*values[start : start + GROUP_ROWS])]).rowcount
        if whole < len(rows):
            cursor.inserted += super().executemany(statement, rows[whole:]).rowcount
        return cursor


#: Like `sqlite3.connect`, but opens a `GroupingConnection`.
connect = partial(sqlite3.connect, factory=GroupingConnection)


@lru_cache
def group_rows(statement: str) -> tuple[str, tuple[str, ...]] | None:
    """Turn an insert of one row into one of `GROUP_ROWS` rows. Returns the new statement and a row's parameter names.

    Returns None if the statement isn't an insert of one row, or has parameters after the row. In the new statement, all
    parameters are `?`. If the old statement has only such parameters, no names are returned.
    """
    match = _INSERT.fullmatch(statement)
    # The part after the row occurs once in the new statement, so a parameter there can't have a value for each row.
    if match is None or "?" in match[3] or any(_PARAMETER.findall(match[3])):
        return None
    head, row, tail = match.groups()
    names = tuple(name for name in _PARAMETER.findall(row) if name)
    unnamed = _PARAMETER.sub(lambda found: "?" if found[1] else found[0], row)
    return head + ", ".join([unnamed] * GROUP_ROWS) + tail, names
