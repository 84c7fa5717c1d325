"""Cascades: the progress of bucket deletions. A deletion includes the sources that are in no other bucket."""

from dataclasses import dataclass

from svc_daemon.databases.contract import Connection, Row
from svc_daemon.store.tasks import TaskRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Cascade:
    """The progress of a bucket's deletion."""

    task_id: str
    team_id: str
    bucket_id: str
    #: Sources with ids up to this one have been processed.
    after_id: str = ""
    #: Number of the bucket's sources when its deletion was requested.
    total: int
    #: Number of sources deleted, because they were in no other bucket.
    deleted: int = 0
    #: Number of sources only detached, because they are in another bucket.
    detached: int = 0
    #: Number of sources that could not be deleted.
    failed: int = 0
    #: The last failure, as a sentence.
    reason: str | None = None

    @classmethod
    def from_row(cls, row: Row) -> "Cascade":
        return cls(**dict(row))


def create_cascade(connection: Connection, cascade: Cascade) -> None:
    connection.execute(
        "INSERT INTO cascades (task_id, team_id, bucket_id, after_id, total, deleted, detached, failed)"
        " VALUES (:task_id, :team_id, :bucket_id, '', :total, 0, 0, 0)",
        {
            "task_id": cascade.task_id,
            "team_id": cascade.team_id,
            "bucket_id": cascade.bucket_id,
            "total": cascade.total,
        },
    )


def find_cascade(connection: Connection, task_id: str) -> Cascade | None:
    row = connection.execute("SELECT * FROM cascades WHERE task_id = :task_id", {"task_id": task_id}).fetchone()
    return Cascade.from_row(row) if row else None


def find_running_cascade(connection: Connection, bucket_id: str) -> Cascade | None:
    """Return the bucket's unfinished deletion, or None."""
    row = connection.execute(
        "SELECT c.* FROM cascades c JOIN tasks t ON t.id = c.task_id"
        " WHERE c.bucket_id = :bucket_id AND t.finished_at IS NULL",
        {"bucket_id": bucket_id},
    ).fetchone()
    return Cascade.from_row(row) if row else None


def update_cascade(connection: Connection, task: TaskRow, cascade: Cascade) -> None:
    """Store the progress, unless the worker has lost its claim on `task`."""
    held = {"id": task.id, "token": task.token}
    connection.execute(
        "UPDATE cascades SET after_id = :after_id, deleted = :deleted, detached = :detached, failed = :failed,"
        " reason = :reason WHERE task_id = :id"
        " AND EXISTS (SELECT 1 FROM tasks t WHERE t.id = :id AND t.token = :token AND t.status = 'running')",
        held
        | {
            "after_id": cascade.after_id,
            "deleted": cascade.deleted,
            "detached": cascade.detached,
            "failed": cascade.failed,
            "reason": cascade.reason,
        },
    )
