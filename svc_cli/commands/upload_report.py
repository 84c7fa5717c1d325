"""How the end of an upload reads: counts first, then what needs attention, then the next command."""

from collections import Counter

from svc_cli.commands.item_lists import render_skips, render_troubles
from svc_cli.console import Console, clean
from svc_cli.exits import Exit
from svc_cli.render import size, table
from svc_cli.uploads.summaries import DRY_ACTIONS, Item, Summary

_COLOURS = {"ready": "green", "failed": "red", "conflict": "yellow"}


def render_summary(console: Console, summary: Summary) -> str:
    """The whole report."""
    if len(summary.items) == 1 and not summary.stopped_by:
        return _one(console, summary)
    items = summary.items
    warnings = "\n".join(f"warning: {clean(item.path)}: {clean(text)}" for item in items for text in item.warnings)
    parts = [_counts(console, summary), render_troubles(console, items), render_skips(console, items), warnings]
    return "\n\n".join(part for part in parts if part)


def say_next(console: Console, summary: Summary) -> None:
    """Name the command that comes next."""
    if summary.stopped_by or summary.is_dry:
        return
    if summary.counts["failed"]:
        console.next_step(f"svc status -b {summary.bucket}")
    elif summary.counts["pending"]:
        console.next_step(f"svc status -b {summary.bucket} --watch")
    elif summary.exit is Exit.DONE:
        console.next_step(f'svc search "…" -b {summary.bucket}')


def _one(console: Console, summary: Summary) -> str:
    item = summary.items[0]
    state = _state(item, is_dry=summary.is_dry)
    line = "  ".join(
        filter(None, (console.paint(state, _COLOURS.get(state, "bold")), item.source_id, clean(item.path)))
    )
    lines = [line, *(f"  {clean(warning)}" for warning in item.warnings)]
    return "\n".join([*lines, *_reasons(item)])


def _state(item: Item, *, is_dry: bool) -> str:
    if is_dry:
        return DRY_ACTIONS.get(item.action, item.action).replace("_", " ")
    if item.action in {"created", "replaced", "retried", "refreshed"}:
        return "ready" if item.ready else "accepted"
    return item.action


def _reasons(item: Item) -> list[str]:
    if item.reason:
        return [f"  {item.reason}"]
    if not item.error:
        return []
    hint = item.error.get("hint")
    first = f"  {item.error['code']}: {clean(item.error['message'])}"
    return [first, *([f"  {clean(hint)}"] if hint else [])]


def _counts(console: Console, summary: Summary) -> str:
    total = Counter(_state(item, is_dry=summary.is_dry) for item in summary.items)
    bytes_by_state: Counter[str] = Counter()
    for item in summary.items:
        bytes_by_state[_state(item, is_dry=summary.is_dry)] += item.size_bytes or 0
    order = ["failed", "conflict", "ready", "accepted", *DRY_ACTIONS.values(), "unchanged", "skipped"]
    names = [name.replace("_", " ") for name in order]
    rows = [
        (name, total[name], size(bytes_by_state[name]) if bytes_by_state[name] else "") for name in names if total[name]
    ]
    things = "URLs" if summary.kind == "import" else "files"
    took = f"{summary.duration_ms / 1000:.1f} s"
    head = f"{len(summary.items) + summary.remaining} {things}, bucket {summary.bucket}, {took}"
    if summary.remaining:
        rows.append(("not sent", summary.remaining, ""))
    return f"{console.paint(head, 'bold')}\n{table(console, ('', '', ''), rows)}" if rows else head
