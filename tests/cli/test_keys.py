"""`svc key …` against a real daemon: creating, listing and revoking API keys."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import httpx
import pytest

from svc_daemon.core.access.api_keys import PRESETS
from tests.cli.odd_servers import OddServer
from tests.cli.terminals import RunSvc


@pytest.fixture
def here(here: RunSvc) -> RunSvc:
    """`svc` at the shared installation, which has a bucket `handbook`."""
    assert here("bucket", "create", "handbook").exit == 0
    return here


def listed(here: RunSvc) -> dict[str, dict[str, Any]]:
    """Return the listed keys by name."""
    return {key["name"]: key for key in here("key", "ls", "--json").json["keys"]}


def test_key_create_prints_only_the_key_and_the_key_works(here: RunSvc, monkeypatch: pytest.MonkeyPatch) -> None:
    made = here("key", "create", "laptop", "--preset", "read")
    key = made.stdout.removesuffix("\n")
    assert made.exit == 0
    assert key[:3] == "sk-"
    assert "\n" not in key
    assert "not shown again" in made.stderr
    assert key not in made.stderr
    assert listed(here)["laptop"]["capabilities"] == list(PRESETS["read"])
    monkeypatch.setenv("SVC_API_KEY", key)
    assert here("bucket", "ls").exit == 0
    assert here("bucket", "create", "other", "--json").failure == (4, "forbidden_project_key")


@pytest.mark.rule("auth.lists")
@pytest.mark.parametrize("capability", ["answer:create", "webhook:manage"])
def test_a_key_that_lists_nothing_is_accepted_and_listing_names_what_it_lacks(
    here: RunSvc, monkeypatch: pytest.MonkeyPatch, capability: str
) -> None:
    key = here("key", "create", "asks", "--can", capability).stdout.strip()
    team = here("auth", "status", "--json").json["team_id"]
    monkeypatch.setenv("SVC_API_KEY", key)
    status, doctor = here("auth", "status", "--json").json, here("doctor", "--json").json
    assert status["accepted"] is True
    assert status["team_id"] == team
    assert {check["state"] for check in doctor["checks"] if check["check"] == "service"} == {"ok"}
    for words in ("bucket ls", "source ls -b handbook", "events", "wait src_01k00000000000000000000000"):
        refused = here(*words.split(), "--json")
        assert refused.failure == (4, "forbidden_project_key"), words
        assert refused.json["error"]["details"] == {"required_capability": "knowledge:read"}


def test_key_create_with_json_prints_the_key_and_its_attributes(here: RunSvc) -> None:
    words = "key create robot --can knowledge:search --can knowledge:read -b handbook --model svc-agent --expires 30d"
    made = here(*words.split(), "--json").json
    assert made["key"].startswith("sk-")
    assert made["models"] == ["svc-agent"]
    assert len(made["buckets"]) == 1
    assert made["expires_at"] > made["created_at"]
    assert made["capabilities"] == listed(here)["robot"]["capabilities"] == ["knowledge:search", "knowledge:read"]
    words = "key create guest --preset read --json --expires 2040-01-31T12:00:00+02:00"
    assert here(*words.split()).json["expires_at"] == "2040-01-31T10:00:00.000Z"


def test_a_revoked_key_is_refused_at_once(here: RunSvc, monkeypatch: pytest.MonkeyPatch) -> None:
    made = here("key", "create", "lost", "--preset", "ingest", "--json").json
    would = here("key", "revoke", made["id"], "--dry-run", "--json").json
    assert would["dry_run"] is True
    assert would["revoked_at"] is None
    assert here("key", "revoke", made["id"]).exit == 2
    assert "revoked" in here("key", "revoke", made["id"][:-1], "--force").stdout
    assert here("key", "revoke", made["id"], "--force", "--json").json["revoked_at"]
    assert "revoked" in here("key", "ls").stdout
    monkeypatch.setenv("SVC_API_KEY", made["key"])
    assert here("bucket", "ls", "--json").failure == (4, "invalid_project_key")


def test_dry_run_creates_no_key(here: RunSvc) -> None:
    before = listed(here)
    would = here("key", "create", "ghost", "--preset", "admin", "-b", "handbook", "--dry-run")
    assert would.exit == 0
    assert "would create ghost" in would.stdout
    assert here("key", "create", "ghost", "--preset", "admin", "--dry-run", "--json").json["dry_run"] is True
    assert listed(here) == before


@pytest.mark.parametrize(
    ("failure", "commands"),
    {
        (2, "svc_usage"): (
            *("create x", "create x --preset read --can knowledge:read", "create x --preset root"),
            *(f"create x --preset read --expires {each}" for each in ("soon", "5", "2040-01-31", "999999999d")),
            "revoke a/b --force",
        ),
        (3, "invalid_request"): ("create x --can everything", "create x --preset read --expires 0s"),
        (5, "bucket_not_found"): ("create x --preset read -b nowhere",),
        (5, "model_not_found"): ("create x --preset read --model gpt",),
        (5, "key_not_found"): ("revoke key_none", "revoke key_none --dry-run"),
    }.items(),
)
def test_refused_key_command_prints_one_json_value_and_its_exit_code(
    failure: tuple[int, str], commands: tuple[str, ...], here: RunSvc
) -> None:
    for command in commands:
        assert here("key", *command.split(), "--json").failure == failure, command


def test_key_whose_answer_was_lost_is_reported_with_a_hint_to_revoke_it(at_odd: RunSvc, odd: OddServer) -> None:
    replayed: dict[str, Any] = {"id": "key_1", "name": "x", "key": None, "capabilities": []}
    odd.answers["POST /v1/keys"] = [None, (200, replayed, {"Idempotent-Replayed": "true"})]
    finished = at_odd("key", "create", "x", "--preset", "read")
    assert finished.failure == (3, "svc_key_not_shown")
    assert "svc key revoke key_1" in finished.json["error"]["hint"]
    assert len({headers["Idempotency-Key"] for method, _, headers in odd.requests if method == "POST"}) == 1


def test_console_prints_an_address_whose_code_gives_a_key_of_its_own(here: RunSvc) -> None:
    shown = here("console", "--print", "--json").json
    base_url, _, code = shown["url"].partition("/console/#code=")
    assert here("console", "--print").stdout.startswith(f"{base_url}/console/#code=sc-")
    made = httpx.post(f"{base_url}/v1/console/sessions/exchange", json={"code": code}).raise_for_status().json()
    assert made["id"] in [key["id"] for key in here("key", "ls", "--json").json["keys"] if key["name"] == "console"]
    assert here("key", "revoke", made["id"], "--force").exit == 0
    refused = httpx.get(f"{base_url}/v1/buckets", headers={"Authorization": f"Bearer {made['key']}"})
    assert refused.status_code == 401


def test_console_hands_the_browser_a_private_file_and_no_code(
    here: RunSvc, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    noted, browser = tmp_path / "noted", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$@" >{noted}\n')
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(browser))
    ran = here("console")
    assert ran.exit == 0
    page = Path(url2pathname(urlsplit(noted.read_text().strip()).path))
    assert page.stat().st_mode & 0o777 == 0o600
    assert re.search(r'content="0;url=http://127\.0\.0\.1:\d+/console/#code=sc-\w+"', page.read_text())
    assert "code" not in noted.read_text() + ran.stdout + ran.stderr
    monkeypatch.setenv("BROWSER", "false")
    assert "svc console --print" in here("console").stderr


def test_console_without_a_folder_for_its_page_names_the_way_that_needs_none(
    here: RunSvc, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SVC_STATE_DIR", "/dev/null/absent")
    ran = here("console")
    assert ran.exit == 2
    assert ran.stderr.splitlines()[-1] == "hint: `svc console --print` prints the address without a file"
