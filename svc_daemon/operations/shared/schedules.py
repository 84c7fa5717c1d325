"""Gives sources their schedules, records how a scheduled refresh ended, and shows schedules.

`core.refreshes` has the rules, and `workers.refreshing` makes the tries.
"""

import random
from dataclasses import replace
from datetime import timedelta

from svc_daemon.core import refreshes
from svc_daemon.core.access import api_keys
from svc_daemon.core.access.urls import parse_url
from svc_daemon.core.json_bodies import refusal
from svc_daemon.core.refreshes import Outcome, Verdict
from svc_daemon.core.times import from_text, to_text
from svc_daemon.databases.contract import Connection
from svc_daemon.operations.shared.authorization import require
from svc_daemon.operations.shared.events import record_events, source_event
from svc_daemon.process.contexts import Context
from svc_daemon.settings.limits import Limits
from svc_daemon.store.rows.keys import KeyRow
from svc_daemon.store.rows.sources.refreshes import spare_host, update_refresh
from svc_daemon.store.rows.sources.sources import SourceRow
from svc_daemon.wire.events import EventType
from svc_daemon.wire.sources import RefreshChoice, SourceError, SourceRefresh, StoredRefresh


def check_choice(key: KeyRow, choice: RefreshChoice, limits: Limits) -> RefreshChoice:
    """Return the choice. Raises an error if the interval is too short or too long, or if the key may not delete."""
    least, most = limits.refresh_seconds, refreshes.LONGEST_EVERY_S
    if choice.every_seconds and not least <= choice.every_seconds <= most:
        raise refusal("refresh.every_seconds", f"must be {least} to {most}, or 0 for never.")
    if choice.on_gone == "delete":
        require(key, api_keys.SOURCE_DELETE)
    return choice


def with_schedule(context: Context, source: SourceRow, choice: RefreshChoice) -> SourceRow:
    """Return the source's row with this schedule. Raises `invalid_request` if the source did not come from a URL."""
    if not choice.every_seconds:
        return replace(source, refresh=None, refresh_host=None, refresh_due_at=None)
    if source.source_url is None:
        raise refusal("refresh", f"{source.id} did not come from a URL; only imports and pages can be refreshed.")
    before = source.refresh
    fresh = refreshes.start(choice.every_seconds, choice.on_gone or (before["on_gone"] if before else "report"))
    known = source.fetched.get("fetched_at") if source.fetched else None
    pause_s = refreshes.spread_s(choice.every_seconds, context.limits.refresh_seconds, random.SystemRandom().random())
    due_at = to_text(max(from_text(known or source.updated_at) + timedelta(seconds=pause_s), context.clock.now()))
    return replace(source, refresh=fresh, refresh_host=parse_url(source.source_url).host, refresh_due_at=due_at)


def after_change(context: Context, source: SourceRow) -> SourceRow:
    """Return the source's row after a try that has changed its text; unchanged if it has no schedule."""
    verdict = _judge(context, source, Outcome.CHANGED, None)
    if verdict is None:
        return source
    return replace(source, refresh=verdict.refresh, refresh_due_at=context.clock.timestamp(verdict.pause_s))


def record_try(
    connection: Connection,
    context: Context,
    source: SourceRow,
    outcome: Outcome,
    error: SourceError | None = None,
    asked_s: float = 0.0,
) -> bool:
    """Store a try that has not changed the source's text. Returns whether the source is to be deleted now.

    `asked_s` is how long the host asks to be left alone. Then no other source is fetched from it either.
    """
    verdict = _judge(context, source, outcome, error)
    if verdict is None:
        update_refresh(connection, source)
        return False
    due_at = context.clock.timestamp(max(verdict.pause_s, asked_s))
    noted = replace(source, refresh=verdict.refresh, refresh_due_at=due_at)
    update_refresh(connection, noted)
    if asked_s and noted.refresh_host is not None:
        spare_host(connection, noted.refresh_host, context.clock.timestamp(asked_s))
    if verdict.is_news:
        facts = {"outcome": str(outcome), "failures": verdict.refresh["failures"], "error": error}
        event = source_event(EventType.SOURCE_UPDATED, noted, refresh=facts)
        record_events(connection, context.ids, noted.team_id, [event])
    return verdict.is_over


def _judge(context: Context, source: SourceRow, outcome: Outcome, error: SourceError | None) -> Verdict | None:
    if source.refresh is None:
        return None
    least_s, jitter = context.limits.refresh_seconds, random.SystemRandom().random()
    return refreshes.judge(source.refresh, outcome, context.clock.timestamp(), least_s, jitter, error)


def view_refresh(refresh: StoredRefresh, due_at: str | None) -> SourceRefresh:
    """Convert a source's schedule to its API form."""
    return SourceRefresh(
        every_seconds=refresh["every_seconds"],
        on_gone=refresh["on_gone"],
        next_at=due_at,
        tried_at=refresh["tried_at"],
        failures=refresh["failures"],
        error=refresh["error"],
        gone=refreshes.is_gone(refresh),
    )
