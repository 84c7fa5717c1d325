"""What a key may be given: every cell of the rule that no key grants more than it has."""

from datetime import UTC, datetime

import pytest

from svc_daemon.core.api_keys import CAPABILITIES, PRESETS
from svc_daemon.core.grants import Grant, check_name, choose_capabilities, choose_expiry, covers, narrow
from svc_daemon.errors import ServiceError

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SOON, LATE = "2026-02-01T00:00:00.000Z", "2026-03-01T00:00:00.000Z"
ALL = Grant(capabilities=CAPABILITIES)


def kept(**given: tuple[str, ...] | str | None) -> Grant:
    return Grant(**{"capabilities": ("a", "b"), **given})  # type: ignore[arg-type]


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_stands_for_its_capabilities(preset: str) -> None:
    assert choose_capabilities(preset, None) == PRESETS[preset]


def test_named_capabilities_stand_once_and_in_order() -> None:
    named = [CAPABILITIES[3], CAPABILITIES[0], CAPABILITIES[3]]
    assert choose_capabilities(None, named) == (CAPABILITIES[3], CAPABILITIES[0])


@pytest.mark.parametrize(
    ("preset", "named", "path"),
    [
        (None, None, "capabilities"),
        ("read", ["knowledge:read"], "capabilities"),
        ("root", None, "preset"),
        (None, ["knowledge:everything"], "capabilities"),
    ],
)
def test_anything_else_is_refused(preset: str | None, named: list[str] | None, path: str) -> None:
    with pytest.raises(ServiceError) as refused:
        choose_capabilities(preset, named)
    assert refused.value.details["errors"][0]["path"] == path


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        (None, None),
        ("2026-02-01T00:00:00Z", SOON),
        ("2026-02-01T02:00:00+02:00", SOON),
        ("2026-01-01T12:00:00.001Z", "2026-01-01T12:00:00.001Z"),
    ],
)
def test_an_expiry_is_stored_in_one_spelling(text: str | None, stored: str | None) -> None:
    assert choose_expiry(text, NOW) == stored


@pytest.mark.parametrize(
    "text", ["", "soon", "2026-02-01", "2026-02-01T00:00:00", "2026-01-01T12:00:00Z", "9999-12-31T23:59:59-23:00"]
)
def test_an_expiry_that_is_past_or_no_moment_is_refused(text: str) -> None:
    with pytest.raises(ServiceError, match="expires_at"):
        choose_expiry(text, NOW)


@pytest.mark.parametrize("name", ["", " ", "a\nb", "\x1b[2J"])
def test_a_name_can_be_read(name: str) -> None:
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


@pytest.mark.parametrize(
    ("maker", "asked", "code"),
    [
        (kept(), Grant(capabilities=("a", "c")), "forbidden_project_key"),
        (kept(models=("svc-agent",)), kept(models=("svc-agent:a",)), "model_not_allowed"),
        (kept(models=("svc-agent:a",)), kept(models=("svc-agent",)), "model_not_allowed"),
        (kept(), kept(models=("gpt",)), "model_not_found"),
        (kept(expires_at=SOON), kept(expires_at=LATE), "invalid_request"),
    ],
)
def test_more_than_the_maker_has_is_refused(maker: Grant, asked: Grant, code: str) -> None:
    with pytest.raises(ServiceError) as refused:
        narrow(maker, asked)
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("maker", "other", "sees"),
    [
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
    ],
)
def test_a_key_covers_what_it_could_have_made(maker: Grant, other: Grant, sees: bool) -> None:
    assert covers(maker, other) is sees


def test_whoever_has_everything_covers_everybody() -> None:
    assert all(covers(ALL, Grant(capabilities=capabilities)) for capabilities in PRESETS.values())
