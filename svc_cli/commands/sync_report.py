"""Renders the report of a sync: counts, what needs attention, the next command."""

from svc_cli.commands.item_lists import render_skips, render_troubles
from svc_cli.console import Console, clean
from svc_cli.exits import Exit
from svc_cli.render import counted, size, table
from svc_cli.sync.reports import ACTIONS, CHANGES, Report

#: Maximum number of listed changes. `--json` and `-v` list all.
MOST_NAMES = 12
#: Names of actions in a dry run.
DRY_WORDS = {
    "created": "to create",
    "updated": "to update",
    "moved": "to move",
    "retried": "to retry",
    "detached": "to detach",
    "deleted": "to delete",
}


def render_report(console: Console, report: Report) -> str:
    """Render the report of the sync of one mapping."""
    items, counts = report.items.values(), report.counts
    total = sum(counts[action] for action in ACTIONS)
    took = f"{report.duration_ms / 1000:.1f} s"
    head = f"{counted(total, 'file')}, {clean(report.mapping)} to bucket {clean(report.bucket)}, {took}"
    rows = []
    for action in sorted(ACTIONS, key=lambda action: action != "failed"):
        sent = sum(item.size_bytes or 0 for item in items if item.action == action)
        if counts[action]:
            word = DRY_WORDS.get(action, action) if report.is_dry else action
            rows.append((word, counts[action], size(sent) if action in ("created", "updated") else ""))
    if counts["pending"] and not report.is_dry:
        rows.append(("pending", counts["pending"], ""))
    head = f"{console.paint(head, 'bold')}\n{table(console, ('', '', ''), rows)}" if rows else head
    notes = "\n".join(f"note: {clean(note)}" for note in report.notes)
    parts = [head, _render_plan(console, report), render_troubles(console, items), render_skips(console, items), notes]
    return "\n\n".join(part for part in parts if part)


def suggest_next(console: Console, report: Report) -> None:
    """Suggest the next command."""
    if report.stopped_by or report.is_dry:
        return
    if report.counts["failed"]:
        console.next_step(f"svc status -b {report.bucket}")
    elif report.exit is Exit.DONE and report.has_changes:
        console.next_step(f'svc search "…" -b {report.bucket}')


def _render_plan(console: Console, report: Report) -> str:
    """Render the planned changes of a dry run."""
    if not report.is_dry:
        return ""
    planned = [item for item in report.items.values() if item.action in CHANGES or item.action == "gone"]
    most = len(planned) if console.is_verbose else MOST_NAMES
    rows = [(DRY_WORDS.get(item.action, item.action), item.path) for item in planned[:most]]
    if len(planned) > most:
        rows.append(("", f"and {len(planned) - most} more"))
    return table(console, ("", "file"), rows) if rows else ""
