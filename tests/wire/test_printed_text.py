"""No invisible character is printed raw, and all text comes back from JSON as it was."""

import json

import pytest

from svc_daemon.wire.printed_text import dump_json, escape_text
from tests.cli.consoles import HIDDEN

JOINERS = ["\u200c", "\u200d"]


@pytest.mark.parametrize("indent", [None, 2])
def test_json_escapes_each_invisible_character_and_keeps_the_value(indent: int | None) -> None:
    value = {f"name{hidden}": ["é", hidden, f"a{hidden}b"] for hidden in [*HIDDEN, *JOINERS, "\x1b", "\n"]}
    printed = dump_json(value, indent)
    assert not {*HIDDEN, *JOINERS, "\x1b"} & set(printed)
    assert json.loads(printed) == value
    assert dump_json("\U000e0041é\u200b\x7f") == '"\\udb40\\udc41é\\u200b\\u007f"'


def test_text_escapes_each_invisible_character() -> None:
    for hidden in HIDDEN:
        assert escape_text(f"a{hidden}b\n\tü") == f"a{ascii(hidden)[1:-1]}b\n\tü"
    assert escape_text("a\x7f\x1b[m\tb\n") == "a\\x7f\\x1b[m\tb\n"


def test_joiners_stay_in_text_only_where_they_join() -> None:
    used = "👩\u200d💻 \u0646\u0645\u06cc\u200c\u062e"
    assert escape_text(used) == used
    for joiner in JOINERS:
        for text in (f"{joiner}a", f"a{joiner}", f"a {joiner}b", f"a{joiner} b"):
            assert joiner not in escape_text(text)
        assert joiner not in escape_text(f"a{joiner * 3}b")[2:-2]
