"""The reports of uploads, imports and syncs: counts, what needs attention, the next command."""

import textwrap
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Literal

from svc_cli.console import Console, clean
from svc_cli.errors import SvcError, whole_error
from svc_cli.exits import Exit
from svc_cli.render import counted, size, table
from svc_cli.sync.run_state import ACTIONS as SYNC_ACTIONS
from svc_cli.sync.run_state import CHANGES, Report
from svc_cli.transfer.ignores import code_of
from svc_cli.transfer.items import DRY_ACTIONS, ReportItem, error_for, exit_for
from svc_daemon.wire import Json

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
            causes.setdefault((item.action, cause), []).append(clean(item.path))
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


#: All outcomes, in the order of the summary.
ACTIONS = ("created", "replaced", "retried", "refreshed", "unchanged", "conflict", "skipped", "failed")
_COLOURS = {"ready": "green", "failed": "red", "conflict": "yellow"}


@dataclass(slots=True, kw_only=True)
class Summary:
    """The result of an upload or import."""

    kind: Literal["upload", "import", "bucket.import"] = "upload"
    bucket: str
    items: list[ReportItem]
    duration_ms: int
    is_dry: bool = False
    is_strict: bool = False
    #: What ended the run early, such as Ctrl-C or a timeout.
    stopped_by: SvcError | None = None
    #: Number of files or URLs that were not processed.
    remaining: int = 0
    #: How many vectors an export has for the sent files, and how many the service kept; None if there are none.
    vectors: Json | None = None
    #: Batches in which files were sent.
    batch_ids: list[str] = field(default_factory=list)

    @property
    def noun(self) -> str:
        """Return what an item is called: `file`, `URL` or `source`."""
        return {"upload": "file", "import": "URL", "bucket.import": "source"}[self.kind]

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of items for each outcome, and the numbers of ready and of pending items."""
        counted = Counter(item.action for item in self.items)
        return {action: counted[action] for action in ACTIONS} | {
            "ready": sum(item.ready for item in self.items),
            "pending": sum(item.is_pending for item in self.items),
        }

    @property
    def exit(self) -> Exit:
        """Return the exit code of the command."""
        return self.stopped_by.exit if self.stopped_by else exit_for(self.items, is_strict=self.is_strict)

    def as_json(self) -> Json:
        """Build the value for `--json`, with an `error` if the exit code is not 0."""
        value = {
            "v": 1,
            "type": f"{self.kind}.summary",
            "bucket": self.bucket,
            "dry_run": self.is_dry,
            "items": [item.as_json(is_dry=self.is_dry) for item in self.items],
            "counts": self.counts,
            "remaining": self.remaining,
            "batch_ids": self.batch_ids,
            "bytes_sent": sum(item.sent_bytes for item in self.items),
            "duration_ms": self.duration_ms,
            "exit_code": int(self.exit),
        }
        if self.vectors is not None:
            value["vectors"] = self.vectors
        if self.stopped_by is not None:
            value["error"] = whole_error({**self.stopped_by.body(), "request_id": self.stopped_by.request_id})
        elif self.exit is not Exit.DONE:
            value["error"] = whole_error(error_for(self.items, f"of {counted(len(self.items), self.noun)}"))
        return value

    def show(self, console: Console, note: str = "") -> Exit:
        """Print report, note and next command. Returns the exit code."""
        console.show(self.as_json(), lambda: render_summary(console, self))
        if self.stopped_by is not None:
            console.fail(self.stopped_by)
        elif note:
            console.note(note)
        if self.stopped_by or self.is_dry:
            return self.exit
        if self.counts["failed"]:
            console.next_step(f"svc status -b {self.bucket}")
        elif self.counts["pending"]:
            console.next_step(f"svc status -b {self.bucket} --watch")
        elif self.exit is Exit.DONE:
            console.next_step(f'svc search "…" -b {self.bucket}')
        return self.exit


def render_summary(console: Console, summary: Summary) -> str:
    """Render the report; for a single file, only its state."""
    items = summary.items
    if len(items) == 1 and not summary.stopped_by:
        return _render_one(console, items[0], is_dry=summary.is_dry)
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for item in items:
        state = _state(item, is_dry=summary.is_dry)
        counts[state] += 1
        sizes[state] += item.size_bytes or 0
    order = ["failed", "conflict", "ready", "accepted", *DRY_ACTIONS.values(), "unchanged", "skipped"]
    names = [name.replace("_", " ") for name in order]
    rows = [(name, counts[name], size(sizes[name]) if sizes[name] else "") for name in names if counts[name]]
    if summary.remaining:
        rows.append(("not sent", summary.remaining, ""))
    took = f"{summary.duration_ms / 1000:.1f} s"
    head = f"{counted(len(items) + summary.remaining, summary.noun)}, bucket {summary.bucket}, {took}"
    head = f"{console.paint(head, 'bold')}\n{table(console, ('', '', ''), rows)}" if rows else head
    warnings = "\n".join(f"warning: {clean(item.path)}: {clean(text)}" for item in items for text in item.warnings)
    parts = [head, render_troubles(console, items), render_skips(console, items), warnings]
    return "\n\n".join(part for part in parts if part)


def _render_one(console: Console, item: ReportItem, *, is_dry: bool) -> str:
    state = _state(item, is_dry=is_dry)
    words = (console.paint(state, _COLOURS.get(state, "bold")), item.source_id, clean(item.path))
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


def render_report(console: Console, report: Report) -> str:
    """Render the report of the sync of one mapping."""
    items, counts = report.items.values(), report.counts
    total = sum(counts[action] for action in SYNC_ACTIONS)
    took = f"{report.duration_ms / 1000:.1f} s"
    head = f"{counted(total, 'file')}, {clean(report.mapping)} to bucket {clean(report.bucket)}, {took}"
    rows = []
    for action in sorted(SYNC_ACTIONS, key=lambda action: action != "failed"):
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
    most = len(planned) if console.is_verbose else MOST_PATHS
    rows = [(DRY_WORDS.get(item.action, item.action), item.path) for item in planned[:most]]
    if len(planned) > most:
        rows.append(("", f"and {len(planned) - most} more"))
    return table(console, ("", "file"), rows) if rows else ""
