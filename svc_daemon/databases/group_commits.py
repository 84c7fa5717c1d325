"""The queue of a database's writer, which commits in groups, and inserts of many rows.

For each statement, sqlite3 releases Python's global lock and then waits for it. During uploads, that takes longer than
the insert. So `executemany` inserts several rows per statement.
"""

import queue
import re
import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from functools import lru_cache, partial
from itertools import chain
from typing import Any, TypeVar

from svc_daemon.errors import ShuttingDown

T = TypeVar("T")
Job = tuple[Callable[[Any], Any], "Future[Any]"]
#: The result of a piece of work, or its error.
Outcome = tuple[Any, BaseException | None]


class GroupWriter:
    """Calls `commit` with groups of queued work, on its own thread. Thread-safe.

    `commit` must resolve the futures.
    """

    def __init__(self, name: str, commit: Callable[[Sequence[Job]], None], limit: int) -> None:
        """`limit` is the maximum number of pieces of work per group."""
        self._commit = commit
        self._limit = limit
        self._is_closed = False
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._submit_lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[Any], T]) -> "Future[T]":
        """Queue `work`. The future is resolved after the commit of this work. Raises ShuttingDown after `close`."""
        future: Future[T] = Future()
        with self._submit_lock:  # nothing must be queued after the None that stops the thread
            if self._is_closed:
                raise ShuttingDown
            self._queue.put((work, future))
        return future

    def close(self) -> bool:
        """Finish the queued work and stop the thread. Returns False if the writer was closed before."""
        with self._submit_lock:
            if self._is_closed:
                return False
            self._is_closed = True
            self._queue.put(None)
        self._thread.join()
        return True

    def _run(self) -> None:
        while (job := self._queue.get()) is not None:
            waiting, last = self._gather(job)
            # Leave out work that was cancelled. From now on, the rest can't be cancelled.
            group = [(work, future) for work, future in waiting if future.set_running_or_notify_cancel()]
            if group:
                self._commit(group)
            if last:
                return

    def _gather(self, first: Job) -> tuple[list[Job], bool]:
        """Return the next group, and whether it is the last."""
        group = [first]
        while len(group) < self._limit:
            try:
                job = self._queue.get_nowait()
            except queue.Empty:
                return group, False
            if job is None:
                return group, True
            group.append(job)
        return group, False


def resolve(future: "Future[Any]", result: Any, failure: BaseException | None) -> None:
    if failure is not None:
        future.set_exception(failure)
    else:
        future.set_result(result)


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
