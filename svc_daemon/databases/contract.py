"""The interface of a database that operations and the store use, the same for SQLite and PostgreSQL.

All work on a database is a function that takes a connection. Such a function may be run again after its writes were
rolled back, so it must change nothing but the database. The caller gets the result of the last run.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")
Parameters = Mapping[str, Any]
#: The parameters of each run of a statement: by name, or in the order of the statement's `?`.
ParameterRows = Iterable[Parameters | Sequence[Any]]

#: The limit for lists that must have all rows.
MOST_ROWS = 2**63 - 1


@dataclass(frozen=True, slots=True)
class InTurn(Generic[T]):
    """Marks work, such as claiming tasks, that reads what other nodes write when they do the same work.

    Nodes that share a database run such work one after another. Otherwise their transactions would conflict again and
    again.
    """

    work: "Callable[[Connection], T]"

    def __call__(self, connection: "Connection") -> T:
        return self.work(connection)


class Row(Protocol):
    """A row of a result. Columns are accessed by name or by position; iterating over a row yields its values."""

    def keys(self) -> Iterable[str]: ...

    def __getitem__(self, column: Any, /) -> Any: ...

    def __iter__(self) -> Iterator[Any]: ...

    def __len__(self) -> int: ...


class Cursor(Protocol):
    """The result of a statement."""

    @property
    def rowcount(self) -> int:
        """The number of rows that the statement changed."""

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """A connection with a running transaction, which the caller of the work function commits or rolls back."""

    def execute(self, statement: str, parameters: Parameters = ..., /) -> Cursor:
        """Run a statement. Its named parameters are written `:name`."""

    def executemany(self, statement: str, parameters: ParameterRows, /) -> Cursor:
        """Run a statement for each row of parameters. Rows with parameters in order are faster than rows with names."""


class Database(Protocol):
    """Access to one database. Thread-safe."""

    #: Number of pieces of work that were committed so far.
    operations: int
    #: Number of commits so far; `operations` divided by `commits` is the average group size.
    commits: int
    #: Seconds that these commits took, which is how long the disk or the server took to make them durable.
    commits_s: float

    @property
    def is_broken(self) -> bool:
        """Whether writes have stopped because of an I/O error."""

    def submit(self, work: Callable[[Connection], T]) -> "Future[T]":
        """Queue `work` for the writer; the future is resolved after the commit that includes it."""

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in the writer's transaction and wait until it is durable."""

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work`, which must only read, in one snapshot."""

    def look(self, work: Callable[[Connection], T]) -> T:
        """Run `work`, which must execute a single statement that reads, without an explicit transaction."""

    def close(self) -> None:
        """Finish the queued work, then close all connections."""
