"""`svc key …` against a real daemon: printed once, judged by the service, ended at once."""

from collections.abc import Callable
from typing import Any

import pytest

from svc_daemon.core.access.api_keys import PRESETS
from tests.acceptance.installations import Installation
from tests.cli.consoles import RunSvc
from tests.cli.odd_servers import OddServer


@pytest.fixture
def here(svc: RunSvc, at: Callable[[Installation], None], shared_installation: Installation) -> RunSvc:
    """`svc` at the shared installation, which has a bucket `handbook`."""
    at(shared_installation)
    assert svc("bucket", "create", "handbook").exit == 0
    return svc


def listed(here: RunSvc) -> dict[str, dict[str, Any]]:
    """Keys by name."""
    return {key["name"]: key for key in here("key", "ls", "--json").json["keys"]}


def test_a_key_is_printed_alone_and_works(here: RunSvc, monkeypatch: pytest.MonkeyPatch) -> None:
    made = here("key", "create", "laptop", "--preset", "read")
    assert made.exit == 0
    assert made.stdout.startswith("sk-")
    assert made.stdout.count("\n") == 1
    assert "not shown again" in made.stderr
    assert made.stdout.strip() not in made.stderr
    assert listed(here)["laptop"]["capabilities"] == list(PRESETS["read"])
    monkeypatch.setenv("SVC_API_KEY", made.stdout.strip())
    assert here("bucket", "ls").exit == 0
    refused = here("bucket", "create", "other", "--json")
    assert (refused.exit, refused.json["error"]["code"]) == (4, "forbidden_project_key")


def test_json_has_the_key_and_everything_about_it(here: RunSvc) -> None:
    made = here("key", "create", "robot", "--can", "knowledge:search", "--can", "knowledge:read", "-b", "handbook")
    assert made.exit == 0
    told = here(
        "key", "create", "robot2", "--can", "knowledge:search", "-b", "handbook", "--model", "svc-agent",
        "--expires", "30d", "--json",
    ).json  # fmt: skip
    assert told["key"].startswith("sk-")
    assert (told["capabilities"], told["models"], len(told["buckets"])) == (["knowledge:search"], ["svc-agent"], 1)
    assert told["expires_at"] > told["created_at"]
    assert listed(here)["robot"]["capabilities"] == ["knowledge:search", "knowledge:read"]


def test_a_key_ends_at_the_moment_that_is_named(here: RunSvc) -> None:
    words = ("key", "create", "guest", "--preset", "read", "--json", "--expires")
    assert here(*words, "2040-01-31T12:00:00+02:00").json["expires_at"] == "2040-01-31T10:00:00.000Z"
    assert here(*words, "2000d").json["expires_at"] > "2030"


def test_a_revoked_key_is_refused_at_once(here: RunSvc, monkeypatch: pytest.MonkeyPatch) -> None:
    made = here("key", "create", "lost", "--preset", "ingest", "--json").json
    would = here("key", "revoke", made["id"], "--dry-run", "--json").json
    assert (would["dry_run"], would["revoked_at"]) == (True, None)
    assert here("key", "revoke", made["id"]).exit == 2
    assert "revoked" in here("key", "revoke", made["id"][:-1], "--force").stdout
    assert here("key", "revoke", made["id"], "--force", "--json").json["revoked_at"]
    assert "revoked" in here("key", "ls").stdout
    monkeypatch.setenv("SVC_API_KEY", made["key"])
    ended = here("bucket", "ls", "--json")
    assert (ended.exit, ended.json["error"]["code"]) == (4, "invalid_project_key")


def test_a_dry_run_makes_nothing(here: RunSvc) -> None:
    before = listed(here)
    would = here("key", "create", "ghost", "--preset", "admin", "-b", "handbook", "--dry-run")
    assert (would.exit, "would create ghost" in would.stdout) == (0, True)
    assert here("key", "create", "ghost", "--preset", "admin", "--dry-run", "--json").json["dry_run"] is True
    assert listed(here) == before


@pytest.mark.parametrize(
    ("words", "exit", "code"),
    [
        (("create", "x"), 2, "svc_usage"),
        (("create", "x", "--preset", "read", "--can", "knowledge:read"), 2, "svc_usage"),
        (("create", "x", "--preset", "root"), 2, "svc_usage"),
        (("create", "x", "--preset", "read", "--expires", "soon"), 2, "svc_usage"),
        (("create", "x", "--preset", "read", "--expires", "5"), 2, "svc_usage"),
        (("create", "x", "--preset", "read", "--expires", "2040-01-31"), 2, "svc_usage"),
        (("create", "x", "--preset", "read", "--expires", "999999999d"), 2, "svc_usage"),
        (("create", "x", "--can", "everything"), 3, "invalid_request"),
        (("create", "x", "--preset", "read", "-b", "nowhere"), 5, "bucket_not_found"),
        (("create", "x", "--preset", "read", "--model", "gpt"), 5, "model_not_found"),
        (("create", "x", "--preset", "read", "--expires", "0s"), 3, "invalid_request"),
        (("revoke", "key_none"), 5, "key_not_found"),
        (("revoke", "key_none", "--dry-run"), 5, "key_not_found"),
        (("revoke", "a/b", "--force"), 2, "svc_usage"),
    ],
)
def test_a_refusal_is_one_json_value_with_its_exit_code(
    here: RunSvc, words: tuple[str, ...], exit: int, code: str
) -> None:
    finished = here("key", *words, "--json")
    assert (finished.exit, finished.json["error"]["code"]) == (exit, code)


def test_a_key_whose_answer_was_lost_is_named_with_the_way_out(
    svc: RunSvc, odd: OddServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd.answer_health()
    monkeypatch.setenv("SVC_API_KEY", "sk-mine")
    replayed: dict[str, Any] = {"id": "key_1", "name": "x", "key": None, "capabilities": []}
    odd.answers["POST /v1/keys"] = [None, (200, replayed, {"Idempotent-Replayed": "true"})]
    finished = svc("key", "create", "x", "--preset", "read", "--base-url", odd.url, "--json")
    assert (finished.exit, finished.json["error"]["code"]) == (3, "svc_key_not_shown")
    assert "svc key revoke key_1" in finished.json["error"]["hint"]
    sent = {headers["Idempotency-Key"] for method, _, headers in odd.requests if method == "POST"}
    assert len(sent) == 1
