"""Tests which JSON bodies are accepted, and when two requests with one idempotency key are the same."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_daemon.core.json_bodies import (
    MAX_DEPTH,
    MAX_ENTRIES,
    Identity,
    find_key,
    fingerprint,
    is_key,
    is_repeat,
    parse_object,
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


FILES, IMPORTS = "POST /v1/buckets/{bucket}/files", "POST /v1/buckets/{bucket}/files/import"

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)

A, B, IMPORT = (FILES, "a"), (FILES, "b"), (IMPORTS, None)
#: Whether each new request repeats each stored one.
REPEATS: list[tuple[Identity, Identity, bool]] = [
    *((A, A, True), (A, B, False), (A, IMPORT, False)),
    *((B, A, False), (B, B, True), (B, IMPORT, False)),
    *((IMPORT, A, False), (IMPORT, B, False), (IMPORT, IMPORT, True)),
    # Bodies of imports are not compared.
    (IMPORT, (IMPORTS, "old body"), True),
]


@pytest.mark.rule("rule5.same-request")
@pytest.mark.parametrize(("request_", "stored", "expected"), REPEATS)
def test_every_pair_of_a_request_and_a_stored_one_is_a_repeat_or_a_conflict(
    request_: Identity, stored: Identity, expected: bool
) -> None:
    assert is_repeat(request_, stored) is expected


@pytest.mark.rule("limit.keys")
def test_a_key_is_visible_ascii_up_to_the_limit() -> None:
    for key in ["a", "!", "~", "x" * 255, "8e03978e-40d5-43e8-bc93-6894a57f9324", "!~[]{}\"'\\"]:
        assert is_key(key, 255), key
    for key in ["", " ", "a b", "x" * 256, "\t", "a\n", "\x7f", "\x00", "é", "\u0661", "a\u200b", "\ud800"]:
        assert not is_key(key, 255), ascii(key)


@given(JSON, JSON)
def test_only_bodies_with_the_same_meaning_have_the_same_fingerprint(one: Any, other: Any) -> None:
    assert fingerprint(one) == fingerprint(_ordered(one, reverse=True))
    assert (fingerprint(one) == fingerprint(other)) == (repr(_ordered(one)) == repr(_ordered(other)))


def test_the_parts_of_a_fingerprint_are_kept_apart() -> None:
    assert fingerprint("ab", "c") != fingerprint("a", "bc") != fingerprint("abc")
    assert fingerprint(1) != fingerprint(True) != fingerprint("true") != fingerprint(1.0)
    assert fingerprint(None) != fingerprint() != fingerprint("")


def _ordered(value: Any, *, reverse: bool = False) -> Any:
    """Return the same JSON with the keys of all objects sorted."""
    if isinstance(value, dict):
        return {key: _ordered(value[key], reverse=reverse) for key in sorted(value, reverse=reverse)}
    return [_ordered(item, reverse=reverse) for item in value] if isinstance(value, list) else value
