"""The two streams."""

import json

import pytest

from svc_cli.console import Console, clean, has_colour
from svc_cli.errors import UsageError
from tests.cli.consoles import MakeConsole, Terminal


@pytest.mark.parametrize(
    ("environ", "terminal", "colour"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"TERM": "dumb"}, True, False),
        ({"CI": "true"}, True, False),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "0"}, False, False),
        ({"FORCE_COLOR": "1", "CI": "true"}, False, True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
    ],
)
def test_colour_is_decided_by_stream_and_environment(
    make_console: MakeConsole, environ: dict[str, str], terminal: bool, colour: bool
) -> None:
    made = make_console(terminal=terminal, **environ)
    assert has_colour(made.out, environ) is colour
    assert ("\x1b[" in made.console.paint("x", "red")) is colour


def test_each_stream_decides_for_itself(make_console: MakeConsole) -> None:
    made = make_console()
    made.console.err = Terminal()
    assert made.console.paint("x", "red") == "x"
    assert made.console.paint("x", "red", made.console.err) != "x"


def test_an_error_is_one_json_value_and_one_line(make_console: MakeConsole) -> None:
    made = make_console("json")
    made.console.fail(UsageError("wrong", hint="do this"))
    assert json.loads(made.out.getvalue())["error"]["code"] == "svc_usage"
    assert made.err.getvalue() == "error: wrong\nhint: do this\n"


def test_an_error_after_the_answer_adds_no_second_value(make_console: MakeConsole) -> None:
    made = make_console("json")
    made.console.answer({"a": 1})
    made.console.fail(UsageError("wrong"))
    assert json.loads(made.out.getvalue()) == {"a": 1}


def test_in_text_an_error_leaves_stdout_alone(make_console: MakeConsole) -> None:
    made = make_console()
    made.console.fail(UsageError("wrong"))
    assert made.out.getvalue() == ""


def test_events_are_lines_of_ndjson_and_of_nothing_else(make_console: MakeConsole) -> None:
    for form in ("text", "json", "ndjson"):
        made = make_console(form)
        made.console.event({"a": "é\n"})
        made.console.show({"b": 2}, lambda: "text")
        lines = made.out.getvalue().splitlines()
        expected = {"text": ["text"], "json": ['{"b": 2}'], "ndjson": ['{"a": "é\\n"}', '{"b": 2}']}
        assert lines == expected[form]


def test_notes_are_for_people(make_console: MakeConsole) -> None:
    for form, expected in (("text", "note: hello\n"), ("json", "")):
        made = make_console(form)
        made.console.note("hello")
        assert made.err.getvalue() == expected


def test_the_next_command_is_named_on_a_terminal_only(make_console: MakeConsole) -> None:
    piped, seen = make_console(), make_console(terminal=True, NO_COLOR="1")
    piped.console.next_step("svc status")
    seen.console.next_step("svc status")
    assert (piped.err.getvalue(), seen.err.getvalue()) == ("", "next: svc status\n")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ü 漢", "plain ü 漢"),
        ("\x1b[2J", "\\x1b[2J"),
        ("a\rb", "a\\x0db"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202egpj", "\\x202egpj"),
        ("tab\tline\n", "tab\tline\n"),
    ],
)
def test_text_from_elsewhere_can_not_drive_the_terminal(text: str, shown: str) -> None:
    assert clean(text) == shown


def test_a_file_has_no_width_and_a_terminal_takes_it_from_columns(make_console: MakeConsole) -> None:
    assert make_console().console.width() is None
    assert make_console(terminal=True, COLUMNS="70").console.width() == 70


def test_a_closed_stream_is_no_terminal() -> None:
    closed = Terminal()
    closed.close()
    assert has_colour(closed, {}) is False
    assert Console(closed, closed, {}).format == "text"
