"""The interface of a database, the same for SQLite and PostgreSQL.

Callers pass their work as a function that takes a connection. The function may run again after its writes were rolled
back, so it must change nothing but the database.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")
Parameters = Mapping[str, Any]
#: The parameters for each run of a statement, either named or positional.
ParameterRows = Iterable[Parameters | Sequence[Any]]

#: Pass this as the `limit` of a list that must have all rows.
MOST_ROWS = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Exclusive(Generic[T]):
    """Marks work that conflicts with the same work on other nodes, such as claiming tasks.

    Nodes run such work one after another. Otherwise, their transactions would be rolled back again and again.
    """

    work: "Callable[[Connection], T]"

    def __call__(self, connection: "Connection") -> T:
        return self.work(connection)


class Row(Protocol):
    """A row of a result, with access by name or position. Iteration yields its values."""

    def keys(self) -> Iterable[str]: ...

    def __getitem__(self, column: Any, /) -> Any: ...

    def __iter__(self) -> Iterator[Any]: ...

    def __len__(self) -> int: ...


def values_of(row: Row) -> dict[str, Any]:
    """Return the row's values by column. `dict(row)` takes five times as long, because it searches for each column."""
    return dict(zip(row.keys(), row, strict=True))


class Cursor(Protocol):
    """The result of a statement."""

    @property
    def rowcount(self) -> int:
        """Number of rows that the statement changed."""

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """A connection with a running transaction, which the caller commits or rolls back."""

    def execute(self, statement: str, parameters: Parameters = ..., /) -> Cursor:
        """Run a statement. Its parameters are written `:name`."""

    def executemany(self, statement: str, parameters: ParameterRows, /) -> Cursor:
        """Run a statement for each row of parameters. Positional parameters are faster than named ones."""


class Database(Protocol):
    """An SQLite or PostgreSQL database. Thread-safe."""

    #: Number of pieces of work committed so far.
    operations: int
    #: Number of commits so far. `operations / commits` is the average number of pieces of work per commit.
    commits: int
    #: Total time of the commits in seconds. Most of it is spent on the disk or in the server.
    commits_s: float

    @property
    def is_broken(self) -> bool:
        """Whether an I/O error has stopped writes."""

    def submit(self, work: Callable[[Connection], T]) -> "Future[T]":
        """Queue `work` for the writer. The future is resolved after the commit of this work."""

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in the writer's transaction, and wait until its changes are durable."""

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work`, which only reads, in one snapshot."""

    def look(self, work: Callable[[Connection], T]) -> T:
        """Run `work`, a single statement that reads, without a transaction."""

    def empty_log(self) -> None:
        """Remove deleted rows from the write-ahead log, if it is a file of this process."""

    def close(self) -> None:
        """Finish the queued work, then close all connections."""
