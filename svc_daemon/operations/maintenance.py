"""What is refused while a team's search index is made anew (`operations.rebuilding`), and until when."""

from sqlite3 import Connection

from svc_daemon.core.rebuilds import retry_after_s
from svc_daemon.core.times import from_text
from svc_daemon.errors import ServiceError
from svc_daemon.operations.contexts import Context
from svc_daemon.store.rebuilds import find_last_rebuild
from svc_daemon.wire.codes import ErrorCode


def refuse_in_maintenance(connection: Connection, context: Context, team_id: str) -> str | None:
    """Raises `team_store_maintenance` while the index is made anew. Returns the id of the last rebuild, if any."""
    last = find_last_rebuild(connection, team_id)
    if last is None or last.finished_at is not None:
        return last.id if last else None
    elapsed = context.clock.now() - from_text(last.started_at or last.created_at)
    raise ServiceError(
        ErrorCode.TEAM_STORE_MAINTENANCE,
        "The team's search index is being made anew; try again shortly.",
        task_id=last.id,
        retry_after_seconds=retry_after_s(elapsed.total_seconds(), last.chunks_done, last.chunks_total),
    )
