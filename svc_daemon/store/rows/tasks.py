"""Tasks: the queue of background work. A worker that claims a task gets a lease and a new token for it.

Claims don't lock rows, because only one node at a time claims tasks (see `Exclusive`).
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf

from svc_daemon.core import lanes
from svc_daemon.databases.contract import Connection, Row, values_of
from svc_daemon.errors import NotFound
from svc_daemon.store.columns import column_values, insertion, read_objects
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.sources import SourceError


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """A stored task: one piece of background work, such as indexing a source."""

    id: str
    team_id: str
    type: str
    #: `queued`, `running`, `succeeded`, `failed` or `canceled`.
    status: str = "queued"
    source_id: str | None
    #: Number of attempts so far. An attempt that `park_task` ended, for example at a shutdown, isn't counted.
    attempt: int = 0
    #: Fencing token. Each claim increments it; older claims can't write.
    token: int = 0
    max_attempts: int
    #: When the worker's lease expires, in seconds of the shared clock (`Clock.lease_s`).
    lease_until_s: float | None = None
    stage: str | None = None
    chunks_done: int = 0
    chunks_total: int | None = None
    error: SourceError | None = None
    next_attempt_at: str | None = None
    created_at: str
    started_at: str | None = None
    finished_at: str | None = None
    #: How the document is read: `prompt`, `wave`, `single`, `suspect` or `scan` (see `core.lanes`).
    lane: str = lanes.SINGLE
    #: The `traceparent` of the request that queued the task, if traced.
    trace: str | None = None
    #: Recognised pages of a scan, all of its pages (None if it is none), and the token of the last claim to read one.
    pages_done: int = 0
    pages_total: int | None = None
    pages_token: int = 0
    #: How often the lease ended because the process that held it had died.
    deaths: int = 0

    @classmethod
    def from_row(cls, row: Row) -> "TaskRow":
        values = values_of(row)
        read_objects(values, "error")
        return cls(**values)


def create_tasks(connection: Connection, tasks: Iterable[TaskRow]) -> None:
    connection.executemany(insertion(TaskRow, "tasks"), map(column_values, tasks))


def get_task(connection: Connection, team_id: str, task_id: str) -> TaskRow:
    """Return the task with this id. Raises NotFound if the team has none."""
    row = connection.execute(
        "SELECT * FROM tasks WHERE id = :id AND team_id = :team_id", {"id": task_id, "team_id": team_id}
    ).fetchone()
    if row is None:
        raise NotFound(ErrorCode.TASK_NOT_FOUND, f"There is no task {task_id!r}.")
    return TaskRow.from_row(row)


def find_waiting(connection: Connection, team_id: str, task_type: str, now: str) -> str | None:
    """Return the id of the team's oldest due task of this type in the lane `single` (see `core.lanes`), or None."""
    row = connection.execute(
        "SELECT id FROM tasks WHERE finished_at IS NULL AND type = :type AND status = 'queued' AND lane = 'single'"
        " AND team_id = :team_id AND (next_attempt_at IS NULL OR next_attempt_at <= :now) ORDER BY id LIMIT 1",
        {"team_id": team_id, "type": task_type, "now": now},
    ).fetchone()
    return row["id"] if row else None


def list_waiting_teams(connection: Connection, task_type: str, among: Sequence[str]) -> dict[str, list[str]]:
    """Map lanes (see `core.lanes`) to the ids of teams with queued tasks of this type there, whether due or not.

    The query skips from team to team, so it doesn't read every task.
    """
    rows = connection.execute(
        "WITH RECURSIVE line (lane, team_id) AS ("
        " SELECT json_each.value, (SELECT MIN(t.team_id) FROM tasks t WHERE t.finished_at IS NULL AND t.type = :type"
        "   AND t.status = 'queued' AND t.lane = json_each.value)"
        " FROM json_each(:lanes)"
        " UNION ALL"
        " SELECT line.lane, (SELECT MIN(t.team_id) FROM tasks t WHERE t.finished_at IS NULL AND t.type = :type"
        "   AND t.status = 'queued' AND t.lane = line.lane AND t.team_id > line.team_id)"
        " FROM line WHERE line.team_id IS NOT NULL)"
        " SELECT lane, team_id FROM line WHERE team_id IS NOT NULL",
        {"type": task_type, "lanes": json.dumps(among)},
    ).fetchall()
    teams: dict[str, list[str]] = {}
    for row in sorted(rows, key=lambda row: among.index(row["lane"])):
        teams.setdefault(row["lane"], []).append(row["team_id"])
    return teams


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskQueue:
    """The tasks of one type, one team and one lane (how the document is read)."""

    type: str
    lane: str
    team_id: str


def list_waiting(connection: Connection, queue: TaskQueue, now: str, limit: int) -> list[tuple[str, int]]:
    """List the queue's oldest due tasks: each task's id and its source's size in bytes. Deadly suspects come last."""
    rows = connection.execute(
        "SELECT t.id, COALESCE(s.size_bytes, 0) AS size_bytes FROM tasks t LEFT JOIN sources s ON s.id = t.source_id"  # noqa: S608
        " WHERE t.finished_at IS NULL AND t.type = :type AND t.status = 'queued' AND t.lane = :lane"
        " AND t.team_id = :team_id AND (t.next_attempt_at IS NULL OR t.next_attempt_at <= :now)"
        f" ORDER BY {'t.deaths, ' if queue.lane == lanes.SUSPECT else ''}t.id LIMIT :limit",
        {"type": queue.type, "lane": queue.lane, "team_id": queue.team_id, "now": now, "limit": limit},
    ).fetchall()
    return [(row["id"], row["size_bytes"]) for row in rows]


def claim_tasks(
    connection: Connection, task_ids: Sequence[str], now: str, lease_until_s: float, stage: str = "extract"
) -> list[TaskRow]:
    """Claim those tasks that are still queued, and return them ordered by id. Each claim counts as an attempt."""
    rows = connection.execute(
        "UPDATE tasks SET status = 'running', attempt = attempt + 1, token = token + 1, lease_until_s = :lease_until_s,"
        " started_at = COALESCE(started_at, :now), next_attempt_at = NULL, stage = :stage, chunks_done = 0,"
        " chunks_total = NULL"
        " WHERE id IN (SELECT value FROM json_each(:ids)) AND status = 'queued' RETURNING *",
        {"ids": json.dumps(task_ids), "now": now, "lease_until_s": lease_until_s, "stage": stage},
    ).fetchall()
    return sorted((TaskRow.from_row(row) for row in rows), key=lambda task: task.id)


def claim_task(
    connection: Connection, task_id: str, now: str, lease_until_s: float, stage: str = "extract"
) -> TaskRow | None:
    """Claim one task, like `claim_tasks`. Returns None if it is no longer queued."""
    return next(iter(claim_tasks(connection, [task_id], now, lease_until_s, stage)), None)


def claim_again(
    connection: Connection, task_id: str, now: str, lease_until_s: float, first_stage: str
) -> TaskRow | None:
    """Claim a task at the stage that an earlier attempt reached, or at `first_stage`."""
    row = connection.execute("SELECT stage FROM tasks WHERE id = :id", {"id": task_id}).fetchone()
    stage = (row["stage"] if row else None) or first_stage
    return claim_task(connection, task_id, now, lease_until_s, stage)


def is_held(connection: Connection, task: TaskRow) -> bool:
    """Whether the worker's claim on the task is still valid."""
    row = connection.execute(
        "SELECT 1 FROM tasks WHERE id = :id AND token = :token AND status = 'running'",
        {"id": task.id, "token": task.token},
    ).fetchone()
    return row is not None


def extend_lease(connection: Connection, task: TaskRow, lease_until_s: float) -> None:
    connection.execute(
        "UPDATE tasks SET lease_until_s = :lease_until_s WHERE id = :id AND token = :token AND status = 'running'",
        {"id": task.id, "token": task.token, "lease_until_s": lease_until_s},
    )


def succeed_task(connection: Connection, task: TaskRow, stage: str, chunks: int, finished_at: str) -> bool:
    """End a task as `succeeded`. Returns False if the worker has lost its claim."""
    cursor = connection.execute(
        "UPDATE tasks SET status = 'succeeded', finished_at = :finished_at, error = NULL, lease_until_s = NULL,"
        " stage = :stage, chunks_done = :chunks, chunks_total = :chunks"
        " WHERE id = :id AND token = :token AND status = 'running'",
        {"id": task.id, "token": task.token, "stage": stage, "chunks": chunks, "finished_at": finished_at},
    )
    return cursor.rowcount == 1


def update_progress(connection: Connection, task: TaskRow, stage: str, done: int, total: int | None) -> None:
    connection.execute(
        "UPDATE tasks SET stage = :stage, chunks_done = :done, chunks_total = :total"
        " WHERE id = :id AND token = :token AND status = 'running'",
        {"id": task.id, "token": task.token, "stage": stage, "done": done, "total": total},
    )


def count_progress(connection: Connection, task: TaskRow, count: int) -> None:
    """Add `count` to the task's finished chunks, unless the worker has lost its claim."""
    connection.execute(
        "UPDATE tasks SET chunks_done = chunks_done + :count WHERE id = :id AND token = :token AND status = 'running'",
        {"id": task.id, "token": task.token, "count": count},
    )


def finish_task(
    connection: Connection, task: TaskRow, status: str, finished_at: str, error: SourceError | None = None
) -> None:
    """End a task as `succeeded`, `failed` or `canceled`, unless the worker has lost its claim."""
    connection.execute(
        "UPDATE tasks SET status = :status, finished_at = :finished_at, error = :error, lease_until_s = NULL"
        " WHERE id = :id AND token = :token AND status = 'running'",
        {
            "id": task.id,
            "token": task.token,
            "status": status,
            "finished_at": finished_at,
            "error": json.dumps(error) if error else None,
        },
    )


def retry_task(
    connection: Connection, task: TaskRow, next_attempt_at: str, error: SourceError, *, is_endless: bool = False
) -> None:
    """Queue a task for another attempt, unless the worker has lost its claim.

    A task in the lane `suspect` or `scan` stays there; others move to `single` (see `core.lanes`). With `is_endless`,
    the task never runs out of attempts.
    """
    attempt = min(task.attempt, task.max_attempts - 1) if is_endless else task.attempt
    connection.execute(
        "UPDATE tasks SET status = 'queued', next_attempt_at = :next_attempt_at, error = :error, lease_until_s = NULL,"
        " attempt = :attempt, lane = CASE WHEN lane IN ('suspect', 'scan') THEN lane ELSE 'single' END"
        " WHERE id = :id AND token = :token AND status = 'running'",
        {
            "id": task.id,
            "token": task.token,
            "next_attempt_at": next_attempt_at,
            "error": json.dumps(error),
            "attempt": attempt,
        },
    )


def park_task(
    connection: Connection, task: TaskRow, next_attempt_at: str | None = None, lane: str | None = None, deaths: int = 0
) -> None:
    """Queue a claimed task again, in another lane if given, without counting the attempt. `deaths` are added.

    Used when the process stops, a resource such as disk space is short, or the document needs another lane.
    """
    connection.execute(
        "UPDATE tasks SET status = 'queued', attempt = attempt - 1, lease_until_s = NULL,"
        " next_attempt_at = :next_attempt_at, lane = COALESCE(:lane, lane), deaths = deaths + :deaths"
        " WHERE id = :id AND token = :token AND status = 'running'",
        {"id": task.id, "token": task.token, "next_attempt_at": next_attempt_at, "lane": lane, "deaths": deaths},
    )


def abandon_task(connection: Connection, task_id: str, error: SourceError, finished_at: str) -> None:
    """End a task and its source as `failed`, no matter who holds the task, without reading their rows."""
    values = {"id": task_id, "error": json.dumps(error), "finished_at": finished_at}
    connection.execute(
        "UPDATE tasks SET status = 'failed', error = :error, finished_at = :finished_at, lease_until_s = NULL"
        " WHERE id = :id AND finished_at IS NULL",
        values,
    )
    connection.execute(
        "UPDATE sources SET status = 'failed', error = :error, updated_at = :finished_at"
        " WHERE id = (SELECT source_id FROM tasks WHERE id = :id) AND task_id = :id",
        values,
    )
    connection.execute(
        "UPDATE memberships SET source_status = 'failed', source_updated_at = :finished_at"
        " WHERE source_id = (SELECT s.id FROM sources s JOIN tasks t ON t.source_id = s.id AND t.id = s.task_id"
        "   WHERE t.id = :id)",
        values,
    )


def cancel_tasks(connection: Connection, source_id: str, finished_at: str) -> None:
    """Cancel a deleted source's unfinished tasks. Workers lose their claims."""
    connection.execute(
        "UPDATE tasks SET status = 'canceled', finished_at = :finished_at, lease_until_s = NULL"
        " WHERE source_id = :source_id AND status IN ('queued', 'running')",
        {"source_id": source_id, "finished_at": finished_at},
    )


def cancel_task(connection: Connection, task_id: str, finished_at: str) -> None:
    """Cancel an unfinished task, even if a worker holds it."""
    connection.execute(
        "UPDATE tasks SET status = 'canceled', finished_at = :finished_at, lease_until_s = NULL"
        " WHERE id = :id AND finished_at IS NULL",
        {"id": task_id, "finished_at": finished_at},
    )


def list_expired(connection: Connection, now_s: float, latest_s: float = inf) -> list[TaskRow]:
    """List running tasks with an expired lease, or all running tasks if `now_s` is infinite.

    A lease that ends after `latest_s` counts as expired: its end was computed before the clock was set back.
    """
    rows = connection.execute(
        "SELECT * FROM tasks WHERE finished_at IS NULL AND status = 'running'"
        " AND (lease_until_s <= :now_s OR lease_until_s > :latest_s)",
        {"now_s": now_s, "latest_s": latest_s},
    ).fetchall()
    return [TaskRow.from_row(row) for row in rows]


def list_running(connection: Connection, team_id: str, task_type: str) -> list[TaskRow]:
    """List the team's running tasks of this type, even with an expired lease."""
    rows = connection.execute(
        "SELECT * FROM tasks WHERE finished_at IS NULL AND type = :type AND status = 'running' AND team_id = :team_id",
        {"team_id": team_id, "type": task_type},
    ).fetchall()
    return [TaskRow.from_row(row) for row in rows]


def next_attempt_due(connection: Connection, task_type: str, after: str = "") -> str | None:
    """Return the earliest due time after `after` among the tasks of this type, or None."""
    row = connection.execute(
        "SELECT MIN(next_attempt_at) AS due FROM tasks WHERE finished_at IS NULL AND next_attempt_at IS NOT NULL"
        " AND type = :type AND next_attempt_at > :after",
        {"type": task_type, "after": after},
    ).fetchone()
    due: str | None = row["due"]
    return due


def has_due(connection: Connection, task_type: str, now: str) -> bool:
    """Whether any task of this type is queued and due."""
    row = connection.execute(
        "SELECT 1 FROM tasks WHERE finished_at IS NULL AND type = :type AND status = 'queued'"
        " AND (next_attempt_at IS NULL OR next_attempt_at <= :now) LIMIT 1",
        {"type": task_type, "now": now},
    ).fetchone()
    return row is not None


def count_open(connection: Connection) -> dict[str, int]:
    """Return the number of `queued` and of `running` tasks, by status."""
    rows = connection.execute(
        "SELECT status, COUNT(*) AS tasks FROM tasks WHERE finished_at IS NULL GROUP BY status"
    ).fetchall()
    return {"queued": 0, "running": 0} | {row["status"]: row["tasks"] for row in rows}


def count_open_of_team(connection: Connection, team_id: str) -> dict[str, int]:
    """Return the number of the team's `queued` and of its `running` tasks, by status."""
    rows = connection.execute(
        "SELECT status, COUNT(*) AS tasks FROM tasks WHERE finished_at IS NULL AND team_id = :team_id GROUP BY status",
        {"team_id": team_id},
    ).fetchall()
    return {"queued": 0, "running": 0} | {row["status"]: row["tasks"] for row in rows}


def count_open_by_type(connection: Connection) -> list[tuple[str, str, int, str]]:
    """Count the unfinished tasks. Returns type, status, number, and creation time of the oldest task."""
    rows = connection.execute(
        "SELECT type, status, COUNT(*) AS tasks, MIN(created_at) AS oldest_at FROM tasks WHERE finished_at IS NULL"
        " GROUP BY type, status ORDER BY type, status"
    ).fetchall()
    return [(row["type"], row["status"], row["tasks"], row["oldest_at"]) for row in rows]


def find_open_rebuild(connection: Connection, team_id: str) -> TaskRow | None:
    """Return the team's unfinished index rebuild, or None."""
    row = connection.execute(
        "SELECT * FROM tasks WHERE team_id = :team_id AND type = 'store_rebuild' AND finished_at IS NULL",
        {"team_id": team_id},
    ).fetchone()
    return TaskRow.from_row(row) if row else None


def find_last_rebuild(connection: Connection, team_id: str) -> TaskRow | None:
    """Return the team's newest index rebuild in any state, or None."""
    row = connection.execute(
        "SELECT * FROM tasks WHERE team_id = :team_id AND type = 'store_rebuild' ORDER BY id DESC LIMIT 1",
        {"team_id": team_id},
    ).fetchone()
    return TaskRow.from_row(row) if row else None


def is_in_maintenance(connection: Connection, team_id: str) -> bool:
    query = "SELECT 1 FROM teams_in_maintenance WHERE team_id = :team_id"
    return connection.execute(query, {"team_id": team_id}).fetchone() is not None
