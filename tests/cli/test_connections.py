"""Which services receive an API key, and the errors when a wrong service answers."""

import json
import os
from functools import partialmethod
from pathlib import Path
from typing import Any

import pytest

from svc_cli.client import RetryPolicy
from svc_cli.errors import find_hint
from svc_daemon.paths import DataFiles
from tests.cli.odd_servers import IMPOSTORS, NO_BUCKETS, SECRET, OddServer, Raw, announce
from tests.cli.terminals import RunSvc

UNREACHABLE = (12, "svc_daemon_unreachable")


def test_the_daemon_of_this_installation_gets_the_admin_key_on_the_connection_on_which_it_proved_itself(
    svc: RunSvc, odd: OddServer, files: DataFiles
) -> None:
    odd.prove_health(SECRET, "ins_1")
    for at in ((), ("--base-url", odd.url)):
        odd.requests.clear()
        assert svc("bucket", "ls", *at).exit == 0
        assert [path.partition("?")[0] for _, path, _ in odd.requests] == ["/healthz", "/v1/buckets"]
        assert odd.keys_seen() == {"Bearer sk-admin"}


def test_a_service_that_closes_the_connection_after_its_proof_has_to_prove_itself_on_the_next(
    svc: RunSvc, odd: OddServer, files: DataFiles
) -> None:
    odd.prove_health(SECRET, "ins_1")
    prove, asked = odd.answers["GET /healthz"], 0

    def prove_once(query: str) -> tuple[int, Any, dict[str, str]]:
        nonlocal asked
        asked += 1
        status, facts, _ = prove(query)
        return status, facts if asked == 1 else {**facts, "proof": "other"}, {"Connection": "close"}

    odd.answers["GET /healthz"] = prove_once
    assert svc("bucket", "ls", "--json").failure == (12, "svc_daemon_unproven")
    assert (asked, odd.keys_seen()) == (2, set())


@pytest.mark.parametrize("key", ["", "sk-mine"])
@pytest.mark.parametrize("kind", IMPOSTORS)
def test_another_server_at_the_address_of_the_daemon_gets_no_key(
    svc: RunSvc, odd: OddServer, files: DataFiles, monkeypatch: pytest.MonkeyPatch, kind: str, key: str
) -> None:
    monkeypatch.setenv("SVC_API_KEY", key)
    IMPOSTORS[kind](odd)
    assert svc("bucket", "ls", "--json").failure == UNREACHABLE
    if "proof" in kind:
        assert svc("bucket", "ls", "--base-url", odd.url, "--json").failure == (12, "svc_daemon_unproven")
    assert odd.keys_seen() == set()


def test_server_that_relays_the_proof_of_a_daemon_on_another_port_gets_no_key(
    svc: RunSvc, odd: OddServer, files: DataFiles
) -> None:
    odd.prove_health(SECRET, "ins_1")
    odd.port += 1
    assert svc("bucket", "ls", "--json").failure == UNREACHABLE
    assert odd.keys_seen() == set()


def test_without_a_valid_secret_no_daemon_is_trusted_and_the_hint_is_to_kill_it(
    svc: RunSvc, odd: OddServer, files: DataFiles
) -> None:
    odd.answer_health("ins_1")
    announce(files, odd, os.getpid())
    files.secret.unlink()
    for secret in (None, "", "00ff", "not hex"):
        if secret is not None:
            files.secret.write_text(secret)
        error = svc("bucket", "ls", "--json").json["error"]
        assert error["code"] == "svc_daemon_unproven", secret
        assert f"kill {os.getpid()}" in error["hint"], secret
    assert odd.keys_seen() == set()


@pytest.mark.parametrize("text", (None, "", "two words"))
def test_lost_admin_key_is_reported_with_the_command_that_creates_a_new_one(
    text: str | None, svc: RunSvc, odd: OddServer, files: DataFiles
) -> None:
    odd.prove_health(SECRET, "ins_1")
    files.admin_key.unlink()
    if text is not None:
        files.admin_key.write_text(text)
    finished = svc("bucket", "ls", "--json")
    assert finished.failure == (4, "svc_no_api_key")
    assert "svc-daemon key create --team default --preset admin --save" in finished.json["error"]["hint"]
    (key,) = [check for check in svc("doctor", "--json").json["checks"] if check["check"] == "service"]
    assert key["state"] == "failed"
    assert "--save" in key["hint"]


@pytest.mark.parametrize(
    ("details", "hint"),
    [
        ({"errors": [{"path": "refresh.every_seconds", "problem": "too small"}]}, "--every sets it"),
        ({"errors": [{"path": "title"}]}, None),
        *((odd, None) for odd in ({}, {"errors": "x"}, {"errors": ["x"]}, {"errors": [{"path": 1}]}, ["x"], "x", None)),
    ],
)
def test_hint_about_a_refused_field_names_its_option_whatever_the_details_are(details: Any, hint: str | None) -> None:
    given = find_hint({"code": "invalid_request", "details": details})
    assert (given or "").startswith(hint or "") and (given is None) == (hint is None)


@pytest.mark.parametrize(
    "answer",
    [
        (404, b"not here", {}),
        Raw(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 10, 0.05),
        Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n{", b" ", 0.2),
    ],
    ids=["other", "endless head", "endless body"],
)
def test_port_taken_by_another_program_is_reported_with_a_fix(
    svc: RunSvc, odd: OddServer, files: DataFiles, monkeypatch: pytest.MonkeyPatch, answer: Any
) -> None:
    files.daemon.unlink()
    odd.answers["GET /healthz"] = answer
    monkeypatch.setenv("SVC_LISTEN", f"127.0.0.1:{odd.port}")
    monkeypatch.delenv("SVC_NO_AUTOSTART")
    finished = svc("bucket", "ls", "--json")
    assert finished.failure == (12, "svc_port_taken")
    assert odd.keys_seen() == set()
    assert f"127.0.0.1:{odd.port}" in finished.json["error"]["message"]
    assert f"SVC_LISTEN=127.0.0.1:{odd.port + 1}" in finished.json["error"]["hint"]


def test_foreign_program_or_incompatible_service_gets_no_key(at_odd: RunSvc, odd: OddServer) -> None:
    for body in (b"hello", {"error": "Not Found"}, {"error": ["none"]}, {"error": {"code": 1}}):
        odd.answers["GET /healthz"] = (200, body, {})
        assert at_odd("bucket", "ls").failure == (12, "svc_port_taken"), body
    for api in ("2-3", "0-0", "", "new"):
        odd.answer_health(api=api, version="9.0.0")
        assert at_odd("bucket", "ls").failure == (13, "svc_api_incompatible"), api
    assert odd.keys_seen() == set()


def test_service_that_refuses_the_host_name_is_reported_with_the_setting(at_odd: RunSvc, odd: OddServer) -> None:
    refused = {"error": {"code": "host_not_allowed", "message": "no", "retryable": False, "details": {}}}
    odd.answers["GET /healthz"] = (421, json.dumps(refused).encode(), {})
    ended = at_odd("bucket", "ls", "--json")
    assert ended.failure == (12, "host_not_allowed")
    assert "SVC_ALLOWED_HOSTS" in ended.json["error"]["hint"]


def test_base_url_that_ends_in_v1_gets_a_hint_to_leave_it_out(svc: RunSvc, odd: OddServer) -> None:
    error = svc("bucket", "ls", "--base-url", f"{odd.url}/v1/", "--json").json["error"]
    assert error["hint"] == "leave out the /v1 at the end of the address: svc adds it."


def test_service_with_an_overlapping_api_version_works_with_one_notice(
    svc: RunSvc, at_odd: RunSvc, odd: OddServer
) -> None:
    odd.answer_health(api="1-7", version="9.0.0")
    odd.answers["GET /v1/buckets"] = NO_BUCKETS
    finished = svc("bucket", "ls", "--base-url", odd.url)
    assert finished.exit == 0
    assert finished.stderr.count("9.0.0") == 1
    assert "restart" not in finished.stderr


@pytest.mark.rule("upgrade.note")
def test_running_daemon_of_an_older_release_is_noted_once_with_the_restart_command(
    svc: RunSvc, odd: OddServer, files: DataFiles
) -> None:
    odd.prove_health(SECRET, "ins_1")
    prove = odd.answers["GET /healthz"]

    def older(query: str) -> tuple[int, Any, dict[str, str]]:
        status, facts, headers = prove(query)
        return status, {**facts, "version": "0.0.9"}, headers

    odd.answers["GET /healthz"] = older
    for words, is_noted in ((("ls",), True), (("ls", "--quiet"), False), (("ls", "--json"), False)):
        finished = svc("bucket", *words)
        assert finished.exit == 0, words
        assert finished.stderr.count("0.0.9") == int(is_noted), words
        assert ("`svc daemon restart`" in finished.stderr) == is_noted, words


def test_login_stores_only_a_key_that_the_service_accepts_and_logout_removes_it(svc: RunSvc, odd: OddServer) -> None:
    odd.answer_health()
    refusal = {"error": {"code": "invalid_project_key", "message": "No.", "retryable": False, "details": {}}}
    odd.answers["GET /v1/buckets"] = (401, refusal, {})
    login, at = ("auth", "login", "--key-file", "-"), ("--base-url", odd.url)
    assert svc(*login, *at, stdin=b"sk-bad\n").exit == 4
    odd.answers["GET /v1/buckets"] = NO_BUCKETS
    assert svc("bucket", "ls", *at).exit == 4
    assert svc(*login, *at, stdin=b"sk-good\n").exit == 0
    assert svc("auth", "token", *at).stdout == "sk-good\n"
    assert svc("auth", "status", *at, "--json").json["accepted"] is True
    assert svc("auth", "logout", *at, "--json").json["removed"] is True
    assert svc("bucket", "ls", *at).exit == 4


def test_base_url_from_a_project_file_does_not_get_the_admin_key(svc: RunSvc, odd: OddServer, files: DataFiles) -> None:
    odd.answer_health("ins_other")
    Path("svc.toml").write_text(f'base_url = "{odd.url}"\n')
    assert svc("config", "trust").exit == 0
    assert svc("bucket", "ls", "--json").failure == (4, "svc_no_api_key")
    assert odd.keys_seen() == set()


def test_temporary_errors_are_retried_and_then_reported(
    at_odd: RunSvc, odd: OddServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RetryPolicy, "__init__", partialmethod(RetryPolicy.__init__, first_delay_s=0.001))
    error = {"code": "storage_full", "message": "Full.", "retryable": True, "details": {}}
    busy: tuple[int, Any, dict[str, str]] = (503, {"error": error}, {})
    away: tuple[int, Any, dict[str, str]] = (502, b"<html>Bad Gateway</html>", {})
    odd.answers["GET /v1/buckets"] = [busy, None, away, (503, b"", {}), NO_BUCKETS]
    assert at_odd("bucket", "ls").exit == 0
    odd.answers["GET /v1/buckets"] = busy
    assert at_odd("bucket", "ls").failure == (7, "storage_full")
    odd.answers["GET /v1/buckets"] = away
    assert at_odd("bucket", "ls").failure == (7, "svc_network_failed")
    # After a proxy's 504, the service may still be working on the request.
    for status in (500, 504):
        odd.answers["GET /v1/buckets"] = [(status, b"<html>Oops</html>", {}), NO_BUCKETS]
        assert at_odd("bucket", "ls").failure == (7, "svc_bad_answer")
