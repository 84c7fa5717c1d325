"""The two streams."""

import json
from typing import Any

from svc_cli.console import Console, clean, has_colour
from svc_cli.errors import UsageError
from tests.cli.consoles import MakeConsole, Terminal


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


def test_each_stream_decides_for_itself(make_console: MakeConsole) -> None:
    made = make_console()
    made.console.err = Terminal()
    assert made.console.paint("x", "red") == "x"
    assert made.console.paint("x", "red", made.console.err) != "x"


def test_an_error_is_one_line_and_in_json_one_value_unless_there_is_an_answer(make_console: MakeConsole) -> None:
    for form, answer in (("json", None), ("json", {"a": 1}), ("text", None)):
        made = make_console(form)
        if answer:
            made.console.answer(answer)
        made.console.fail(UsageError("wrong", hint="do this"))
        assert made.err.getvalue() == "error: wrong\nhint: do this\n"
        shown = made.out.getvalue()
        value: Any = json.loads(shown) if shown else None
        assert value == answer if answer or form == "text" else value["error"]["code"] == "svc_usage"


def test_events_are_lines_of_ndjson_and_of_nothing_else(make_console: MakeConsole) -> None:
    expected = {"text": ["text"], "json": ['{"b": 2}'], "ndjson": ['{"a": "é\\n"}', '{"b": 2}']}
    for form, lines in expected.items():
        made = make_console(form)
        made.console.event({"a": "é\n"})
        made.console.show({"b": 2}, lambda: "text")
        assert made.out.getvalue().splitlines() == lines


def test_notes_are_for_people_and_the_next_command_for_a_terminal(make_console: MakeConsole) -> None:
    notes = {("text", False): "note: hello\n", ("text", True): "note: hello\nnext: svc status\n", ("json", True): ""}
    for (form, terminal), shown in notes.items():
        made = make_console(form, terminal=terminal, NO_COLOR="1")
        made.console.note("hello")
        made.console.next_step("svc status")
        assert made.err.getvalue() == shown


def test_text_from_elsewhere_can_not_drive_the_terminal() -> None:
    assert clean("plain ü 漢 tab\tline\n") == "plain ü 漢 tab\tline\n"
    assert clean("\x1b[2J a\rb \x9b31m \u202egpj") == "\\x1b[2J a\\x0db \\x9b31m \\x202egpj"


def test_a_file_has_no_width_and_a_terminal_takes_it_from_columns(make_console: MakeConsole) -> None:
    assert make_console().console.width() is None
    assert make_console(terminal=True, COLUMNS="70").console.width() == 70


def test_a_closed_stream_is_no_terminal() -> None:
    closed = Terminal()
    closed.close()
    assert has_colour(closed, {}) is False
    assert Console(closed, closed, {}).format == "text"
