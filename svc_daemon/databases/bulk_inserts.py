"""Inserts of many rows in few statements.

For each statement, Python's sqlite3 releases the interpreter's lock and acquires it again, for which it must wait if
another thread has acquired the lock in between. While many files are uploaded, that takes longer than the insert
itself. So the rows of an `executemany` are inserted in groups, with one statement for each group.
"""

import re
import sqlite3
from collections.abc import Iterable
from functools import lru_cache, partial
from itertools import chain
from typing import Any

#: Number of rows per statement. Twice as many would save little more time, and each table's statement would take longer
#: to compile.
GROUP_ROWS = 16
#: Matches an insert of one row, in three groups: what precedes the row, the row in its parentheses, and what follows
#: it.
_INSERT = re.compile(r"(\s*INSERT INTO \w+ \([^()]*\)\s+VALUES )(\((?:[^()']|\(\)|'[^']*')*\))(.*)", re.DOTALL)
#: A quoted text, or a named parameter.
_PARAMETER = re.compile(r"'[^']*'|:(\w+)")


class _Inserted(sqlite3.Cursor):
    """A cursor whose `rowcount` includes the rows of all groups."""

    inserted = 0

    @property
    def rowcount(self) -> int:
        return self.inserted


class GroupingConnection(sqlite3.Connection):
    """A connection whose `executemany` inserts several rows per statement; otherwise an ordinary one."""

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


#: Opens a `GroupingConnection`, with the arguments of `sqlite3.connect`.
connect = partial(sqlite3.connect, factory=GroupingConnection)


@lru_cache
def group_rows(statement: str) -> tuple[str, tuple[str, ...]] | None:
    """Turn an insert of one row into one of `GROUP_ROWS` rows. Returns it and the names of a row's parameters, or None.

    Returns None if the statement isn't an insert of one row, or has parameters after the row. The parameters of the
    returned statement have no names. If those of the given statement have none either, no names are returned, and the
    order of the parameters is the same.
    """
    match = _INSERT.fullmatch(statement)
    # A parameter after the row would have one value for all rows of a group.
    if match is None or "?" in match[3] or any(_PARAMETER.findall(match[3])):
        return None
    head, row, tail = match.groups()
    names = tuple(name for name in _PARAMETER.findall(row) if name)
    unnamed = _PARAMETER.sub(lambda found: "?" if found[1] else found[0], row)
    return head + ", ".join([unnamed] * GROUP_ROWS) + tail, names
