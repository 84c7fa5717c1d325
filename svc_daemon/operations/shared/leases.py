"""Leases on tasks: the claim that begins one, how long it lasts, and how it is extended or given up."""

import logging
from collections.abc import Callable, Sequence
from functools import partial

from svc_daemon.core import lanes
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import stored_error
from svc_daemon.process.contexts import Context
from svc_daemon.store.rows import tasks
from svc_daemon.store.rows.tasks import TaskRow
from svc_daemon.wire.light.error_codes import SourceErrorCode

log = logging.getLogger(__name__)

#: Errors of work on a row that isn't as this program has written it. No retry can help.
UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, OverflowError)


async def claim_next(
    context: Context,
    task_type: str,
    stage: str,
    take: Callable[[Connection, str, str, float, str], TaskRow | None] = tasks.claim_task,
) -> TaskRow | None:
    """Find the oldest due task of the first team that has one, and claim it with `take` for its first stage.

    Returns None if no task is due.
    """
    now = context.clock.timestamp()

    def find(connection: Connection) -> str | None:
        teams = tasks.list_waiting_teams(connection, task_type, [lanes.SINGLE])
        waiting = (tasks.find_waiting(connection, team_id, task_type, now) for team_id in teams.get(lanes.SINGLE, ()))
        return next((task_id for task_id in waiting if task_id), None)

    def claim(connection: Connection) -> TaskRow | None:
        task_id = find(connection)
        return take(connection, task_id, context.clock.timestamp(), lease_end_s(context), stage) if task_id else None

    # Find the task in a read first, because only claiming it needs a commit.
    return await context.write(claim) if context.read(find) else None


async def park(context: Context, task: TaskRow) -> None:
    """Queue the task again because the process is stopping. The interrupted attempt is not counted."""
    await context.write(partial(tasks.park_task, task=task))


def lease_end_s(context: Context) -> float:
    """Return when a lease that begins now ends, in seconds of `Clock.lease_s`."""
    return context.clock.lease_s() + context.limits.lease_seconds


def latest_lease_s(context: Context, now_s: float) -> float:
    """Return when the leases of all nodes end at the latest; a later end is from before the clock was set back."""
    # The nodes' clocks differ slightly.
    return now_s + 2 * context.limits.lease_seconds


async def abandon(context: Context, task_id: str) -> None:
    """Let a task and its source fail without reading their rows, which are damaged. Call it on an error."""
    log.exception("the rows of %s can't be read, so it fails", task_id)
    error = stored_error(SourceErrorCode.ROW_DAMAGED, "The source's row in the database is damaged.", retryable=False)
    now = context.clock.timestamp()
    await context.write(lambda connection: tasks.abandon_task(connection, task_id, error, now))


async def extend_leases(context: Context, claimed: Sequence[TaskRow]) -> None:
    """Extend the worker's lease on these tasks."""
    until_s = lease_end_s(context)

    def work(connection: Connection) -> None:
        for task in claimed:
            tasks.extend_lease(connection, task, until_s)

    await context.write(work)
