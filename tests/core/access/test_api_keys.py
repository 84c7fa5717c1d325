"""API keys: what is minted can be read back, and nothing else can."""

import string
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_daemon.core.access import api_keys
from svc_daemon.core.access.api_keys import (
    CAPABILITIES,
    PRESETS,
    Grant,
    check_name,
    choose_capabilities,
    choose_expiry,
    covers,
    hash_secret,
    matches,
    mint,
    narrow,
    parse,
)
from svc_daemon.errors import ServiceError

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


def test_what_is_cut_padded_or_in_capitals_is_no_key() -> None:
    for text in ["", "sk-", TEXT[:-1], TEXT + "0", TEXT[3:], TEXT.upper(), f" {TEXT}", f"{TEXT}\n"]:
        assert parse(text) is None


def test_a_secret_of_another_size_is_refused() -> None:
    for size in [0, 16, 31, 33]:
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


NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SOON, LATE = "2026-02-01T00:00:00.000Z", "2026-03-01T00:00:00.000Z"
ALL = Grant(capabilities=CAPABILITIES)


def kept(**given: tuple[str, ...] | str | None) -> Grant:
    return Grant(**{"capabilities": ("a", "b"), **given})  # type: ignore[arg-type]


def test_a_preset_stands_for_its_capabilities() -> None:
    for preset in PRESETS:
        assert choose_capabilities(preset, None) == PRESETS[preset]


def test_named_capabilities_stand_once_and_in_order() -> None:
    named = [CAPABILITIES[3], CAPABILITIES[0], CAPABILITIES[3]]
    assert choose_capabilities(None, named) == (CAPABILITIES[3], CAPABILITIES[0])


def test_anything_else_is_refused() -> None:
    for preset, named, path in [
        (None, None, "capabilities"),
        ("read", ["knowledge:read"], "capabilities"),
        ("root", None, "preset"),
        (None, ["knowledge:everything"], "capabilities"),
    ]:
        with pytest.raises(ServiceError) as refused:
            choose_capabilities(preset, named)
        assert refused.value.details["errors"][0]["path"] == path


def test_an_expiry_is_stored_in_one_spelling() -> None:
    for text, stored in [
        (None, None),
        ("2026-02-01T00:00:00Z", SOON),
        ("2026-02-01T02:00:00+02:00", SOON),
        ("2026-01-01T12:00:00.001Z", "2026-01-01T12:00:00.001Z"),
    ]:
        assert choose_expiry(text, NOW) == stored


def test_an_expiry_that_is_past_or_no_moment_is_refused() -> None:
    for text in ["", "soon", "2026-02-01", "2026-02-01T00:00:00", "2026-01-01T12:00:00Z", "9999-12-31T23:59:59-23:00"]:
        with pytest.raises(ServiceError, match="expires_at"):
            choose_expiry(text, NOW)


def test_a_name_can_be_read() -> None:
    for name in ["", " ", "a\nb", "\x1b[2J"]:
        check_name("Zoë's laptop")
        with pytest.raises(ServiceError, match="name"):
            check_name(name)


#: Of one field: what the maker has, what is asked for, what comes of it.
GIVEN = [
    ("buckets", None, None, None),
    ("buckets", None, ("x",), ("x",)),
    ("buckets", ("x", "y"), None, ("x", "y")),
    ("buckets", ("x", "y"), ("x",), ("x",)),
    ("models", None, ("svc-agent",), ("svc-agent",)),
    ("models", ("svc-agent:a",), None, ("svc-agent:a",)),
    ("models", ("svc-agent:a", "svc-agent"), ("svc-rag-agent:a",), ("svc-rag-agent:a",)),
    ("expires_at", None, None, None),
    ("expires_at", None, SOON, SOON),
    ("expires_at", LATE, None, LATE),
    ("expires_at", LATE, SOON, SOON),
    ("expires_at", SOON, SOON, SOON),
]


@pytest.mark.parametrize(("field", "has", "asked", "gets"), GIVEN)
def test_what_is_not_asked_for_is_the_makers(field: str, has: object, asked: object, gets: object) -> None:
    made = narrow(kept(**{field: has}), kept(**{field: asked}))  # type: ignore[arg-type]
    assert getattr(made, field) == gets


def test_more_than_the_maker_has_is_refused() -> None:
    for maker, asked, code in [
        (kept(), Grant(capabilities=("a", "c")), "forbidden_project_key"),
        (kept(models=("svc-agent",)), kept(models=("svc-agent:a",)), "model_not_allowed"),
        (kept(models=("svc-agent:a",)), kept(models=("svc-agent",)), "model_not_allowed"),
        (kept(), kept(models=("gpt",)), "model_not_found"),
        (kept(expires_at=SOON), kept(expires_at=LATE), "invalid_request"),
    ]:
        with pytest.raises(ServiceError) as refused:
            narrow(maker, asked)
        assert refused.value.code == code


def test_a_key_covers_what_it_could_have_made() -> None:
    for maker, other, sees in [
        (kept(), kept(), True),
        (kept(), Grant(capabilities=("a",)), True),
        (kept(), Grant(capabilities=("a", "c")), False),
        (kept(), kept(buckets=("x",), models=("svc-agent",)), True),
        (kept(buckets=("x",)), kept(), False),
        (kept(buckets=("x", "y")), kept(buckets=("y",)), True),
        (kept(buckets=("x",)), kept(buckets=("x", "y")), False),
        (kept(models=("svc-agent",)), kept(), False),
        (kept(models=("svc-agent",)), kept(models=("svc-rag-agent",)), True),
        (kept(models=("svc-agent",)), kept(models=("svc-agent:a",)), False),
        (kept(expires_at=SOON), kept(), True),
    ]:
        assert covers(maker, other) is sees


def test_whoever_has_everything_covers_everybody() -> None:
    assert all(covers(ALL, Grant(capabilities=capabilities)) for capabilities in PRESETS.values())
