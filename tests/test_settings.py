"""Settings: valid and invalid values of each environment variable."""

from collections.abc import Mapping
from dataclasses import fields
from ipaddress import IPv6Address
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_daemon.settings.daemon import DEFAULT_PORT, Settings, find_misspelled
from svc_daemon.settings.limits import LARGEST, LONGEST_S, Limits, SettingError, variable
from svc_daemon.settings.servers import EmbedSettings, LlmSettings, TlsFiles

LIMITS = {limit.name: limit for limit in fields(Limits)}
#: The limits that may be zero, which turns off the limit or the feature.
MAY_BE_ZERO = {
    *("creates_per_second", "bytes_per_minute", "tags", "free_disk_bytes"),
    *("redirects", "answers_per_month", "agents", "embed_threads", "pack_bytes", "offered_vectors"),
}
NO_NUMBERS = (
    *("-1", "+1", "1.5", "1e3", "1_000", "25 MB", " 1", "0x10", "x", "\u0661", "²"),
    *(str(LARGEST * 10), "9" * 5000),
)
#: The default limits that the specification and the contract define.
DEFAULTS = """
file_bytes 26214400             creates_per_second 5            bytes_per_minute 4294967296     metadata_bytes 8192
batch_files 100                 session_idle_seconds 3600       session_seconds 86400           finalize_seconds 20
tags 20                         tag_characters 64               idempotency_key_characters 255  idempotency_days 7
page_rows 1000                  task_attempts 3                 lease_seconds 30                search_results 50
search_sources 200              search_seconds 10               answers_per_month 0             agents 100
json_bytes 1048576              extract_memory_bytes 1073741824 extract_cpu_seconds 30          extract_wall_seconds 60
header_seconds 10               body_bytes_per_second 4096      body_seconds 600                stop_seconds 10
free_disk_bytes 268435456       pack_bytes 268435456
"""


def refusal(kind: type[Limits | Settings | LlmSettings | EmbedSettings], environ: Mapping[str, str]) -> str:
    """Return the error about these variables, or an empty string if they are accepted."""
    try:
        kind.from_environ(environ)
    except SettingError as error:
        return str(error)
    return ""


def test_limits_have_the_documented_defaults() -> None:
    limits, words = Limits.from_environ({}), DEFAULTS.split()
    assert limits == Limits()
    assert {name: str(getattr(limits, name)) for name in words[::2]} == dict(zip(words[::2], words[1::2], strict=True))


@pytest.mark.parametrize(("name", "limit"), LIMITS.items())
def test_each_limit_is_set_by_one_variable_that_accepts_only_whole_numbers(name: str, limit: Any) -> None:
    default = Limits()
    limits = Limits.from_environ({variable(name): "1234"})
    changed = {each: value for each in LIMITS if (value := getattr(limits, each)) != getattr(default, each)}
    assert changed == {name: 1234}
    for text in NO_NUMBERS:
        assert variable(name) in refusal(Limits, {variable(name): text}), (name, text)
    zero = refusal(Limits, {variable(name): "0"})
    assert zero == "" if name in MAY_BE_ZERO else f"{variable(name)} " in zero and " from 1 to" in zero
    assert limit.metadata["unit"]
    assert limit.metadata.get("least", 1) <= getattr(default, name) <= LARGEST


def test_empty_variable_counts_as_unset() -> None:
    assert Limits.from_environ({variable(name): "" for name in LIMITS}) == Limits()
    empty = dict.fromkeys(("SVC_LISTEN", "SVC_LOG_LEVEL", "SVC_DATA_DIR"), "")
    assert Settings.from_environ(empty) == Settings.from_environ({})


def test_limits_of_days_and_sessions_have_a_maximum() -> None:
    limits = {"idempotency_days": 36_500, "session_idle_seconds": LONGEST_S, "session_seconds": LONGEST_S}
    for name, most in limits.items():
        assert getattr(Limits.from_environ({variable(name): str(most)}), name) == most
        assert refusal(Limits, {variable(name): str(most + 1)}), name


#: SVC_LISTEN, and the host and port that it means.
LISTENS = (
    *(("127.0.0.1:7820", "127.0.0.1", 7820), ("127.0.0.1:0", "127.0.0.1", 0), ("127.0.0.1:65535", "127.0.0.1", 65535)),
    *(("127.0.0.1:00080", "127.0.0.1", 80), ("0.0.0.0:80", "0.0.0.0", 80), ("localhost:80", "localhost", 80)),
    *(("LOCALHOST:80", "localhost", 80), ("[::1]:7820", "::1", 7820), ("[::]:80", "::", 80)),
    *(("[0:0:0:0:0:0:0:1]:80", "::1", 80), ("[2001:DB8::1]:80", "2001:db8::1", 80)),
    ("[::ffff:127.0.0.1]:80", str(IPv6Address("::ffff:7f00:1")), 80),
)
NO_LISTENS = (
    *("127.0.0.1", "7820", ":7820", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:http"),
    *("127.0.0.1:\u0661", "127.0.0.1:" + "9" * 5000, "127.0.0.1:80 ", " 127.0.0.1:80", "127.0.0.1:80\n", "127.1:80"),
    *("127.0.0.01:80", "256.0.0.1:80", "example.com:80", "http://127.0.0.1:80", "[127.0.0.1]:80", "[localhost]:80"),
    *("[]:80", "::1:7820", "fe80::1:7820", "[::1:7820", "::1]:7820", "[[::1]]:7820", "[::1]7820"),
)


def test_listen_addresses_are_parsed_and_invalid_ones_rejected() -> None:
    for listen, host, port in LISTENS:
        settings = Settings.from_environ({"SVC_LISTEN": listen})
        assert (settings.host, settings.port) == (host, port), listen
    for listen in NO_LISTENS:
        assert "SVC_LISTEN" in refusal(Settings, {"SVC_LISTEN": listen}), listen


@given(st.text())
def test_any_listen_address_is_either_parsed_or_rejected(listen: str) -> None:
    if not refusal(Settings, {"SVC_LISTEN": listen}):
        assert Settings.from_environ({"SVC_LISTEN": listen}).is_loopback in (True, False)


@pytest.mark.parametrize(
    "host", ("127.0.0.1", "127.9.9.9", "localhost", "[::1]", "0.0.0.0", "[::]", "10.0.0.1", "[2001:db8::1]")
)
def test_only_loopback_hosts_count_as_loopback(host: str) -> None:
    is_loopback = host in ("127.0.0.1", "127.9.9.9", "localhost", "[::1]")
    assert Settings.from_environ({"SVC_LISTEN": f"{host}:80"}).is_loopback is is_loopback


def test_listen_flag_overrides_the_variable() -> None:
    settings = Settings.from_environ({"SVC_LISTEN": "127.0.0.1:1"}, "[::1]:2")
    assert (settings.host, settings.port) == ("::1", 2)


def test_only_the_default_data_directory_uses_the_default_port(tmp_path: Path) -> None:
    own = {"SVC_DATA_DIR": str(tmp_path)}
    assert Settings.from_environ({}).port == DEFAULT_PORT == 7820
    assert Settings.from_environ(own).port == 0
    assert Settings.from_environ(own | {"SVC_LISTEN": "127.0.0.1:7820"}).port == 7820


def test_a_misspelled_variable_is_found_and_one_of_another_program_is_not() -> None:
    fine = {
        *("SVC_LIMIT_TAGS", "SVC_LISTEN", "SVC_BASE_URL", "SVC_API_KEY", "SVC_LLM_API_KEY_FILE", "SVC_NO_INPUT"),
        *("SVC_SERVICE_HOST", "SVC_SERVICE_PORT", "SVC_PORT_7820_TCP_ADDR", "SVC_PORT", "OTEL_SERVICE_NAME", "SVC"),
    }
    wrong = {
        "SVC_LIMIT_FIL_BYTES": "SVC_LIMIT_FILE_BYTES",
        "SVC_ALLOWED_HOST": "SVC_ALLOWED_HOSTS",
        "SVC_LLM_APIKEY": "SVC_LLM_API_KEY",
        "SVC_LIMIT_WHATEVER_ELSE": None,
    }
    assert find_misspelled(dict.fromkeys([*fine, *wrong], "1")) == wrong


def test_log_level_is_case_insensitive_and_an_unknown_one_is_rejected_with_the_list() -> None:
    for level in ("debug", "info", "warning", "error", "ERROR", "Info"):
        assert Settings.from_environ({"SVC_LOG_LEVEL": level}).log_level == level.lower()
    for level in ("warn", "critical", "10", " info", "trace"):
        assert "debug, info, warning, error" in refusal(Settings, {"SVC_LOG_LEVEL": level}), level


def test_allowed_hosts_and_origins_are_lowercase_lists_and_empty_by_default() -> None:
    several = ("a.example", "b.example:8080", "[::1]")
    for text, names in (
        *(("", ()), (" , ", ()), ("Example.COM", ("example.com",))),
        ("a.example, b.example:8080 ,[::1],", several),
    ):
        assert Settings.from_environ({"SVC_ALLOWED_HOSTS": text}).allowed_hosts == names, text
    origins = "https://App.example:8443, http://b.example"
    settings = Settings.from_environ({"SVC_ALLOWED_ORIGINS": origins})
    assert settings.allowed_origins == ("https://app.example:8443", "http://b.example")
    settings = Settings.from_environ({})
    assert (settings.allowed_hosts, settings.allowed_origins, settings.is_loopback) == ((), (), True)


def test_a_host_or_an_origin_in_a_form_that_matches_nothing_is_refused() -> None:
    for text in (
        "https://a.example",
        "a.example/",
        "::1",
        "b.example a.example",
        "a.example, b.example:port",
        "*",
        "*.a.example",
        "münchen.example",
    ):
        assert "host names such as" in refusal(Settings, {"SVC_ALLOWED_HOSTS": text}), text
    for text in ("a.example", "https://a.example/", "https://b.example https://a.example", "https://*.b.example"):
        assert "origins such as" in refusal(Settings, {"SVC_ALLOWED_ORIGINS": text}), text


KINDS = pytest.mark.parametrize("kind", [LlmSettings, EmbedSettings])
Kind = type[LlmSettings] | type[EmbedSettings]
ADDRESSES = (
    *("http://localhost/v1", "https://models.example.org:8443/a/v1/", "HTTP://[::1]:80/v1", "http://host"),
    "http://10.0.0.1:65535",
)
NO_ADDRESSES = (
    *("localhost:11434/v1", "ftp://host/v1", "http://", "http://user:hunter2@host/v1", "http://hunter2@host/v1"),
    *("http://host/v1?key=hunter2", "http://host/v1#hunter2", "http://host:65536/v1", "http://host:port/v1"),
    *("http://a host/v1", "http://host\\hunter2/v1", "http://[host]/v1"),
)


def whole(kind: Kind, **other: str) -> dict[str, str]:
    """Return the variables of a valid server, with some values replaced."""
    values = {"base_url": "http://127.0.0.1:11434/v1", "model": "small"} | other
    return {getattr(kind.VARIABLES, field): value for field, value in values.items()}


@KINDS
def test_model_server_requires_an_address_and_a_model(kind: Kind) -> None:
    assert kind.from_environ({}) is None
    assert kind.from_environ({kind.VARIABLES.model: "small", kind.VARIABLES.api_key: "x"}) is None
    assert f"{kind.VARIABLES.model} must name" in refusal(kind, {kind.VARIABLES.base_url: "http://host/v1"})


@KINDS
def test_invalid_address_or_key_of_a_model_server_is_rejected_without_repeating_secrets(kind: Kind) -> None:
    for base_url in ADDRESSES:
        server = kind.from_environ(whole(kind, base_url=base_url, api_key=" key "))
        assert server == kind(base_url=base_url.rstrip("/"), model="small", api_key="key"), base_url
    for base_url in NO_ADDRESSES:
        error = refusal(kind, whole(kind, base_url=base_url))
        assert f"{kind.VARIABLES.base_url} must be" in error, base_url
        assert "hunter2" not in error
    for key in ("hunter2\n", "hunter2\r\nX-A: b", "hünter2", "\x00hunter2"):
        error = refusal(kind, whole(kind, api_key=key))
        assert f"{kind.VARIABLES.api_key} must be" in error, key
        assert "nter2" not in error


@KINDS
def test_key_of_a_model_server_is_read_from_a_file(kind: Kind, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("from-the-file\n")
    named = whole(kind, api_key="from-the-variable", api_key_file=str(tmp_path / "key"))
    server = kind.from_environ(named)
    assert server is not None
    assert (server.api_key, "from-the-file" in repr(server)) == ("from-the-file", False)
    (tmp_path / "bad").write_text("hunter2\x00")
    for name, reason in (("gone", "can't be read"), ("bad", "must be visible ASCII")):
        error = refusal(kind, whole(kind, api_key_file=str(tmp_path / name)))
        assert reason in error
        assert "hunter2" not in error


def test_tls_certificate_and_key_must_both_be_absolute_paths() -> None:
    both = {"SVC_TLS_CERT": "/etc/svc/cert.pem", "SVC_TLS_KEY": "/etc/svc/key.pem"}
    tls = Settings.from_environ(both).tls
    assert tls == TlsFiles(certificate=Path("/etc/svc/cert.pem"), key=Path("/etc/svc/key.pem"))
    assert Settings.from_environ(dict.fromkeys(both, "")).tls is None
    for name in both:
        assert "go together" in refusal(Settings, {**both, name: ""})
        assert f"{name} must be an absolute path" in refusal(Settings, {**both, name: "key.pem"})
