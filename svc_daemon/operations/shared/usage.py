"""Counts each team's answers and searches this month, and enforces the monthly limit.

The counts are kept in memory and written to the database about once a second, so that no search waits for the disk.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from svc_daemon.core.times import end_of_month, month_of
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import ServiceError
from svc_daemon.process.contexts import Context
from svc_daemon.process.usage_counters import Period
from svc_daemon.store.rows.teams import add_answers, find_answers
from svc_daemon.wire.light.error_codes import ErrorCode


@contextmanager
def counting_answer(context: Context, team_id: str) -> Iterator[None]:
    """Count the answer or search that the block makes, unless the block fails. Raises `rag_quota_exceeded`."""
    period = _period(context, team_id)
    used, limit = _total(context, period), context.limits.answers_per_month
    if limit and used >= limit:
        raise ServiceError(
            ErrorCode.RAG_QUOTA_EXCEEDED, limit=limit, used=used, resets_at=end_of_month(context.clock.now())
        )
    # Count before the block, so that concurrent requests can't exceed the limit.
    context.usage_counters.add(period, 1)
    try:
        yield
    except BaseException:
        context.usage_counters.add(period, -1)
        raise
    context.wakes.counting.set()


def used_answers(context: Context, team_id: str) -> int:
    """Return how many answers and searches the team has used this month, including those in progress."""
    return _total(context, _period(context, team_id))


async def record_usage(context: Context) -> None:
    """Add the new answers and searches to the counts in the database. After an error, the next call adds them."""
    unrecorded = context.usage_counters.take_unrecorded()
    if not unrecorded:
        return

    def work(connection: Connection) -> dict[Period, int]:
        for (team_id, month), answers in unrecorded.items():
            add_answers(connection, team_id, month, answers)
        return {period: find_answers(connection, *period) for period in unrecorded}

    try:
        recorded = await context.write(work)
    except Exception:
        context.usage_counters.give_back(unrecorded)
        raise
    # The recorded counts include the answers of other nodes.
    context.usage_counters.update_totals(recorded)


def _total(context: Context, period: Period) -> int:
    totals = context.usage_counters.totals
    # In a cluster, read the stored count each time, because other nodes add to it.
    if period not in totals or context.clock.shared is not None:
        stored = context.look(lambda connection: find_answers(connection, *period))
        # Counts that are just being written are in neither `stored` nor `unrecorded`. So never lower the total.
        totals[period] = max(totals.get(period, 0), stored + context.usage_counters.unrecorded.get(period, 0))
    return totals[period]


def _period(context: Context, team_id: str) -> Period:
    return team_id, month_of(context.clock.now())
