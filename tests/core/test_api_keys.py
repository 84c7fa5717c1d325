"""API keys: what is minted can be read back, and nothing else can."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_daemon.core import api_keys
from svc_daemon.core.api_keys import hash_secret, matches, mint, parse

KEY_ID = "key_01k2m3n4p5q6r7s8t9v0w1x2y3"
SECRET = bytes(range(32))
TEXT = mint(KEY_ID, SECRET)
CHARACTERS = st.sampled_from(string.printable + "é\x00\u0661")
KEY_IDS = st.text("0123456789abcdefghjkmnpqrstvwxyz", min_size=26, max_size=26).map("key_{}".format)


def test_a_key_reads_sk_and_86_lower_case_characters() -> None:
    assert TEXT.startswith("sk-")
    assert len(TEXT) == 3 + 26 + 52 + 8
    assert TEXT.lower() == TEXT


@given(KEY_IDS, st.binary(min_size=32, max_size=32))
def test_a_minted_key_reads_back_to_its_id_and_matches_its_own_hash(key_id: str, secret: bytes) -> None:
    parts = parse(mint(key_id, secret))
    assert parts is not None
    assert parts.key_id == key_id
    assert matches(hash_secret(parts.secret), parts)


@given(st.binary(min_size=32, max_size=32), st.binary(min_size=32, max_size=32))
def test_two_secrets_match_only_when_they_are_the_same(one: bytes, other: bytes) -> None:
    first, second = parse(mint(KEY_ID, one)), parse(mint(KEY_ID, other))
    assert first is not None
    assert second is not None
    assert matches(first.secret_hash, second) == (one == other)


@given(st.integers(min_value=0, max_value=len(TEXT) - 1), CHARACTERS)
def test_one_wrong_character_is_always_seen(position: int, character: str) -> None:
    typed = TEXT[:position] + character + TEXT[position + 1 :]
    assert (parse(typed) is not None) == (typed == TEXT)


@given(st.integers(min_value=3, max_value=len(TEXT) - 2))
def test_two_swapped_characters_are_always_seen(position: int) -> None:
    typed = TEXT[:position] + TEXT[position + 1] + TEXT[position] + TEXT[position + 2 :]
    assert (parse(typed) is not None) == (typed == TEXT)


@given(st.text())
def test_no_text_whatever_makes_parse_fail(text: str) -> None:
    assert parse(text) is None
    assert parse("sk-" + text) is None


@pytest.mark.parametrize("text", ["", "sk-", TEXT[:-1], TEXT + "0", TEXT[3:], TEXT.upper(), f" {TEXT}", f"{TEXT}\n"])
def test_what_is_cut_padded_or_in_capitals_is_no_key(text: str) -> None:
    assert parse(text) is None


@pytest.mark.parametrize("size", [0, 16, 31, 33])
def test_a_secret_of_another_size_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        mint(KEY_ID, bytes(size))


def test_the_hash_does_not_hold_the_secret() -> None:
    parts = parse(TEXT)
    assert parts is not None
    assert len(parts.secret_hash) == 64
    assert parts.secret not in parts.secret_hash


def test_presets_hold_what_the_contract_says() -> None:
    assert set(api_keys.PRESETS["admin"]) == set(api_keys.CAPABILITIES)
    assert set(api_keys.PRESETS["ingest"]) == {
        "knowledge:file:create",
        "knowledge:bucket:create",
        "knowledge:source:delete",
    }
    assert set(api_keys.PRESETS["read"]) == {"knowledge:read", "knowledge:search", "agent:read", "answer:create"}
    assert len(set(api_keys.CAPABILITIES)) == len(api_keys.CAPABILITIES) == 12
