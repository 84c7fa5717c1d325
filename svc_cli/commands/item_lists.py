"""Renders the files of a report: failed ones by cause, skipped ones by reason."""

import textwrap
from collections.abc import Iterable
from pathlib import PurePosixPath

from svc_cli.console import Console, clean
from svc_cli.render import table
from svc_cli.uploads.items import ReportItem
from svc_cli.uploads.skips import code_of

#: Maximum number of listed files with one reason. `--json` and `-v` list all.
MOST_NAMES = 3
_COLOURS = {"failed": "red", "conflict": "yellow"}


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
        lines += [first.replace(action, console.paint(action, _COLOURS.get(action, "bold")), 1), *more]
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
