"""Work of any kind that nobody has begun in time, or that waits too long because the clock was set back."""

from svc_daemon.databases.contract import Connection
from svc_daemon.store.rows.sources.refreshes import SETTLED

#: For leases, see `tasks.list_expired`.
_LEASE_ENDED = "(lease_until_s <= :now_s OR lease_until_s > :latest_s)"
#: Work that a node should have begun by `:before`, or that a node has begun whose lease has expired.
_OVERLOOKED = (
    f"tasks WHERE finished_at IS NULL AND status = 'running' AND {_LEASE_ENDED}",
    "tasks WHERE finished_at IS NULL AND status = 'queued' AND created_at < :before AND next_attempt_at IS NULL",
    "tasks WHERE finished_at IS NULL AND (next_attempt_at < :before OR next_attempt_at > :far)",
    f"memberships WHERE lease_until_s IS NOT NULL AND {_LEASE_ENDED}",
    "memberships WHERE due_at IS NOT NULL AND (due_at < :before OR due_at > :far)",
    "deliveries WHERE due_at IS NOT NULL AND (due_at < :before OR due_at > :far)",
    f"sources WHERE refresh_due_at < :before{SETTLED}",
    "uploads WHERE status = 'open' AND expires_at < :before",
    "tombstones WHERE cleaned_at IS NULL",
    "detachments",
)


def has_overlooked(connection: Connection, before: str, far: str, now_s: float, latest_s: float) -> bool:
    """Whether work was due before the time `before`, is due after `far`, or has an expired lease.

    Work is due later than `far` only if the clock was set back.
    """
    query = "SELECT " + " OR ".join(f"EXISTS (SELECT 1 FROM {each})" for each in _OVERLOOKED) + " AS found"  # noqa: S608
    times = {"before": before, "far": far, "now_s": now_s, "latest_s": latest_s}
    return bool(connection.execute(query, times).fetchone()["found"])


def has_far_pauses(connection: Connection, latest: str, latest_call: str, latest_refresh: str) -> bool:
    """Whether a retry or a refresh is due later than any pause lasts."""
    row = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM tasks"
        "   WHERE finished_at IS NULL AND status = 'queued' AND next_attempt_at > :latest)"
        " OR EXISTS (SELECT 1 FROM memberships WHERE due_at > :latest)"
        " OR EXISTS (SELECT 1 FROM deliveries WHERE due_at > :latest_call)"
        " OR EXISTS (SELECT 1 FROM sources WHERE refresh_due_at > :latest_refresh) AS found",
        {"latest": latest, "latest_call": latest_call, "latest_refresh": latest_refresh},
    ).fetchone()
    return bool(row["found"])


def recall_far_pauses(connection: Connection, now: str, latest: str, latest_call: str, latest_refresh: str) -> int:
    """Make what is due later than any pause lasts due now, because the clock was set back. Returns how many."""
    attempts = connection.execute(
        "UPDATE tasks SET next_attempt_at = NULL"
        " WHERE finished_at IS NULL AND status = 'queued' AND next_attempt_at > :latest",
        {"latest": latest},
    )
    due = {"now": now, "latest": latest, "latest_call": latest_call, "latest_refresh": latest_refresh}
    syncs = connection.execute("UPDATE memberships SET due_at = :now WHERE due_at > :latest", due)
    calls = connection.execute("UPDATE deliveries SET due_at = :now WHERE due_at > :latest_call", due)
    refreshes = connection.execute(
        "UPDATE sources SET refresh_due_at = :now WHERE refresh_due_at > :latest_refresh", due
    )
    return sum(each.rowcount for each in (attempts, syncs, calls, refreshes))
