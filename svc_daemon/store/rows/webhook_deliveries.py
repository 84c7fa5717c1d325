"""Deliveries: webhook calls that report an event, each with all its attempts.

A source has at most one delivery per kind of event (`source.ready`, `source.failed`), however often it becomes ready.
"""

import json
from dataclasses import dataclass

from svc_daemon.databases.contract import MOST_ROWS, Connection, Row
from svc_daemon.errors import NotFound
from svc_daemon.store.columns import column_values, insertion, read_objects
from svc_daemon.wire.light import webhook_calls
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.light.webhook_calls import Standing
from svc_daemon.wire.webhooks import CallError


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryRow:
    """A webhook call that reports an event to a URL."""

    #: Id of the event, the same in every attempt.
    id: str
    team_id: str
    source_id: str
    #: `source.ready` or `source.failed`.
    event: str
    url: str
    #: The JSON text as it is signed and sent.
    body: str
    #: `pending`, `delivered` or `failed`.
    status: str = webhook_calls.PENDING
    tries_left: int = webhook_calls.TRIES
    #: When the next attempt is due; None if there is none.
    due_at: str | None
    created_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt to make a webhook call."""

    delivery_id: str
    started_at: str
    duration_ms: int
    #: HTTP status of the response; None if there was none.
    http_status: int | None
    #: `code`, `message` and `reason`, if there was no response.
    error: CallError | None
    #: Number of the attempt, from 1; assigned when it is stored.
    attempt: int = 0

    @classmethod
    def from_row(cls, row: Row) -> "Attempt":
        values = dict(row)
        read_objects(values, "error")
        return cls(**values)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryFilter:
    """Which deliveries to list; None means any."""

    status: str | None = None
    source_id: str | None = None
    #: List only deliveries about sources in these buckets.
    bucket_ids: tuple[str, ...] | None = None
    #: List only deliveries with ids greater than this.
    after: str = ""
    limit: int = MOST_ROWS


def create_delivery(connection: Connection, delivery: DeliveryRow) -> None:
    """Create the delivery, unless the source already has a delivery for this event."""
    connection.execute(
        f"{insertion(DeliveryRow, 'deliveries')} ON CONFLICT (source_id, event) DO NOTHING", column_values(delivery)
    )


def get_delivery(connection: Connection, team_id: str, delivery_id: str) -> DeliveryRow:
    """Return the delivery with this id. Raises NotFound if the team has none."""
    row = connection.execute(
        "SELECT * FROM deliveries WHERE id = :id AND team_id = :team_id", {"id": delivery_id, "team_id": team_id}
    ).fetchone()
    if row is None:
        raise NotFound(ErrorCode.NOT_FOUND, f"There is no delivery {delivery_id!r}.")
    return DeliveryRow(**dict(row))


def list_deliveries(connection: Connection, team_id: str, chosen: DeliveryFilter) -> list[DeliveryRow]:
    """List the team's deliveries that match the filter, oldest first."""
    rows = connection.execute(
        "SELECT * FROM deliveries WHERE team_id = :team_id AND id > :after"
        " AND (CAST(:status AS TEXT) IS NULL OR status = :status)"
        " AND (CAST(:source_id AS TEXT) IS NULL OR source_id = :source_id)"
        " AND (CAST(:bucket_ids AS TEXT) IS NULL OR source_id IN (SELECT source_id FROM memberships"
        "   WHERE bucket_id IN (SELECT value FROM json_each(:bucket_ids))))"
        " ORDER BY id LIMIT :limit",
        {
            "team_id": team_id,
            "after": chosen.after,
            "status": chosen.status,
            "source_id": chosen.source_id,
            "bucket_ids": None if chosen.bucket_ids is None else json.dumps(chosen.bucket_ids),
            "limit": chosen.limit,
        },
    ).fetchall()
    return [DeliveryRow(**dict(row)) for row in rows]


def list_attempts(connection: Connection, delivery_ids: list[str]) -> dict[str, list[Attempt]]:
    """Map each delivery's id to its attempts, oldest first."""
    rows = connection.execute(
        "SELECT * FROM delivery_attempts WHERE delivery_id IN (SELECT value FROM json_each(:ids))"
        " ORDER BY delivery_id, attempt",
        {"ids": json.dumps(delivery_ids)},
    ).fetchall()
    found: dict[str, list[Attempt]] = {}
    for attempt in map(Attempt.from_row, rows):
        found.setdefault(attempt.delivery_id, []).append(attempt)
    return found


def list_due(connection: Connection, now: str, busy: list[str], limit: int) -> list[str]:
    """List the ids of due deliveries, except those in `busy`, which are being attempted.

    Teams take turns, and so do the receivers of a team: first each one's longest overdue delivery, then each one's
    second. What is being attempted counts as taken, so a receiver that never answers doesn't get every free slot.
    """
    rows = connection.execute(
        "WITH waiting AS ("
        "   SELECT d.*, id IN (SELECT value FROM json_each(:busy)) AS is_busy FROM deliveries d WHERE due_at <= :now),"
        " turns AS (SELECT waiting.*, ROW_NUMBER() OVER ("
        "   PARTITION BY team_id, url ORDER BY is_busy DESC, due_at, id) AS turn FROM waiting)"
        " SELECT id FROM (SELECT turns.*, ROW_NUMBER() OVER ("
        "   PARTITION BY team_id ORDER BY is_busy DESC, turn, due_at, id) AS team_turn FROM turns) AS taken"
        " WHERE NOT is_busy ORDER BY team_turn, due_at, id LIMIT :limit",
        {"now": now, "busy": json.dumps(busy), "limit": limit},
    ).fetchall()
    return [row["id"] for row in rows]


def find_due(connection: Connection, delivery_id: str, now: str) -> DeliveryRow | None:
    """Return the delivery if it is due, or None."""
    row = connection.execute(
        "SELECT * FROM deliveries WHERE id = :id AND due_at <= :now", {"id": delivery_id, "now": now}
    ).fetchone()
    return DeliveryRow(**dict(row)) if row else None


def next_delivery_due(connection: Connection, busy: list[str]) -> str | None:
    """Return when the next delivery is due, ignoring the ids in `busy`; None if there is none."""
    row = connection.execute(
        "SELECT MIN(due_at) AS due FROM deliveries"
        " WHERE due_at IS NOT NULL AND id NOT IN (SELECT value FROM json_each(:busy))",
        {"busy": json.dumps(busy)},
    ).fetchone()
    due: str | None = row["due"]
    return due


def create_attempt(connection: Connection, attempt: Attempt) -> None:
    connection.execute(
        "INSERT INTO delivery_attempts (delivery_id, attempt, started_at, duration_ms, http_status, error)"
        " SELECT :delivery_id, COALESCE(MAX(attempt), 0) + 1, :started_at, :duration_ms, :http_status, :error"
        " FROM delivery_attempts WHERE delivery_id = :delivery_id",
        column_values(attempt),
    )


def move_delivery(connection: Connection, delivery: DeliveryRow, standing: Standing, due_at: str | None) -> None:
    """Store the result of an attempt, unless the delivery has changed since it was read."""
    connection.execute(
        "UPDATE deliveries SET status = :status, tries_left = :tries_left, due_at = :due_at"
        " WHERE id = :id AND due_at = :was_due_at",
        {
            "id": delivery.id,
            "status": standing.status,
            "tries_left": standing.tries_left,
            "due_at": due_at,
            "was_due_at": delivery.due_at,
        },
    )


def abandon_delivery(connection: Connection, delivery_id: str) -> None:
    """End the delivery as failed, without reading its row."""
    connection.execute(
        "UPDATE deliveries SET status = 'failed', tries_left = 0, due_at = NULL WHERE id = :id", {"id": delivery_id}
    )


def resend_delivery(connection: Connection, delivery_id: str, due_at: str) -> None:
    """Make the delivery pending again, for one more attempt at `due_at`."""
    connection.execute(
        "UPDATE deliveries SET status = 'pending', tries_left = 1, due_at = :due_at WHERE id = :id",
        {"id": delivery_id, "due_at": due_at},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretGeneration:
    #: How often the team has rotated its webhook secret.
    generation: int = 0
    #: When the secret was last rotated; None if never.
    rotated_at: str | None = None


def find_generation(connection: Connection, team_id: str) -> SecretGeneration:
    row = connection.execute(
        "SELECT generation, rotated_at FROM webhook_secrets WHERE team_id = :team_id", {"team_id": team_id}
    ).fetchone()
    return SecretGeneration(**dict(row)) if row else SecretGeneration()


def rotate_secret(connection: Connection, team_id: str, rotated_at: str) -> SecretGeneration:
    rows = connection.execute(
        "INSERT INTO webhook_secrets (team_id, generation, rotated_at) VALUES (:team_id, 1, :rotated_at)"
        " ON CONFLICT (team_id) DO UPDATE SET generation = webhook_secrets.generation + 1,"
        " rotated_at = excluded.rotated_at RETURNING generation, rotated_at",
        {"team_id": team_id, "rotated_at": rotated_at},
    ).fetchall()
    return SecretGeneration(**dict(rows[0]))
