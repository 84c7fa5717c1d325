"""How many answers and searches each team has had this month, and the plan's limit of them.

They are counted in memory and recorded in the state by `workers.sweeping`, once a second at most, so that no search
waits for the disk. A stop records what is left; a kill loses a second's at most.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from sqlite3 import Connection

from svc_daemon.core.times import end_of_month, month_of
from svc_daemon.errors import ServiceError
from svc_daemon.process.contexts import Context
from svc_daemon.process.gates import Period
from svc_daemon.store.teams import add_answers, find_answers
from svc_daemon.wire.codes import ErrorCode


@contextmanager
def counting_answer(context: Context, team_id: str) -> Iterator[None]:
    """Count one answer or search, which runs in the `with` block; one that is refused or fails is not counted.

    Raises `rag_quota_exceeded`.
    """
    period = _period(context, team_id)
    used, limit = _total(context, period), context.limits.answers_per_month
    if limit and used >= limit:
        raise ServiceError(
            ErrorCode.RAG_QUOTA_EXCEEDED, limit=limit, used=used, resets_at=end_of_month(context.clock.now())
        )
    # Counted in advance, so that simultaneous requests don't all use the last free one.
    context.tallies.add(period, 1)
    try:
        yield
    except BaseException:
        context.tallies.add(period, -1)
        raise
    context.wakes.counting.set()


def used_answers(context: Context, team_id: str) -> int:
    """Answers and searches of the team in this month, those that are under way too."""
    return _total(context, _period(context, team_id))


async def record_usage(context: Context) -> None:
    """Write down what was counted since the last time; raises StorageError, and then it is recorded with the next."""
    unrecorded = context.tallies.take_unrecorded()
    if not unrecorded:
        return

    def work(connection: Connection) -> None:
        for (team_id, month), answers in unrecorded.items():
            add_answers(connection, team_id, month, answers)

    try:
        await context.write(work)
    except Exception:
        context.tallies.give_back(unrecorded)
        raise


def _total(context: Context, period: Period) -> int:
    if period not in context.tallies.totals:
        context.tallies.totals[period] = context.look(lambda connection: find_answers(connection, *period))
    return context.tallies.totals[period]


def _period(context: Context, team_id: str) -> Period:
    return team_id, month_of(context.clock.now())
