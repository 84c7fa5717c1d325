"""Tests which JSON bodies are accepted."""

from typing import Any

import pytest

from svc_daemon.core.json_bodies import (
    MAX_DEPTH,
    MAX_ENTRIES,
    find_key,
    parse_object,
    refusals,
)
from svc_daemon.errors import ServiceError
from svc_daemon.wire.light.error_codes import ErrorCode
from tests.core.refusals import refusal
from tests.limits import cpu_limit_s


def nested_lists(depth: int) -> bytes:
    return b'{"a":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


def nested_objects(depth: int) -> bytes:
    return b'{"a":' * depth + b"1" + b"}" * depth


TAKEN: list[tuple[bytes, dict[str, Any]]] = [
    *((b"{}", {}), (b' { "a" : [1, 2.5, true, null, "x"] } ', {"a": [1, 2.5, True, None, "x"]})),
    (b'{"a": 9223372036854775807, "b": -9223372036854775808}', {"a": 2**63 - 1, "b": -(2**63)}),
    *((b'{"a": 1e300}', {"a": 1e300}), ('{"ü": "日本"}'.encode(), {"ü": "日本"})),
    *((b'{"a": "\\ud83d\\ude00"}', {"a": "\U0001f600"}), (b'{"a": "\\\\u0000"}', {"a": "\\u0000"})),
    (b'{"a": {"x": 1}, "b": {"x": 1}}', {"a": {"x": 1}, "b": {"x": 1}}),
    (b'{"a": "' + b"[" * 100 + b'"}', {"a": "[" * 100}),
    (b'{"a": "' + b"," * MAX_ENTRIES + b'"}', {"a": "," * MAX_ENTRIES}),
    (f'{{"a": [{", ".join("1" * (MAX_ENTRIES - 1))}]}}'.encode(), {"a": [1] * (MAX_ENTRIES - 1)}),
]

REFUSED = [
    # No JSON value, or several.
    *(b"", b"hello", b'{"a": ', b"{} {}", b'{"a": 1,}', b"{'a': 1}"),
    # NaN and infinity, and integers beyond 64 bits.
    *(b'{"a": NaN}', b'{"a": Infinity}', b'{"a": -Infinity}', b'{"a": 1e999}', b'{"a": 9223372036854775808}'),
    *(b'{"a": -9223372036854775809}', b'{"a": ' + b"1" * 10_000 + b"}"),
    # Duplicate keys, also escaped or nested.
    *(b'{"a": 1, "a": 1}', b'{"a": 1, "\\u0061": 2}', b'{"x": [{"a": 1, "a": 2}]}'),
    # NUL, a raw line feed, and half a surrogate pair.
    *(b'{"a": "x\\u0000"}', b'{"x\\u0000": 1}', b'{"a": "x\0"}', b'{"a": "x\n"}'),
    *(b'{"a": ["\\ud800"]}', b'{"a": "\\uDC00"}', b'{"\\ud800": 1}', b'{"a": "\xed\xa0\x80"}'),
    # Other encodings, and a byte order mark.
    *('{"a": "ü"}'.encode("latin-1"), '{"a": 1}'.encode("utf-16"), b'\xef\xbb\xbf{"a": 1}'),
    # One level or many levels too deep, and one entry too many.
    *(nested_lists(MAX_DEPTH + 1), nested_objects(MAX_DEPTH + 1), b"[" * 100_000),
    f'{{"a": [{", ".join("1" * MAX_ENTRIES)}]}}'.encode(),
    f'{{"a": [{", ".join(["[0]"] * (MAX_ENTRIES // 2))}]}}'.encode(),
]

KEYS = [
    *(({"team_id": 1}, "team_id"), ({"a": [{"b": 1}, {"team_id": None}]}, "a.1.team_id"), ({"a": "team_id"}, None)),
    *(({"metadata": {"team_id": 1}}, None), ({"webhook": {"metadata": {"team_id": 1}}}, None)),
    ({"metadata": {}, "x": {"team_id": 1}}, "x.team_id"),
]


def test_an_object_is_parsed() -> None:
    for data, document in TAKEN:
        assert parse_object(data) == document, data[:99]
    for data in [nested_lists(MAX_DEPTH), nested_objects(MAX_DEPTH)]:
        assert parse_object(data)


@pytest.mark.parametrize("data", REFUSED)
def test_json_that_parsers_disagree_about_is_refused(data: bytes) -> None:
    refused = refusal(parse_object, data)
    assert (refused.code, refused.message.isprintable()) == (ErrorCode.INVALID_JSON, True)


def test_refusal_of_several_fields_names_the_first_and_counts_the_others() -> None:
    sent = [("a.0", "is missing."), ("b", "must be a list."), ("c", "is missing.")]
    assert [refusals(sent[:count]).message for count in (1, 2, 3)] == [
        "a.0: is missing.",
        "a.0: is missing. 1 other field is not valid either.",
        "a.0: is missing. 2 other fields are not valid either.",
    ]
    assert [each["path"] for each in refusals(sent).details["errors"]] == ["a.0", "b", "c"]


def test_refusal_names_a_byte_order_mark_that_nobody_sees() -> None:
    assert "byte order mark" in refusal(parse_object, b'\xef\xbb\xbf{"a": 1}').message


@pytest.mark.parametrize("data", [b"[]", b'"x"', b"1", b"null", b"true"])
def test_json_that_is_not_an_object_is_an_invalid_request(data: bytes) -> None:
    assert refusal(parse_object, data).code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(("document", "path"), KEYS)
def test_a_key_is_found_except_below_the_skipped_fields(document: dict[str, Any], path: str | None) -> None:
    assert find_key(document, "team_id", skipping=("metadata",)) == path


def test_a_duplicate_key_is_found_in_linear_time() -> None:
    keys = ", ".join(f'"key {number}": 1' for number in range(MAX_ENTRIES - 10))
    with cpu_limit_s(1), pytest.raises(ServiceError, match="'z' occurs twice"):
        parse_object(f'{{{keys}, "z": 1, "z": 2}}'.encode())


@pytest.mark.parametrize("end", ("", "\\", "\\\n"))
def test_an_unterminated_string_is_refused_in_linear_time(end: str) -> None:
    body = ("," * (MAX_ENTRIES + 1) + '\\"' * 500_000 + end).encode()
    with cpu_limit_s(5):
        assert refusal(parse_object, body).code == ErrorCode.INVALID_JSON
