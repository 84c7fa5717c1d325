"""Records that an installation is being moved: one record in the old database, and one in the new."""

import json
from dataclasses import asdict, dataclass
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from svc_daemon.databases.contract import Connection
from svc_daemon.errors import StorageError
from svc_daemon.store.rows.teams import delete_fact, find_fact, put_fact

T = TypeVar("T")

#: Names of facts (see `store.rows.teams`). `moved_here` has the id of the last completed move to this
#: database. It is never deleted.
_DEPARTURE, _ARRIVAL, _ARRIVED = MARKS = ("moved_to", "moving_here", "moved_here")


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """Marks an installation that is being moved away or was moved. No daemon serves it."""

    move_id: str
    #: Where the installation is moved to, as shown in messages.
    to: str
    began_at: str
    is_done: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """Marks a database to which an installation is being moved, with the progress of the copy."""

    move_id: str
    installation_id: str
    #: The table being copied, and the key of its last copied row.
    table: str = ""
    after: tuple[str | int | float | None, ...] = ()


def find_departure(connection: Connection) -> Departure | None:
    return _find(connection, _DEPARTURE, Departure)


def _find(connection: Connection, name: str, kind: type[T]) -> T | None:
    text = find_fact(connection, name)
    try:
        return TypeAdapter(kind).validate_json(text) if text else None
    except ValidationError as error:
        raise StorageError(f"The database says that it is being moved, but its row {name!r} is damaged.") from error


def put_departure(connection: Connection, departure: Departure) -> None:
    put_fact(connection, _DEPARTURE, json.dumps(asdict(departure)))


def delete_departure(connection: Connection) -> None:
    delete_fact(connection, _DEPARTURE)


def find_arrival(connection: Connection) -> Arrival | None:
    return _find(connection, _ARRIVAL, Arrival)


def put_arrival(connection: Connection, arrival: Arrival) -> None:
    put_fact(connection, _ARRIVAL, json.dumps(asdict(arrival)))


def finish_arrival(connection: Connection, arrival: Arrival) -> None:
    """Record that the move to this database is complete."""
    delete_fact(connection, _ARRIVAL)
    put_fact(connection, _ARRIVED, arrival.move_id)


def find_arrived(connection: Connection) -> str | None:
    """Return the id of the last completed move to this database, or None."""
    return find_fact(connection, _ARRIVED)
