"""Settings: each variable with good and bad values, and every spelling of the address."""

from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_daemon.settings import (
    DEFAULT_PORT,
    LARGEST,
    LONGEST_S,
    EmbedSettings,
    Limits,
    LlmSettings,
    SettingError,
    Settings,
    variable,
)

LIMITS = {limit.name: limit for limit in fields(Limits)}
#: The limits that can be turned off, or taken away whole.
MAY_BE_ZERO = {
    "creates_per_second",
    "bytes_per_minute",
    "tags",
    "free_disk_bytes",
    "redirects",
    "answers_per_month",
    "agents",
    "embed_threads",
}
NO_NUMBERS = ["-1", "+1", "1.5", "1e3", "1_000", "25 MB", " 1", "0x10", "x", "\u0661", "²"]
NO_NUMBERS += [str(LARGEST * 10), "9" * 5000]
#: What the specification and the contract say.
DEFAULTS = {
    "file_bytes": 26_214_400,
    "creates_per_second": 5,
    "bytes_per_minute": 4 * 1024**3,
    "metadata_bytes": 8192,
    "batch_files": 100,
    "session_idle_seconds": 3600,
    "session_seconds": 86_400,
    "finalize_seconds": 20,
    "tags": 20,
    "tag_characters": 64,
    "idempotency_key_characters": 255,
    "idempotency_days": 7,
    "page_rows": 1000,
    "task_attempts": 3,
    "lease_seconds": 30,
    "search_results": 50,
    "search_sources": 200,
    "search_seconds": 10,
    "answers_per_month": 0,
    "agents": 100,
    "json_bytes": 1024**2,
    "extract_memory_bytes": 1024**3,
    "extract_cpu_seconds": 30,
    "extract_wall_seconds": 60,
    "header_seconds": 10,
    "body_bytes_per_second": 4096,
    "body_seconds": 600,
    "stop_seconds": 10,
    "free_disk_bytes": 256 * 1024**2,
}


def test_nothing_set_is_the_documented_default() -> None:
    limits = Limits.from_environ({})
    assert limits == Limits()
    assert {name: getattr(limits, name) for name in DEFAULTS} == DEFAULTS


@pytest.mark.parametrize("name", LIMITS)
def test_each_limit_is_one_variable_and_changes_nothing_else(name: str) -> None:
    limits = Limits.from_environ({variable(name): "1234"})
    changed = {limit: getattr(limits, limit) for limit in LIMITS if getattr(limits, limit) != getattr(Limits(), limit)}
    assert changed == {name: 1234}


@pytest.mark.parametrize("name", LIMITS)
def test_zero_is_taken_only_where_off_makes_sense(name: str) -> None:
    if name in MAY_BE_ZERO:
        assert getattr(Limits.from_environ({variable(name): "0"}), name) == 0
    else:
        with pytest.raises(SettingError, match=f"{variable(name)} .* from 1 to"):
            Limits.from_environ({variable(name): "0"})


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize(
    "text",
    ["-1", "+1", "1.5", "1e3", "1_000", "25 MB", " 1", "0x10", "x", "\u0661", "²", str(LARGEST * 10), "9" * 5000],
)
def test_anything_but_a_whole_number_in_range_is_refused_and_named(name: str, text: str) -> None:
    with pytest.raises(SettingError, match=variable(name)):
        Limits.from_environ({variable(name): text})


def test_an_empty_variable_is_as_good_as_none() -> None:
    assert Limits.from_environ({variable(name): "" for name in LIMITS}) == Limits()
    assert Settings.from_environ({"SVC_LISTEN": "", "SVC_LOG_LEVEL": "", "SVC_DATA_DIR": ""}) == Settings.from_environ(
        {}
    )


def test_days_stay_within_what_a_calendar_takes() -> None:
    assert Limits.from_environ({"SVC_LIMIT_IDEMPOTENCY_DAYS": "36500"}).idempotency_days == 36_500
    with pytest.raises(SettingError):
        Limits.from_environ({"SVC_LIMIT_IDEMPOTENCY_DAYS": "36501"})


@pytest.mark.parametrize("name", ["session_idle_seconds", "session_seconds"])
def test_a_session_ends_within_what_a_calendar_takes(name: str) -> None:
    assert getattr(Limits.from_environ({variable(name): str(LONGEST_S)}), name) == LONGEST_S
    with pytest.raises(SettingError):
        Limits.from_environ({variable(name): str(LONGEST_S + 1)})


def test_every_limit_has_a_unit_and_a_default_within_its_range() -> None:
    for name, limit in LIMITS.items():
        assert limit.metadata["unit"]
        assert limit.metadata.get("least", 1) <= getattr(Limits(), name) <= LARGEST


LISTENS: dict[str, tuple[str, int] | None] = {
    "127.0.0.1:7820": ("127.0.0.1", 7820),
    "127.0.0.1:0": ("127.0.0.1", 0),
    "127.0.0.1:65535": ("127.0.0.1", 65535),
    "127.0.0.1:00080": ("127.0.0.1", 80),
    "0.0.0.0:80": ("0.0.0.0", 80),
    "localhost:80": ("localhost", 80),
    "LOCALHOST:80": ("localhost", 80),
    "[::1]:7820": ("::1", 7820),
    "[::]:80": ("::", 80),
    "[0:0:0:0:0:0:0:1]:80": ("::1", 80),
    "[2001:DB8::1]:80": ("2001:db8::1", 80),
    "[::ffff:127.0.0.1]:80": ("::ffff:7f00:1", 80),
    "127.0.0.1": None,
    "7820": None,
    ":7820": None,
    "127.0.0.1:": None,
    "127.0.0.1:65536": None,
    "127.0.0.1:-1": None,
    "127.0.0.1:http": None,
    "127.0.0.1:\u0661": None,
    "127.0.0.1:" + "9" * 5000: None,
    "127.0.0.1:80 ": None,
    " 127.0.0.1:80": None,
    "127.0.0.1:80\n": None,
    "127.1:80": None,
    "127.0.0.01:80": None,
    "256.0.0.1:80": None,
    "example.com:80": None,
    "http://127.0.0.1:80": None,
    "[127.0.0.1]:80": None,
    "[localhost]:80": None,
    "[]:80": None,
    "::1:7820": None,
    "fe80::1:7820": None,
    "[::1:7820": None,
    "::1]:7820": None,
    "[[::1]]:7820": None,
    "[::1]7820": None,
}


@pytest.mark.parametrize("listen", LISTENS)
def test_each_spelling_of_the_address_is_taken_or_refused_by_name(listen: str) -> None:
    expected = LISTENS[listen]
    if expected is None:
        with pytest.raises(SettingError, match="SVC_LISTEN"):
            Settings.from_environ({"SVC_LISTEN": listen})
    else:
        settings = Settings.from_environ({"SVC_LISTEN": listen})
        assert (settings.host, settings.port) == expected


@given(st.text())
def test_no_spelling_of_the_address_fails_in_another_way(listen: str) -> None:
    try:
        settings = Settings.from_environ({"SVC_LISTEN": listen})
    except SettingError:
        return
    assert settings.is_loopback in (True, False)


def test_the_flag_wins_over_the_variable() -> None:
    settings = Settings.from_environ({"SVC_LISTEN": "127.0.0.1:1"}, "[::1]:2")
    assert (settings.host, settings.port) == ("::1", 2)


def test_only_the_default_installation_owns_the_well_known_port(tmp_path: Path) -> None:
    assert Settings.from_environ({}).port == DEFAULT_PORT == 7820
    assert Settings.from_environ({"SVC_DATA_DIR": str(tmp_path)}).port == 0
    both = {"SVC_DATA_DIR": str(tmp_path), "SVC_LISTEN": "127.0.0.1:7820"}
    assert Settings.from_environ(both).port == 7820


@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("localhost", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("2001:db8::1", False),
    ],
)
def test_loopback_is_told_from_what_others_can_reach(host: str, is_loopback: bool) -> None:
    bracketed = f"[{host}]" if ":" in host else host
    assert Settings.from_environ({"SVC_LISTEN": f"{bracketed}:80"}).is_loopback is is_loopback


@pytest.mark.parametrize("level", ["debug", "info", "warning", "error", "ERROR", "Info"])
def test_a_level_is_taken_in_any_case(level: str) -> None:
    assert Settings.from_environ({"SVC_LOG_LEVEL": level}).log_level == level.lower()


@pytest.mark.parametrize("level", ["warn", "critical", "10", " info", "trace"])
def test_another_level_is_refused_with_the_ones_there_are(level: str) -> None:
    with pytest.raises(SettingError, match="debug, info, warning, error"):
        Settings.from_environ({"SVC_LOG_LEVEL": level})


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ()),
        (" , ", ()),
        ("Example.COM", ("example.com",)),
        ("a.example, b.example:8080 ,", ("a.example", "b.example:8080")),
    ],
)
def test_hosts_and_origins_are_lists_in_lower_case(text: str, names: tuple[str, ...]) -> None:
    settings = Settings.from_environ({"SVC_ALLOWED_HOSTS": text, "SVC_ALLOWED_ORIGINS": text})
    assert settings.allowed_hosts == settings.allowed_origins == names


def test_by_default_no_web_page_may_drive_the_daemon() -> None:
    settings = Settings.from_environ({})
    assert (settings.allowed_hosts, settings.allowed_origins, settings.is_loopback) == ((), (), True)


KINDS = pytest.mark.parametrize("kind", [LlmSettings, EmbedSettings])
Kind = type[LlmSettings] | type[EmbedSettings]


def whole(kind: Kind, **other: str) -> dict[str, str]:
    """The variables that name a server, some of them with other values."""
    values = {"base_url": "http://127.0.0.1:11434/v1", "model": "small"} | other
    return {getattr(kind.VARIABLES, field): value for field, value in values.items()}


@KINDS
def test_no_models_server_is_used_unless_one_is_named(kind: Kind) -> None:
    assert kind.from_environ({}) is None
    assert kind.from_environ({kind.VARIABLES.model: "small", kind.VARIABLES.api_key: "x"}) is None


@KINDS
@pytest.mark.parametrize(
    "base_url",
    [
        "http://localhost/v1",
        "https://models.example.org:8443/a/v1/",
        "HTTP://[::1]:80/v1",
        "http://host",
        "http://10.0.0.1:65535",
    ],
)
def test_a_models_server_has_a_plain_address(kind: Kind, base_url: str) -> None:
    server = kind.from_environ(whole(kind, base_url=base_url, api_key=" key "))
    assert server == kind(base_url=base_url.rstrip("/"), model="small", api_key="key")


@KINDS
@pytest.mark.parametrize(
    "base_url",
    [
        "localhost:11434/v1",
        "ftp://host/v1",
        "http://",
        "http://user:hunter2@host/v1",
        "http://hunter2@host/v1",
        "http://host/v1?key=hunter2",
        "http://host/v1#hunter2",
        "http://host:65536/v1",
        "http://host:port/v1",
        "http://a host/v1",
        "http://host\\hunter2/v1",
        "http://[host]/v1",
    ],
)
def test_another_address_of_a_models_server_is_refused_and_not_repeated(kind: Kind, base_url: str) -> None:
    with pytest.raises(SettingError, match=f"{kind.VARIABLES.base_url} must be") as refused:
        kind.from_environ(whole(kind, base_url=base_url))
    assert "hunter2" not in str(refused.value)


@KINDS
def test_a_models_server_without_a_model_is_refused(kind: Kind) -> None:
    with pytest.raises(SettingError, match=f"{kind.VARIABLES.model} must name"):
        kind.from_environ({kind.VARIABLES.base_url: "http://host/v1"})


@KINDS
@pytest.mark.parametrize("key", ["hunter2\n", "hunter2\r\nX-A: b", "hünter2", "\x00hunter2"])
def test_a_models_key_that_fits_no_header_is_refused_and_not_repeated(kind: Kind, key: str) -> None:
    with pytest.raises(SettingError, match=f"{kind.VARIABLES.api_key} must be") as refused:
        kind.from_environ(whole(kind, api_key=key))
    assert "nter2" not in str(refused.value)


@KINDS
def test_a_models_key_may_stand_in_a_file(kind: Kind, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("from-the-file\n")
    named = whole(kind, api_key="from-the-variable", api_key_file=str(tmp_path / "key"))
    server = kind.from_environ(named)
    assert server is not None
    assert (server.api_key, "from-the-file" in repr(server)) == ("from-the-file", False)
    for name, said in (("gone", "can't be read"), ("bad", "must be visible ASCII")):
        (tmp_path / "bad").write_text("hunter2\x00")
        with pytest.raises(SettingError, match=said) as refused:
            kind.from_environ(whole(kind, api_key_file=str(tmp_path / name)))
        assert "hunter2" not in str(refused.value)
