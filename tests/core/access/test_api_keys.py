"""Tests API keys: creating, parsing, capabilities, expiry and restrictions."""

import string
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_daemon.core.access import api_keys
from svc_daemon.core.access.api_keys import CAPABILITIES, PRESETS, Grant, choose_capabilities, covers, matches, parse
from tests.core.refusals import field_of, refusal

KEY_ID = "key_01k2m3n4p5q6r7s8t9v0w1x2y3"
TEXT = api_keys.mint(KEY_ID, bytes(range(32)))
CHARACTERS = st.sampled_from(string.printable + "é\x00\u0661")
KEY_IDS = st.text("0123456789abcdefghjkmnpqrstvwxyz", min_size=26, max_size=26).map("key_{}".format)
SECRETS = st.binary(min_size=32, max_size=32)


@pytest.mark.rule("auth.bearer")
def test_a_key_is_sk_and_86_lower_case_characters() -> None:
    assert (TEXT[:3], len(TEXT), TEXT) == ("sk-", 3 + 26 + 52 + 8, TEXT.lower())


@given(KEY_IDS, SECRETS)
def test_a_minted_key_is_parsed_to_its_id_and_matches_its_hash(key_id: str, secret: bytes) -> None:
    parts = parse(api_keys.mint(key_id, secret))
    assert parts is not None
    assert parts.key_id == key_id
    assert matches(api_keys.hash_secret(parts.secret), parts)
    assert (len(parts.secret_hash), parts.secret in parts.secret_hash) == (64, False)


@given(st.integers(min_value=0, max_value=len(TEXT) - 1), CHARACTERS)
def test_one_wrong_or_two_swapped_characters_are_always_detected(position: int, character: str) -> None:
    wrong = TEXT[:position] + character + TEXT[position + 1 :]
    swapped = TEXT[:position] + TEXT[position : position + 2][::-1] + TEXT[position + 2 :]
    for typed in (wrong, swapped):
        assert (parse(typed) is not None) == (typed == TEXT), typed


@given(st.text())
def test_random_text_is_never_a_key(text: str) -> None:
    assert parse(text) is parse("sk-" + text) is None


@pytest.mark.parametrize("text", ["", "sk-", TEXT[:-1], TEXT + "0", TEXT[3:], TEXT.upper(), f" {TEXT}", f"{TEXT}\n"])
def test_a_truncated_padded_or_upper_case_key_is_invalid(text: str) -> None:
    assert parse(text) is None


@pytest.mark.parametrize("size", [0, 16, 31, 33])
def test_a_secret_of_another_size_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        api_keys.mint(KEY_ID, bytes(size))


def test_presets_have_the_capabilities_of_the_contract() -> None:
    create_and_delete = {f"knowledge:{what}" for what in ("file:create", "bucket:create", "source:delete")}
    assert set(PRESETS["admin"]) == set(CAPABILITIES)
    assert set(PRESETS["ingest"]) == create_and_delete
    assert set(PRESETS["read"]) == {"knowledge:read", "knowledge:search", "agent:read", "answer:create"}
    assert len(set(CAPABILITIES)) == len(CAPABILITIES) == 12


NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SOON, LATE = "2026-02-01T00:00:00.000Z", "2026-03-01T00:00:00.000Z"


def kept(*capabilities: str, **given: tuple[str, ...] | str | None) -> Grant:
    return Grant(capabilities=capabilities or ("a", "b"), **given)  # type: ignore[arg-type]


def test_capabilities_come_from_a_preset_or_a_list_without_duplicates() -> None:
    for preset in PRESETS:
        assert choose_capabilities(preset, None) == PRESETS[preset]
    first, _, _, last, *_ = CAPABILITIES
    assert choose_capabilities(None, [last, first, last]) == (last, first)
    for wrong, named, path in [
        *((None, None, "capabilities"), ("read", ["knowledge:read"], "capabilities"), ("root", None, "preset")),
        (None, ["knowledge:everything"], "capabilities"),
    ]:
        assert field_of(refusal(choose_capabilities, wrong, named))[1] == path, (wrong, named)


def test_an_expiry_is_stored_in_utc_with_milliseconds() -> None:
    assert api_keys.choose_expiry(None, NOW) is None
    for text in ["2026-02-01T00:00:00Z", "2026-02-01T02:00:00+02:00"]:
        assert api_keys.choose_expiry(text, NOW) == SOON, text
    assert api_keys.choose_expiry("2026-01-01T12:00:00.001Z", NOW) == "2026-01-01T12:00:00.001Z"
    for text in ["", "soon", "2026-02-01", "2026-02-01T00:00:00", "2026-01-01T12:00:00Z", "9999-12-31T23:59:59-23:00"]:
        assert "expires_at" in str(refusal(api_keys.choose_expiry, text, NOW)), text


@pytest.mark.parametrize(
    ("field", "has", "asked", "gets"),
    [
        *(("buckets", None, None, None), ("buckets", None, ("x",), ("x",)), ("buckets", ("x", "y"), None, ("x", "y"))),
        *(("buckets", ("x", "y"), ("x",), ("x",)), ("models", None, ("svc-agent",), ("svc-agent",))),
        ("models", ("svc-agent:a",), None, ("svc-agent:a",)),
        ("models", ("svc-agent:a", "svc-agent"), ("svc-rag-agent:a",), ("svc-rag-agent:a",)),
        *(("expires_at", None, None, None), ("expires_at", None, SOON, SOON), ("expires_at", LATE, None, LATE)),
        *(("expires_at", LATE, SOON, SOON), ("expires_at", SOON, SOON, SOON)),
    ],
)
def test_a_new_key_inherits_the_restrictions_that_are_not_given(
    field: str,
    has: str | tuple[str, ...] | None,
    asked: str | tuple[str, ...] | None,
    gets: str | tuple[str, ...] | None,
) -> None:
    made = api_keys.narrow(kept(**{field: has}), kept(**{field: asked}))
    assert getattr(made, field) == gets


@pytest.mark.parametrize(
    ("maker", "other", "sees"),
    [
        *((kept(), kept(), True), (kept(), kept("a"), True), (kept(), kept("a", "c"), False)),
        *((kept(), kept(buckets=("x",), models=("svc-agent",)), True), (kept(buckets=("x",)), kept(), False)),
        (kept(buckets=("x", "y")), kept(buckets=("y",)), True),
        *((kept(buckets=("x",)), kept(buckets=("x", "y")), False), (kept(models=("svc-agent",)), kept(), False)),
        (kept(models=("svc-agent",)), kept(models=("svc-rag-agent",)), True),
        *((kept(models=("svc-agent",)), kept(models=("svc-agent:a",)), False), (kept(expires_at=SOON), kept(), True)),
        *((kept(*CAPABILITIES), kept(*capabilities), True) for capabilities in PRESETS.values()),
    ],
)
def test_a_key_covers_the_keys_that_it_could_create(maker: Grant, other: Grant, sees: bool) -> None:
    assert covers(maker, other) is sees
