"""Progress on a terminal and elsewhere."""

from itertools import pairwise

from svc_cli.progress import LONGEST_SILENCE_S, Bar, Flow, Plain, Silent, Style, progress_for
from tests.cli.consoles import MakeConsole


def test_the_stream_decides_unless_the_user_does(make_console: MakeConsole) -> None:
    rows: list[tuple[Style, bool, dict[str, str], type]] = [("auto", True, {}, Bar), ("auto", False, {}, Plain)]
    rows += [("auto", True, {"CI": "1"}, Plain), ("auto", True, {"TERM": "dumb"}, Plain)]
    rows += [("bar", False, {}, Bar), ("plain", True, {}, Plain), ("none", True, {}, Silent)]
    for style, terminal, environ, kind in rows:
        made = make_console(terminal=terminal, **environ)
        assert type(progress_for(made.console, style)) is kind, (style, terminal, environ)


def test_plain_progress_shows_at_most_one_line_in_ten_seconds(make_console: MakeConsole) -> None:
    made, now_s = make_console(), [0.0]
    with progress_for(made.console, "plain", lambda: now_s[0]) as progress:
        progress.begin("sending", 3000)
        for second in range(60):
            now_s[0] = float(second)
            for _ in range(5):
                progress.update(second, "2 MB")
    lines = made.err.getvalue().splitlines()
    assert lines == [f"sending: {second} of 3000, 2 MB" for second in (10, 20, 30, 40, 54)]


def test_plain_progress_of_an_hour_is_25_lines_and_never_silent_for_long(make_console: MakeConsole) -> None:
    made, now_s = make_console(), [0.0]
    with progress_for(made.console, "plain", lambda: now_s[0]) as progress:
        progress.begin("sending", None)
        for second in range(3601):
            now_s[0] = float(second)
            progress.update(second)
    shown_s = [int(line.removeprefix("sending: ")) for line in made.err.getvalue().splitlines()]
    assert 20 <= len(shown_s) <= 25
    assert max(later - earlier for earlier, later in pairwise(shown_s)) <= LONGEST_SILENCE_S


def test_short_work_shows_nothing(make_console: MakeConsole) -> None:
    made = make_console()
    with progress_for(made.console, "auto") as progress:
        progress.begin("sending", 1)
        progress.update(1)
    assert made.err.getvalue() == ""


def test_a_bar_shows_the_phase_and_goes_away(make_console: MakeConsole) -> None:
    made = make_console(terminal=True)
    with progress_for(made.console, "bar") as progress:
        progress.begin("sending", 2)
        progress.update(1, "1 MB")
        progress.begin("indexing", 2)
        progress.update(2)
    shown = made.err.getvalue()
    assert ("indexing" in shown, shown[-4:], made.out.getvalue()) == (True, "\x1b[2K", "")


def test_a_flow_notes_bytes_rate_and_what_waits() -> None:
    now_s = [0.0]
    flow = Flow(lambda: now_s[0])
    assert flow.note() == "0 KB"
    flow.count(3 * 1024**2)
    assert flow.note() == "3.0 MB"
    now_s[0] = 2.0
    assert flow.note(2) == "3.0 MB, 1.5 MB/s, 2 waiting for the rate limit"
