"""Who gets the key, and what is said when the wrong one answers."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from svc_daemon.paths import DataFiles
from tests.cli.consoles import RunSvc
from tests.cli.odd_servers import OddServer

BUCKETS: tuple[int, dict[str, Any], dict[str, str]] = (
    200,
    {"team_id": "team_1", "buckets": [], "request_id": "req_1"},
    {},
)

#: The secret of the installation of the tests.
SECRET = bytes(range(32))
#: Higher than any process id is.
NOBODY = 2**30


@pytest.fixture
def files(svc: RunSvc, tmp_path: Path) -> DataFiles:
    """The data directory of this test's installation, with an admin key in it."""
    made = DataFiles(tmp_path / "data")
    made.root.mkdir()
    made.admin_key.write_text("sk-admin")
    made.secret.write_text(SECRET.hex())
    return made


def _announce(files: DataFiles, url: str, installation_id: str, pid: int = NOBODY) -> None:
    told = {"pid": pid, "base_url": url, "version": "0.1.0", "installation_id": installation_id}
    files.daemon.write_text(json.dumps(told))


def test_the_daemon_of_this_installation_gets_the_admin_key(svc: RunSvc, odd: OddServer, files: DataFiles) -> None:
    odd.prove_health(SECRET, "ins_1")
    odd.answers["GET /v1/buckets"] = BUCKETS
    _announce(files, odd.url, "ins_1")
    assert svc("bucket", "ls").exit == 0
    assert svc("bucket", "ls", "--base-url", odd.url).exit == 0
    assert odd.keys_seen() == {"Bearer sk-admin"}


def test_whoever_says_the_public_id_and_cannot_prove_it_gets_no_key(
    svc: RunSvc, odd: OddServer, files: DataFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SVC_API_KEY", "sk-mine")
    odd.answers["GET /v1/buckets"] = BUCKETS
    _announce(files, odd.url, "ins_1")
    for is_guessing in (False, True):
        odd.answer_health("ins_1")
        if is_guessing:
            odd.prove_health(bytes(32), "ins_1")
        assert svc("bucket", "ls", "--json").json["error"]["code"] == "svc_daemon_unreachable"
        named = svc("bucket", "ls", "--base-url", odd.url, "--json")
        assert (named.exit, named.json["error"]["code"]) == (12, "svc_daemon_unproven")
    assert odd.keys_seen() == set()


def test_a_proof_for_another_port_is_none(svc: RunSvc, odd: OddServer, files: DataFiles) -> None:
    odd.prove_health(SECRET, "ins_1")
    _announce(files, odd.url, "ins_1")
    odd.port += 1  # what it passes on is the proof of a daemon elsewhere
    finished = svc("bucket", "ls", "--json")
    assert (finished.exit, finished.json["error"]["code"]) == (12, "svc_daemon_unreachable")
    assert odd.keys_seen() == set()


@pytest.mark.parametrize("secret", [None, "", "00ff", "not hex"])
def test_without_the_secret_nobody_is_believed_and_the_way_out_is_told(
    svc: RunSvc, odd: OddServer, files: DataFiles, secret: str | None
) -> None:
    odd.answer_health("ins_1")
    _announce(files, odd.url, "ins_1", pid=os.getpid())
    files.secret.unlink()
    if secret is not None:
        files.secret.write_text(secret)
    error = svc("bucket", "ls", "--json").json["error"]
    assert error["code"] == "svc_daemon_unproven"
    assert f"kill {os.getpid()}" in error["hint"]
    assert odd.keys_seen() == set()


@pytest.mark.parametrize("text", [None, "", "two words"])
def test_a_lost_admin_key_is_told_with_the_way_back(
    svc: RunSvc, odd: OddServer, files: DataFiles, text: str | None
) -> None:
    odd.prove_health(SECRET, "ins_1")
    _announce(files, odd.url, "ins_1")
    files.admin_key.unlink()
    if text is not None:
        files.admin_key.write_text(text)
    finished = svc("bucket", "ls", "--json")
    assert (finished.exit, finished.json["error"]["code"]) == (4, "svc_no_api_key")
    assert "svc-daemon key create --team default --preset admin --save" in finished.json["error"]["hint"]
    (key,) = [check for check in svc("doctor", "--json").json["checks"] if check["check"] == "service"]
    assert key["state"] == "failed"
    assert "--save" in key["hint"]


@pytest.mark.parametrize("impostor", ["another installation", "another program", "one that cuts the line"])
def test_whoever_else_answers_there_gets_no_key(svc: RunSvc, odd: OddServer, files: DataFiles, impostor: str) -> None:
    if impostor == "another installation":
        odd.answer_health("ins_2")
    else:
        odd.answers["GET /healthz"] = (200, b"<html>", {}) if impostor == "another program" else None
    odd.answers["GET /v1/buckets"] = BUCKETS
    _announce(files, odd.url, "ins_1")
    finished = svc("bucket", "ls", "--json")
    assert (finished.exit, finished.json["error"]["code"]) == (12, "svc_daemon_unreachable")
    assert odd.keys_seen() == set()


def test_a_port_that_something_else_holds_is_named_with_the_fix(
    svc: RunSvc, odd: OddServer, files: DataFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd.answers["GET /healthz"] = (404, b"not here", {})
    monkeypatch.setenv("SVC_LISTEN", f"127.0.0.1:{odd.port}")
    monkeypatch.delenv("SVC_NO_AUTOSTART")
    finished = svc("bucket", "ls", "--json")
    error = finished.json["error"]
    assert (finished.exit, error["code"]) == (12, "svc_port_taken")
    assert f"127.0.0.1:{odd.port}" in error["message"]
    assert f"SVC_LISTEN=127.0.0.1:{odd.port + 1}" in error["hint"]
    assert odd.keys_seen() == set()


def test_an_address_that_is_not_svc_is_named(svc: RunSvc, odd: OddServer, monkeypatch: pytest.MonkeyPatch) -> None:
    odd.answers["GET /healthz"] = (200, b"hello", {})
    monkeypatch.setenv("SVC_API_KEY", "sk-mine")
    finished = svc("bucket", "ls", "--base-url", odd.url, "--json")
    assert (finished.exit, finished.json["error"]["code"]) == (12, "svc_port_taken")
    assert odd.keys_seen() == set()


def test_an_address_as_openai_s_clients_take_it_is_told_what_to_leave_out(svc: RunSvc, odd: OddServer) -> None:
    finished = svc("bucket", "ls", "--base-url", f"{odd.url}/v1/", "--json")
    assert finished.json["error"]["hint"] == "leave out the /v1 at the end of the address: svc adds it."


@pytest.mark.parametrize("api", ["2-3", "0-0", "", "new"])
def test_without_a_common_api_version_nothing_is_sent(
    svc: RunSvc, odd: OddServer, monkeypatch: pytest.MonkeyPatch, api: str
) -> None:
    odd.answer_health(api=api, version="9.0.0")
    monkeypatch.setenv("SVC_API_KEY", "sk-mine")
    finished = svc("bucket", "ls", "--base-url", odd.url, "--json")
    assert (finished.exit, finished.json["error"]["code"]) == (13, "svc_api_incompatible")
    assert odd.keys_seen() == set()


def test_an_overlapping_version_works_with_one_notice(
    svc: RunSvc, odd: OddServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd.answer_health(api="1-7", version="9.0.0")
    odd.answers["GET /v1/buckets"] = BUCKETS
    monkeypatch.setenv("SVC_API_KEY", "sk-mine")
    finished = svc("bucket", "ls", "--base-url", odd.url)
    assert finished.exit == 0
    assert finished.stderr.count("9.0.0") == 1


def test_a_stored_key_is_not_sent_when_another_installation_took_the_address(
    svc: RunSvc, odd: OddServer, tmp_path: Path
) -> None:
    odd.answer_health("ins_1")
    odd.answers["GET /v1/buckets"] = BUCKETS
    key_file = tmp_path / "key"
    key_file.write_text("sk-stored\n")
    assert svc("auth", "login", "--key-file", str(key_file), "--base-url", odd.url).exit == 0
    assert svc("bucket", "ls", "--base-url", odd.url).exit == 0
    odd.answer_health("ins_2")
    odd.requests.clear()
    finished = svc("bucket", "ls", "--base-url", odd.url, "--json")
    assert (finished.exit, finished.json["error"]["code"]) == (4, "svc_installation_changed")
    assert odd.keys_seen() == set()


def test_a_key_that_the_service_refuses_is_not_stored(svc: RunSvc, odd: OddServer) -> None:
    odd.answer_health()
    refusal = {"error": {"code": "invalid_project_key", "message": "No.", "retryable": False, "details": {}}}
    odd.answers["GET /v1/buckets"] = (401, refusal, {})
    assert svc("auth", "login", "--key-file", "-", "--base-url", odd.url, stdin=b"sk-bad\n").exit == 4
    odd.answers["GET /v1/buckets"] = BUCKETS
    assert svc("bucket", "ls", "--base-url", odd.url).exit == 4


def test_login_and_logout_take_a_key_from_stdin_and_forget_it(svc: RunSvc, odd: OddServer) -> None:
    odd.answer_health()
    odd.answers["GET /v1/buckets"] = BUCKETS
    assert svc("auth", "login", "--key-file", "-", "--base-url", odd.url, stdin=b"sk-good\n").exit == 0
    assert svc("auth", "token", "--base-url", odd.url).stdout == "sk-good\n"
    assert svc("auth", "status", "--base-url", odd.url, "--json").json["accepted"] is True
    assert svc("auth", "logout", "--base-url", odd.url, "--json").json["removed"] is True
    assert svc("bucket", "ls", "--base-url", odd.url).exit == 4


def test_logout_starts_no_daemon_where_none_is_wanted(
    svc: RunSvc, files: DataFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SVC_NO_AUTOSTART")
    finished = svc("auth", "logout", "--no-autostart", "--json")
    assert (finished.exit, finished.json["error"]["code"]) == (12, "svc_daemon_unreachable")
    assert not files.daemon.exists()


def test_a_projects_address_gets_neither_the_admin_key_nor_a_stored_one(
    svc: RunSvc, odd: OddServer, files: DataFiles
) -> None:
    odd.answer_health("ins_other")
    Path("svc.toml").write_text(f'base_url = "{odd.url}"\n')
    finished = svc("bucket", "ls", "--json")
    assert (finished.exit, finished.json["error"]["code"]) == (4, "svc_no_api_key")
    assert odd.keys_seen() == set()


def test_temporary_refusals_are_tried_again_and_then_told(
    svc: RunSvc, odd: OddServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd.answer_health()
    monkeypatch.setenv("SVC_API_KEY", "sk-mine")
    error = {"code": "storage_full", "message": "Full.", "retryable": True, "details": {}}
    busy: tuple[int, Any, dict[str, str]] = (503, {"error": error}, {})
    odd.answers["GET /v1/buckets"] = [busy, None, BUCKETS]
    assert svc("bucket", "ls", "--base-url", odd.url).exit == 0
    odd.answers["GET /v1/buckets"] = busy
    finished = svc("bucket", "ls", "--base-url", odd.url, "--json")
    assert (finished.exit, finished.json["error"]["code"]) == (7, "storage_full")


def test_an_answer_that_is_no_json_is_an_error_of_ours(
    svc: RunSvc, odd: OddServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd.answer_health()
    monkeypatch.setenv("SVC_API_KEY", "sk-mine")
    odd.answers["GET /v1/buckets"] = (502, b"<html>Bad Gateway</html>", {})
    finished = svc("bucket", "ls", "--base-url", odd.url, "--json")
    assert (finished.exit, finished.json["error"]["code"]) == (7, "svc_bad_answer")
