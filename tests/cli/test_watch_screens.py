"""What the live screen of a watcher shows."""

import time
from pathlib import Path

import pytest

from svc_cli.commands.watch_screens import Display, render_states
from svc_cli.sync.mappings import Mapping
from svc_cli.uploads.items import ReportItem
from tests.cli.consoles import MakeConsole


@pytest.mark.parametrize("is_verbose", [False, True])
def test_skipped_files_are_counted_and_listed_on_demand(make_console: MakeConsole, is_verbose: bool) -> None:
    recorded = make_console(terminal=True, TERM="xterm-256color", NO_COLOR="1")
    recorded.console.is_verbose = is_verbose
    mapping = Mapping(name="docs", folder=Path("docs"), bucket="b")
    with Display(recorded.console) as display:
        display.show_item(mapping, ReportItem(path="a.md", action="created"))
        for number in range(5):
            display.show_item(mapping, ReportItem(path=f"{number}.gz", action="skipped", reason="type can't be read"))
        display.show([])
    shown = recorded.err.getvalue()
    assert "docs: created a.md" in shown
    assert ("docs: 5 skipped" in shown, "4.gz" in shown) == (not is_verbose, is_verbose)


@pytest.mark.parametrize("name", ["docs", "handbook", "handbook-of-the-north"])
def test_the_state_of_a_watcher_fits_60_columns(make_console: MakeConsole, name: str) -> None:
    console = make_console(terminal=True, TERM="xterm-256color", NO_COLOR="1", COLUMNS="60").console
    last = {"at": time.time()}
    state = {"mapping": name, "bucket": name, "state": "watching", "pending": 12, "last": last}
    shown = render_states(console, [{**state, "dir": "/srv/projects/handbook/docs", "syncs": {}}])
    assert max(map(len, shown.splitlines())) <= 60


def test_a_long_line_does_not_wrap(make_console: MakeConsole) -> None:
    recorded = make_console(terminal=True, TERM="xterm-256color", NO_COLOR="1", COLUMNS="60")
    mapping = Mapping(name="docs", folder=Path("docs"), bucket="b")
    with Display(recorded.console) as display:
        display.show_item(mapping, ReportItem(path=f"{'long/' * 40}a.md", action="created"))
        display.show([])
    assert "a.md" not in recorded.err.getvalue()
