"""The output of `svc watch`: a live table on a terminal, otherwise a line per event."""

import time
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from svc_cli.commands.daily.status import Screen
from svc_cli.console import Console, clean, is_terminal
from svc_cli.render import cut, fields, table
from svc_cli.sync.mappings import Mapping
from svc_cli.sync.safety import Withheld
from svc_cli.transfer.reports import ReportItem
from svc_daemon.wire import Json

#: Number of events below the live table.
LAST_LINES = 10
#: Minimum seconds between two redraws.
DRAW_S = 0.1
NOTHING_WITHHELD = "the bucket no longer contains sources of deleted files."


class Display:
    """Shows the state and events of the watchers in this process."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._is_live = console.is_text and is_terminal(console.err) and console.environ.get("TERM") != "dumb"
        self._screen = Screen(console)
        self._lines: deque[str] = deque(maxlen=LAST_LINES)
        self._drawn_s = 0.0
        #: The last state of each mapping that was shown, and that was said in a line of text.
        self._shown: dict[str, str] = {}
        self._said: dict[str, str] = {}
        #: Skipped paths by mapping, of which the live table only shows the number.
        self._skipped: dict[str, set[str]] = {}
        #: The last known state of each watched folder.
        self.states: list[Json] = []

    def __enter__(self) -> Self:
        if self._is_live:
            self._screen.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_live:
            self._screen.__exit__(kind, error, trace)

    def show_item(self, mapping: Mapping, item: ReportItem) -> None:
        """Show the outcome for a file."""
        self._console.event({"type": "watch.item", "mapping": mapping.name, **item.as_json()})
        if self._is_live and item.action == "skipped" and not self._console.is_verbose:
            self._skipped.setdefault(mapping.name, set()).add(item.path)
            return
        self._print(f"{mapping.name}: {_item_line(item.as_json())}")

    def show_note(self, mapping: Mapping, text: str, is_warning: bool) -> None:
        """Show a note or a warning."""
        self._console.event({"type": "watch.note", "mapping": mapping.name, "message": text, "warning": is_warning})
        self._show_line(mapping, text, is_warning=is_warning)

    def show_withheld(self, mapping: Mapping, withheld: Sequence[Withheld]) -> None:
        """Show why the sources of deleted files stay in the bucket."""
        causes = [each.as_json() for each in withheld]
        self._console.event({"type": "watch.withheld", "mapping": mapping.name, "withheld": causes})
        for each in withheld:
            self._show_line(mapping, str(each), is_warning=True)
        if not withheld:
            self._show_line(mapping, NOTHING_WITHHELD, is_warning=False)

    def _show_line(self, mapping: Mapping, text: str, *, is_warning: bool) -> None:
        if is_warning and not self._is_live:
            self._console.warn(f"{mapping.name}: {text}")
            self._console.err.flush()
        else:
            self._print(f"{mapping.name}: {text}")

    def show(self, watchers: Sequence[Any]) -> None:
        """Show the watchers whose state has changed."""
        self.states = [watcher.facts() for watcher in watchers]
        for state in self.states:
            if self._shown.get(state["mapping"]) == state["state"]:
                continue
            self._shown[state["mapping"]] = state["state"]
            self._console.event({"type": "watch.state", **state})
            is_said = self._said.get(state["mapping"]) == state["state"]
            if not (self._is_live or is_said) and self._console.is_text and state["state"] in ("watching", "missing"):
                self._said[state["mapping"]] = state["state"]
                self._console.message(f"{state['mapping']}: {state['state']} {state['dir']}")
        self._draw()

    def _draw(self) -> None:
        if self._is_live:
            self._drawn_s = time.monotonic()
            room = self._console.width()
            lines = [line if room is None else cut(line, room) for line in self._lines]
            skips = [
                f"{name}: {len(paths)} skipped; `svc watch log {name}` lists them"
                for name, paths in self._skipped.items()
            ]
            self._screen.update("\n".join([render_states(self._console, self.states), *skips, "", *lines]))

    def _print(self, line: str) -> None:
        if self._is_live:
            self._lines.append(f"{time.strftime('%H:%M:%S')}  {clean(line)}")
            if time.monotonic() - self._drawn_s > DRAW_S:
                self._draw()
        elif self._console.is_text:
            self._console.print(clean(line))
            self._console.out.flush()


def render_mappings(console: Console, mappings: Sequence[Json]) -> str:
    """Render the output of `svc watch ls`."""
    rows = [
        (each["mapping"], each["bucket"], each["prune"], " ".join(each["exclude"]), each["dir"]) for each in mappings
    ]
    heads = ("mapping", "bucket", "prune", "excluded", "folder")
    return table(console, heads, rows) if rows else "there are no mappings."


def render_states(console: Console, states: Sequence[Json]) -> str:
    """Render `watch status`, with details where there are any."""
    if not states:
        return "there are no mappings."
    rows, details = [], []
    for state in states:
        at = time.localtime((state.get("last") or {}).get("at", 0))
        last = time.strftime("%H:%M:%S" if at[:3] == time.localtime()[:3] else "%Y-%m-%d", at)
        rows.append(
            (
                *(state["mapping"], state["bucket"], state["state"], state.get("pending") or ""),
                *(last if state.get("last") else "", state["dir"]),
            )
        )
        syncs = ", ".join(f"{count} {reason}" for reason, count in (state.get("syncs") or {}).items())
        pairs = [
            ("busy", state.get("busy")),
            ("full syncs", syncs),
            ("polling", state.get("polling")),
            ("withheld", " ".join(_withheld(state))),
            ("not watched", ", ".join(state.get("unwatched") or ())),
            ("trouble", (state.get("error") or {}).get("message")),
            ("hint", (state.get("error") or {}).get("hint")),
        ]
        if any(value for _, value in pairs):
            details += ["", console.paint(clean(state["mapping"]), "bold"), fields(console, pairs)]
    heads = ("mapping", "bucket", "state", "pending", "last", "folder")
    return "\n".join([table(console, heads, rows), *details])


def render_line(line: Json) -> str:
    """Render a line of the watcher's log."""
    at = clean(str(line.get("at", "")))
    if line["type"] == "watch.item":
        return f"{at}  {clean(_item_line(line))}"
    if line["type"] == "watch.sync":
        counts = ", ".join(f"{count} {action}" for action, count in line["counts"].items())
        return f"{at}  synced ({line['reason']}, {line['duration_ms']} ms): {counts or 'nothing'}"
    if line["type"] == "watch.withheld":
        return "\n".join(f"{at}  {clean(text)}" for text in _withheld(line) or [NOTHING_WITHHELD])
    return f"{at}  {clean(str(line.get('error', {}).get('message', line['type'])))}"


def _item_line(item: Json) -> str:
    why = item["error"]["message"] if item["error"] else item["reason"]
    return f"{item['action']} {item['path']}{f' ({why})' if why else ''}"


def _withheld(value: Json) -> list[str]:
    return [each["message"] for each in value.get("withheld") or []]
