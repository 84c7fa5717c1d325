"""The console: colours, errors, events and notes on its two streams, and progress displays."""

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from svc_cli.console import Console, Format, clean, has_colour
from svc_cli.errors import UsageError
from svc_cli.progress import LONGEST_SILENCE_S, Bar, Plain, SentBytes, Silent, Style, progress_for
from svc_cli.render import fields, table
from tests.cli.terminals import HIDDEN, MakeConsole, Terminal


def test_colour_is_decided_by_stream_and_environment(make_console: MakeConsole) -> None:
    rows: list[tuple[dict[str, str], bool, bool]] = [({}, True, True), ({}, False, False)]
    rows += [({"NO_COLOR": "1"}, True, False), ({"NO_COLOR": ""}, True, True), ({"NO_COLOR": ""}, False, False)]
    rows += [({"TERM": "dumb"}, True, False), ({"CI": "true"}, True, False)]
    rows += [({"FORCE_COLOR": "1"}, False, True), ({"FORCE_COLOR": "0"}, False, False)]
    rows += [({"FORCE_COLOR": "1", "CI": "true"}, False, True), ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False)]
    for environ, terminal, colour in rows:
        made = make_console(terminal=terminal, **environ)
        shown = (has_colour(made.out, environ), "\x1b[" in made.console.paint("x", "red"))
        assert shown == (colour, colour), environ
    console, closed = make_console().console, Terminal()
    console.err = Terminal()
    assert console.paint("x", "red") == "x", "per stream"
    assert console.paint("x", "red", console.err) != "x", "per stream"
    assert console.width() is None
    assert make_console(terminal=True, COLUMNS="70").console.width() == 70
    closed.close()
    assert not has_colour(closed, {}), "closed is no terminal"
    assert Console(closed, closed, {}).format == "text", "closed is no terminal"


@pytest.mark.parametrize(("form", "answer"), (("json", None), ("json", {"a": 1}), ("text", None)))
def test_error_goes_to_stderr_and_is_also_a_json_value_unless_an_answer_was_printed(
    form: str, answer: dict[str, Any] | None, make_console: MakeConsole
) -> None:
    made = make_console(form)
    if answer:
        made.console.answer(answer)
    made.console.fail(UsageError("wrong", hint="do this"))
    assert made.err.getvalue() == "error: wrong\nhint: do this\n"
    value: Any = json.loads(made.out.getvalue() or "null")
    assert value == answer if answer or form == "text" else value["error"]["code"] == "svc_usage"


def test_events_are_printed_only_as_ndjson(make_console: MakeConsole) -> None:
    expected = {"text": ["text"], "json": ['{"b": 2}'], "ndjson": ['{"a": "é\\n"}', '{"b": 2}']}
    for form, lines in expected.items():
        made = make_console(form)
        made.console.event({"a": "é\n"})
        made.console.show({"b": 2}, lambda: "text")
        assert made.out.getvalue().splitlines() == lines


def test_notes_need_text_format_and_next_steps_also_a_terminal(make_console: MakeConsole) -> None:
    notes = {("text", False): "note: hello\n", ("text", True): "note: hello\nnext: svc status\n", ("json", True): ""}
    for (form, terminal), shown in notes.items():
        made = make_console(form, terminal=terminal, NO_COLOR="1")
        made.console.note("hello")
        made.console.next_step("svc status")
        assert made.err.getvalue() == shown


def test_clean_escapes_control_and_bidirectional_characters() -> None:
    assert clean("plain ü 漢 tab\tline\n") == "plain ü 漢 tab\tline\n"
    assert clean("\x1b[2J a\rb \x9b31m \u202egpj") == "\\x1b[2J a\\rb \\x9b31m \\u202egpj"


#: The title of a document that tries to control the terminal with each character that could.
HOSTILE = f"\x1b]0;{''.join(HIDDEN)}\x07"


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("form", ["json", "ndjson"])
def test_json_escapes_control_and_bidirectional_characters(
    make_console: MakeConsole, form: Format, terminal: bool
) -> None:
    made = make_console(form, terminal=terminal)
    made.console.event({"title": HOSTILE})
    made.console.answer({HOSTILE: [HOSTILE]})
    shown = made.out.getvalue()
    assert not set(HIDDEN) & set(shown)
    assert json.loads(shown.split("\n", 1)[1] if form == "ndjson" else shown) == {HOSTILE: [HOSTILE]}


#: The ways in which text gets to a terminal.
WAYS: dict[str, Callable[[Console], None]] = {
    "print": lambda console: console.print(console.paint(HOSTILE, "red")),
    "write": lambda console: console.write(HOSTILE),
    "show": lambda console: console.show({}, lambda: f"wrote {HOSTILE}"),
    "table": lambda console: console.print(table(console, ("a", HOSTILE), [(HOSTILE, [HOSTILE])])),
    "fields": lambda console: console.print(fields(console, [("title", HOSTILE)])),
    "message": lambda console: console.message(HOSTILE),
    "note": lambda console: console.note(HOSTILE),
    "warn": lambda console: console.warn(HOSTILE),
    "next step": lambda console: console.next_step(HOSTILE),
    "error": lambda console: console.fail(UsageError(HOSTILE, hint=HOSTILE)),
    "bar": lambda console: _progress(console, "bar"),
    "lines": lambda console: _progress(console, "plain"),
}


def _progress(console: Console, style: Style) -> None:
    seconds = iter(range(0, 1000, 100))
    with progress_for(console, style, lambda: float(next(seconds))) as progress:
        progress.begin(HOSTILE, 2)
        progress.update(1, HOSTILE)


@pytest.mark.parametrize("environ", [{}, {"NO_COLOR": "1"}, {"FORCE_COLOR": "1"}])
@pytest.mark.parametrize("way", WAYS)
def test_text_controls_no_terminal(make_console: MakeConsole, way: str, environ: dict[str, str]) -> None:
    made = make_console(terminal=True, **environ)
    WAYS[way](made.console)
    shown = made.out.getvalue() + made.err.getvalue()
    assert not (set(HIDDEN) | {"\x07"}) & set(shown)
    assert "\x1b]" not in shown
    assert "\\x1b]0;" in shown.replace("\n", "")


def test_progress_style_is_detected_only_when_it_is_auto(make_console: MakeConsole) -> None:
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


def test_plain_progress_prints_20_to_25_lines_in_an_hour_without_long_gaps(make_console: MakeConsole) -> None:
    made, now_s = make_console(), [0.0]
    with progress_for(made.console, "plain", lambda: now_s[0]) as progress:
        progress.begin("sending", None)
        for second in range(3601):
            now_s[0] = float(second)
            progress.update(second)
    shown_s = [int(line.removeprefix("sending: ")) for line in made.err.getvalue().splitlines()]
    assert 20 <= len(shown_s) <= 25
    assert max(later - earlier for earlier, later in pairwise(shown_s)) <= LONGEST_SILENCE_S


def test_short_phase_shows_no_progress(make_console: MakeConsole) -> None:
    made = make_console()
    with progress_for(made.console, "auto") as progress:
        progress.begin("sending", 1)
        progress.update(1)
    assert made.err.getvalue() == ""


def test_bar_shows_the_phase_and_is_erased_at_the_end(make_console: MakeConsole) -> None:
    made = make_console(terminal=True)
    with progress_for(made.console, "bar") as progress:
        progress.begin("sending", 2)
        progress.update(1, "1 MB")
        progress.begin("indexing", 2)
        progress.update(2)
    shown = made.err.getvalue()
    assert "indexing" in shown
    assert shown[-4:] == "\x1b[2K"
    assert made.out.getvalue() == ""


def test_note_shows_bytes_sent_rate_and_the_number_of_waiting_requests() -> None:
    now_s = [0.0]
    sent = SentBytes(lambda: now_s[0])
    assert sent.note() == "0 KB"
    sent.count(3 * 1024**2)
    assert sent.note() == "3.0 MB"
    now_s[0] = 2.0
    assert sent.note(2) == "3.0 MB, 1.5 MB/s, 2 waiting for the rate limit"


def test_bar_shows_how_much_is_done_the_rate_and_the_time_left(make_console: MakeConsole) -> None:
    now_s = [0.0]
    bar = Bar(make_console(terminal=True).console, lambda: now_s[0])
    bar.begin("sending", 600)
    assert bar.line(80).split() == ["sending", "0/600"]
    now_s[0] = 10.0
    bar.update(150, "2 MB")
    assert bar.line(80) == f"sending  {'━' * 5}{' ' * 15}  150/600  15/s  30 s left  2 MB"
    assert len(bar.line(30)) == 29


def test_bar_on_a_terminal_that_became_narrower_clears_each_row_that_it_took(
    make_console: MakeConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, columns = make_console(terminal=True), [80]
    bar = Bar(made.console, lambda: 0.0)
    monkeypatch.setattr(bar, "_columns", lambda: columns[0])
    bar.begin("sending", 10)
    bar.update(3, "a note that makes the line long enough")
    bar.begin("indexing", 10)
    bar.update(3, "n" * 40)
    bar._draw()
    columns[0] = 30
    written = len(made.err.getvalue())
    bar._draw()
    assert made.err.getvalue()[written:].startswith("\x1b[2A\r\x1b[J")
