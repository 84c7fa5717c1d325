"""The marks of a move, as facts: one at the installation that is moved, one where it is moved to."""

import json
from dataclasses import asdict, dataclass

from svc_daemon.databases.contract import Connection
from svc_daemon.store.facts import delete_fact, find_fact, put_fact

#: The names of the facts. `ARRIVED` stays: it has the id of the move by which the installation came here.
_DEPARTURE, _ARRIVAL, _ARRIVED = MARKS = ("moved_to", "moving_here", "moved_here")


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """The mark of an installation that is being moved, or was moved: no service serves it."""

    move_id: str
    #: Where it is moved to, as messages call that.
    to: str
    began_at: str
    is_done: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """The mark of a target that has a part of an installation, and how many of its rows are there."""

    move_id: str
    installation_id: str
    #: The table that was being copied, and the key of the last row that was; empty at first.
    table: str = ""
    after: tuple[str | int | float | None, ...] = ()


def find_departure(connection: Connection) -> Departure | None:
    text = find_fact(connection, _DEPARTURE)
    return Departure(**json.loads(text)) if text else None


def put_departure(connection: Connection, departure: Departure) -> None:
    put_fact(connection, _DEPARTURE, json.dumps(asdict(departure)))


def delete_departure(connection: Connection) -> None:
    delete_fact(connection, _DEPARTURE)


def find_arrival(connection: Connection) -> Arrival | None:
    text = find_fact(connection, _ARRIVAL)
    if not text:
        return None
    fields = json.loads(text)
    return Arrival(**{**fields, "after": tuple(fields["after"])})


def put_arrival(connection: Connection, arrival: Arrival) -> None:
    put_fact(connection, _ARRIVAL, json.dumps(asdict(arrival)))


def finish_arrival(connection: Connection, arrival: Arrival) -> None:
    """Replace the mark by the record that the move is complete."""
    delete_fact(connection, _ARRIVAL)
    put_fact(connection, _ARRIVED, arrival.move_id)


def find_arrived(connection: Connection) -> str | None:
    """Return the id of the last complete move to this database."""
    return find_fact(connection, _ARRIVED)
