"""The reports of uploads, imports and syncs: counts, what needs attention, the next command."""

import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from svc_cli.console import Console, clean
from svc_cli.exits import Exit
from svc_cli.render import cell, counted, size, table
from svc_cli.sync.run_state import CHANGES, SyncReport
from svc_cli.transfer.reports import DRY_ACTIONS, Report, ReportItem
from svc_cli.transfer.skips import code_of

#: Maximum number of listed files with one reason. `--json` and `-v` list all.
MOST_NAMES = 3
_ITEM_COLOURS = {"failed": "red", "conflict": "yellow"}


def render_troubles(console: Console, items: Iterable[ReportItem]) -> str:
    """Render each error once, with its files below it, and all hints at the end."""
    causes: dict[tuple[str, str], list[str]] = {}
    hints: dict[str, None] = {}
    for item in items:
        if item.error:
            cause = f"{item.error['code']}: {clean(item.error['message'])}"
            causes.setdefault((item.action, cause), []).append(cell(item.path))
            hints |= {f"hint: {clean(item.error['hint'])}": None} if item.error.get("hint") else {}
    lines: list[str] = []
    for (action, cause), paths in sorted(causes.items(), key=lambda each: each[0][0] != "failed"):
        line, room = f"{action}  {cause}", console.width()
        wrapped = textwrap.wrap(line, room, subsequent_indent="    ", break_long_words=False) if room else [line]
        first, *more = wrapped
        lines += [first.replace(action, console.paint(action, _ITEM_COLOURS.get(action, "bold")), 1), *more]
        lines += [f"  {path}" for path in paths]
    return "\n".join([*lines, *hints])


def render_skips(console: Console, items: Iterable[ReportItem]) -> str:
    """Render a table of skipped files, grouped by reason or unsupported extension."""
    groups: dict[tuple[str, str], list[str]] = {}
    for item in items:
        if item.action == "skipped":
            reason = item.reason or ""
            extension = PurePosixPath(item.path).suffix if code_of(reason) == "type_unreadable" else ""
            groups.setdefault((reason, extension), []).append(item.path)
    rows = []
    for (reason, extension), paths in groups.items():
        names = paths
        if len(paths) > MOST_NAMES and not console.is_verbose:
            many = f"{len(paths)} \N{MULTIPLICATION SIGN} {extension}"
            names = [many if extension else f"{len(paths)} files, such as {paths[0]}"]
        rows += [("skipped", name, reason) for name in names]
    return table(console, ("", "left out", "why"), rows) if rows else ""


_COLOURS = {"ready": "green", "failed": "red", "conflict": "yellow"}


def show_report(console: Console, report: Report, note: str = "") -> Exit:
    """Print the report of an upload or import, the note and the next command. Returns the exit code."""
    console.show(report.as_json(), lambda: render_summary(console, report))
    if report.stopped_by is not None:
        console.fail(report.stopped_by)
    elif note:
        console.note(note)
    suggest_next(console, report)
    return report.exit


def suggest_next(console: Console, report: Report) -> None:
    """Suggest the next command."""
    sync = report if isinstance(report, SyncReport) else None
    if report.stopped_by or report.is_dry:
        return
    if report.counts["failed"]:
        # What the service didn't take is not in the bucket: only the lines above say why.
        if any(item.source_id for item in report.items.values() if item.action == "failed" or item.error):
            console.next_step(f"svc status -b {report.bucket}")
    elif report.counts["pending"] and sync is None:
        console.next_step(f"svc status -b {report.bucket} --watch")
    elif report.exit is Exit.DONE and (sync is None or sync.has_changes):
        console.next_step(f'svc search "…" -b {report.bucket}')


def render_summary(console: Console, report: Report) -> str:
    """Render the report of an upload or import; for a single file, only its state."""
    items = report.items.values()
    if len(items) == 1 and not report.stopped_by:
        return _render_one(console, *items, is_dry=report.is_dry)
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for item in items:
        state = _state(item, is_dry=report.is_dry)
        counts[state] += 1
        sizes[state] += item.size_bytes or 0
    order = ["failed", "conflict", "ready", "accepted", *DRY_ACTIONS.values(), "unchanged", "skipped"]
    names = [name.replace("_", " ") for name in order]
    rows = [(name, counts[name], size(sizes[name]) if sizes[name] else "") for name in names if counts[name]]
    if report.remaining:
        rows.append(("not sent", report.remaining, ""))
    head = f"{counted(len(items) + report.remaining, report.noun)}, bucket {report.bucket}"
    warnings = (f"warning: {cell(item.path)}: {clean(text)}" for item in items for text in item.warnings)
    troubles, skips = render_troubles(console, items), render_skips(console, items)
    twins = [f"{cell(item.path)} as {cell(item.as_title)}" for item in items if item.as_title]
    listed = ", ".join(twins if console.is_verbose else twins[:1])
    note = f"note: {len(twins)} unchanged under another title ({listed}); --as-new sends them." if twins else ""
    return _join(console, report, head, rows, troubles, skips, note, "\n".join(warnings))


def _join(console: Console, report: Report, head: str, rows: Sequence[Sequence[object]], *parts: str) -> str:
    """Render the headline with the run's duration, the table below it, and the other parts that are not empty."""
    head = f"{head}, {report.duration_ms / 1000:.1f} s"
    head = f"{console.paint(head, 'bold')}\n{table(console, ('', '', ''), rows)}" if rows else head
    return "\n\n".join(part for part in (head, *parts) if part)


def _render_one(console: Console, item: ReportItem, *, is_dry: bool) -> str:
    state = _state(item, is_dry=is_dry)
    path = f"{cell(item.path)} (as {cell(item.as_title)})" if item.as_title else cell(item.path)
    words = (console.paint(state, _COLOURS.get(state, "bold")), item.source_id, path)
    lines = ["  ".join(filter(None, words)), *(f"  {clean(warning)}" for warning in item.warnings)]
    if item.reason:
        lines.append(f"  {item.reason}")
    elif item.error:
        lines.append(f"  {item.error['code']}: {clean(item.error['message'])}")
        lines += [f"  {clean(item.error['hint'])}"] if item.error.get("hint") else []
    return "\n".join(lines)


def _state(item: ReportItem, *, is_dry: bool) -> str:
    if is_dry:
        return DRY_ACTIONS.get(item.action, item.action).replace("_", " ")
    if item.action in {"created", "replaced", "retried", "refreshed"}:
        return "ready" if item.ready else "accepted"
    return item.action


#: Maximum number of listed changes. `--json` and `-v` list all.
MOST_PATHS = 12
#: Names of actions in a dry run.
DRY_WORDS = {
    "created": "to create",
    "updated": "to update",
    "moved": "to move",
    "retried": "to retry",
    "detached": "to detach",
    "deleted": "to delete",
}


_NOT_HERE = frozenset({"gone", "detached", "deleted"})


def render_report(console: Console, report: SyncReport) -> str:
    """Render the report of the sync of one mapping."""
    items, counts = report.items.values(), report.counts
    # Not what was deleted or removed, and no folder that is left out or can't be read.
    here = [item for item in items if item.action not in _NOT_HERE and not item.path.endswith("/")]
    head = f"{counted(len(here) + report.unchanged, 'file')}, {clean(report.mapping)} to bucket {clean(report.bucket)}"
    rows = []
    for action in sorted(report.ACTIONS, key=lambda action: action != "failed"):
        sent = sum(item.size_bytes or 0 for item in items if item.action == action)
        if counts[action]:
            word = DRY_WORDS.get(action, action) if report.is_dry else action
            rows.append((word, counts[action], size(sent) if action in ("created", "updated") else ""))
    if counts["pending"] and not report.is_dry:
        rows.append(("pending", counts["pending"], ""))
    notes = "\n".join(f"note: {clean(note)}" for note in report.notes)
    plan, troubles = _render_plan(console, report), render_troubles(console, items)
    return _join(console, report, head, rows, plan, troubles, render_skips(console, items), notes)


def _render_plan(console: Console, report: SyncReport) -> str:
    """Render the planned changes of a dry run."""
    if not report.is_dry:
        return ""
    planned = [item for item in report.items.values() if item.action in CHANGES or item.action == "gone"]
    most = len(planned) if console.is_verbose else MOST_PATHS
    rows = [(DRY_WORDS.get(item.action, item.action), item.path) for item in planned[:most]]
    if len(planned) > most:
        rows.append(("", f"and {len(planned) - most} more"))
    return table(console, ("", "file"), rows) if rows else ""
