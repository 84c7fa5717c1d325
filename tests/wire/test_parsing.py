"""JSON and TOML are parsed up to a fixed depth, and printed without invisible characters and without loss."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from svc_daemon.wire.light.parsing import MOST_LEVELS, NestedTooDeeply, check_levels, parse_json, parse_toml
from svc_daemon.wire.light.printed_text import dump_json, escape_text
from tests.cli.terminals import HIDDEN

#: Documents with this many levels, in each syntax.
SHAPES: list[tuple[Callable[[str], Any], Callable[[int], str]]] = [
    (parse_json, lambda levels: "[" * levels + "]" * levels),
    (parse_json, lambda levels: '{"a":' * levels + "1" + "}" * levels),
    (lambda text: parse_json(text.encode()), lambda levels: '[{"a":' * (levels // 2) + "1" + "}]" * (levels // 2)),
    (parse_toml, lambda levels: "a = " + "[" * (levels - 1) + "]" * (levels - 1)),
    (parse_toml, lambda levels: "a = " + "{a = " * (levels - 1) + "1" + "}" * (levels - 1)),
    (parse_toml, lambda levels: ".".join("a" * levels) + " = 1"),
    (parse_toml, lambda levels: "[" + ".".join("a" * (levels - 1)) + "]"),
]


@pytest.mark.parametrize(("parse", "shape"), SHAPES)
def test_documents_are_parsed_up_to_a_fixed_depth_and_deeper_ones_are_value_errors(
    parse: Callable[[str], Any], shape: Callable[[int], str]
) -> None:
    assert parse(shape(MOST_LEVELS))
    for levels in (MOST_LEVELS + 2, 1000, 5000):
        with pytest.raises(NestedTooDeeply, match=f"deeper than {MOST_LEVELS} levels"):
            parse(shape(levels))


@pytest.mark.parametrize("text", ['"=".{} = 1', "a = {{ {} = 1 }}", "a = [{{ {} = 1 }}]", " [[{}]]"])
def test_long_dotted_key_is_refused_before_it_is_parsed_wherever_it_is(text: str) -> None:
    with pytest.raises(NestedTooDeeply):
        parse_toml(text.format(".".join("a" * 100_000)))


def test_dots_in_comments_are_no_keys() -> None:
    assert parse_toml(f"  # {'.' * 1000}\na = 1") == {"a": 1}


def test_wide_documents_and_brackets_in_strings_are_not_deep() -> None:
    assert len(parse_json("[" + ",".join(["[]"] * 5000) + "]")) == 5000
    assert parse_json('"' + "[" * 5000 + '"') == "[" * 5000
    with pytest.raises(ValueError, match="Expecting value"):
        parse_json("[" * MOST_LEVELS + "x")


def test_a_container_that_contains_itself_is_too_deep_and_one_that_is_repeated_is_not() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(NestedTooDeeply):
        check_levels(loop)
    repeated: list[Any] = []
    for _ in range(MOST_LEVELS - 1):
        repeated = [repeated, repeated]
    check_levels(repeated)


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
