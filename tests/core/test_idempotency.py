"""Tests what an idempotency key is, and when two requests with one key are the same."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_daemon.core.idempotency import Identity, fingerprint, is_key, is_repeat

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
@pytest.mark.parametrize("key", ["a", "!", "~", "x" * 255, "8e03978e-40d5-43e8-bc93-6894a57f9324", "!~[]{}\"'\\"])
def test_a_key_is_visible_ascii_up_to_the_limit(key: str) -> None:
    assert is_key(key, 255)


@pytest.mark.rule("limit.keys")
@pytest.mark.parametrize(
    "text", ["", " ", "a b", "x" * 256, "\t", "a\n", "\x7f", "\x00", "é", "\u0661", "a\u200b", "\ud800"], ids=ascii
)
def test_other_text_is_no_key(text: str) -> None:
    assert not is_key(text, 255)


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
