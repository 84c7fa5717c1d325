"""Tests idempotency keys: their format, what a stored key means, and which requests differ."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_daemon.core.idempotency import Claim, ReplayVerdict, fingerprint, is_key, judge

FILES, IMPORTS = "POST /v1/buckets/{bucket}/files", "POST /v1/buckets/{bucket}/files/import"
NEW, REPLAY, CONFLICT = ReplayVerdict.NEW, ReplayVerdict.REPLAY, ReplayVerdict.CONFLICT

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)

A, B = Claim(route=FILES, fingerprint="a"), Claim(route=FILES, fingerprint="b")
IMPORT = Claim(route=IMPORTS, fingerprint=None)
#: The verdict for each stored claim (None: no row) and each new request.
VERDICTS: list[tuple[Claim | None, Claim, ReplayVerdict]] = [
    *((None, A, NEW), (None, B, NEW), (None, IMPORT, NEW)),
    *((A, A, REPLAY), (A, B, CONFLICT), (A, IMPORT, CONFLICT)),
    *((B, A, CONFLICT), (B, B, REPLAY), (B, IMPORT, CONFLICT)),
    *((IMPORT, A, CONFLICT), (IMPORT, B, CONFLICT), (IMPORT, IMPORT, REPLAY)),
]


@pytest.mark.rule("rule5.same-request")
def test_every_pair_of_stored_and_new_requests_has_its_verdict() -> None:
    for stored, new, verdict in VERDICTS:
        assert judge(stored, new) is verdict, (stored, new)


def test_only_the_key_decides_if_bodies_are_not_compared() -> None:
    assert judge(Claim(route=IMPORTS, fingerprint="old body"), Claim(route=IMPORTS, fingerprint=None)) is REPLAY


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
