"""Idempotency: what a key may look like, what a stored key means, and what tells two requests apart."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_daemon.core.uploads.idempotency import Claim, ReplayVerdict, fingerprint, is_key, judge

FILES, IMPORTS = "POST /v1/buckets/{bucket}/files", "POST /v1/buckets/{bucket}/files/import"
NEW, REPLAY, CONFLICT = ReplayVerdict.NEW, ReplayVerdict.REPLAY, ReplayVerdict.CONFLICT

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)

#: Each stored claim (None: no row) with each new one: the whole table.
STORED: dict[str, Claim | None] = {
    "nothing": None,
    "file a": Claim(route=FILES, fingerprint="a"),
    "file b": Claim(route=FILES, fingerprint="b"),
    "import": Claim(route=IMPORTS, fingerprint=None),
}
VERDICTS: dict[tuple[str, str], ReplayVerdict] = {
    ("nothing", "file a"): NEW,
    ("nothing", "file b"): NEW,
    ("nothing", "import"): NEW,
    ("file a", "file a"): REPLAY,
    ("file a", "file b"): CONFLICT,
    ("file a", "import"): CONFLICT,
    ("file b", "file a"): CONFLICT,
    ("file b", "file b"): REPLAY,
    ("file b", "import"): CONFLICT,
    ("import", "file a"): CONFLICT,
    ("import", "file b"): CONFLICT,
    ("import", "import"): REPLAY,
}


@pytest.mark.parametrize(("stored", "new"), VERDICTS)
def test_every_pair_of_claims_has_its_verdict(stored: str, new: str) -> None:
    claim = STORED[new]
    assert claim is not None
    assert judge(STORED[stored], claim) is VERDICTS[stored, new]


def test_the_key_alone_decides_where_bodies_are_not_compared() -> None:
    assert judge(Claim(route=IMPORTS, fingerprint="old body"), Claim(route=IMPORTS, fingerprint=None)) is REPLAY


def test_visible_ascii_up_to_the_limit_is_a_key() -> None:
    for key in ["a", "!", "~", "x" * 255, "8e03978e-40d5-43e8-bc93-6894a57f9324", "!~[]{}\"'\\"]:
        assert is_key(key, 255)


def test_anything_else_is_not() -> None:
    for key in ["", " ", "a b", "x" * 256, "\t", "a\n", "\x7f", "\x00", "é", "\u0661", "a\u200b", "\ud800"]:
        assert not is_key(key, 255)


@given(JSON)
def test_the_same_meaning_has_the_same_fingerprint(value: Any) -> None:
    assert fingerprint(value) == fingerprint(_reversed(value))


@given(JSON, JSON)
def test_another_meaning_has_another_fingerprint(one: Any, other: Any) -> None:
    assert (fingerprint(one) == fingerprint(other)) == (repr(_sorted(one)) == repr(_sorted(other)))


def test_parts_do_not_run_into_each_other() -> None:
    assert fingerprint("ab", "c") != fingerprint("a", "bc") != fingerprint("abc")
    assert fingerprint(1) != fingerprint(True) != fingerprint("true") != fingerprint(1.0)
    assert fingerprint(None) != fingerprint() != fingerprint("")


def _reversed(value: Any) -> Any:
    """The same JSON with the keys of every object in the other order."""
    if isinstance(value, dict):
        return {key: _reversed(value[key]) for key in reversed(list(value))}
    return [_reversed(item) for item in value] if isinstance(value, list) else value


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value
