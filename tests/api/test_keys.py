"""API keys over HTTP: shown once, never wider than who made them, ended at once."""

from typing import Any

import httpx
import pytest

from svc_daemon.core.access import api_keys
from svc_daemon.core.access.api_keys import CAPABILITIES, KEY_MANAGE, PRESETS, SEARCH
from svc_daemon.wire.keys import KeyAnswer, KeyCreated, KeyList
from tests.api.answers import body_of, details_of, refused_field
from tests.api.daemons import Daemon
from tests.api.fixtures import MakeDaemon

PATH = "/v1/keys"
NEVER = "key_00000000000000000000000000"


def ask(daemon: Daemon, key: str | None = None, repeat_key: str | None = None, **fields: Any) -> httpx.Response:
    headers = {} if repeat_key is None else {"Idempotency-Key": repeat_key}
    body = {"name": "made", "preset": "read"} | fields
    body = {name: value for name, value in body.items() if value is not None}
    return daemon.ask("POST", PATH, key=key, headers=headers, json=body)


def make(daemon: Daemon, key: str | None = None, **fields: Any) -> dict[str, Any]:
    told = body_of(ask(daemon, key, **fields), 201)
    assert KeyCreated.model_validate(told, extra="forbid")
    return told


def listed(daemon: Daemon, key: str | None = None, **query: str) -> list[dict[str, Any]]:
    told = daemon.show(PATH, key=key, **query)
    assert KeyList.model_validate(told, extra="forbid")
    return list(told["keys"])


def id_of(key: str) -> str:
    parts = api_keys.parse(key)
    assert parts is not None
    return parts.key_id


def test_a_new_key_works_and_does_what_it_was_made_for(daemon: Daemon) -> None:
    made = make(daemon, preset="ingest")
    assert (made["capabilities"], made["buckets"], made["models"]) == (list(PRESETS["ingest"]), None, None)
    assert (made["expires_at"], made["revoked_at"]) == (None, None)
    assert daemon.upload(key=made["key"]).status_code == 201
    assert details_of(daemon.ask("GET", "/v1/search?q=x", key=made["key"]), "forbidden_project_key") == {
        "required_capability": SEARCH
    }


def test_the_key_is_shown_once_and_kept_nowhere(daemon: Daemon) -> None:
    first = ask(daemon, repeat_key="k")
    made = body_of(first, 201)
    assert first.headers["Cache-Control"] == "no-store"
    assert made["key"].startswith(made["hint"].removesuffix("…"))
    replay = ask(daemon, repeat_key="k")
    assert replay.headers["Idempotent-Replayed"] == "true"
    assert body_of(replay) == made | {"key": None, "request_id": replay.json()["request_id"]}
    secret = made["key"].removeprefix(made["hint"].removesuffix("…"))
    digest = api_keys.hash_secret(secret[: -api_keys.CHECKSUM_LENGTH])
    shown = daemon.ask("GET", PATH).text + daemon.ask("DELETE", f"{PATH}/{made['id']}").text + replay.text
    assert secret not in shown
    assert digest not in shown
    state = b"".join(path.read_bytes() for path in daemon.files.root.glob("state.db*"))
    assert digest.encode() in state
    assert secret.encode() not in state


def test_a_repeated_create_is_judged_as_any_other(daemon: Daemon) -> None:
    made = body_of(ask(daemon, repeat_key="k", expires_at="2100-01-01T00:00:00Z"), 201)
    details_of(ask(daemon, repeat_key="k", name="other"), "idempotency_key_conflict")
    daemon.advance(100)
    assert body_of(ask(daemon, repeat_key="k", expires_at="2100-01-01T00:00:00Z"))["id"] == made["id"]
    assert refused_field(ask(daemon, repeat_key="free", preset="root")) == "preset"
    body_of(ask(daemon, repeat_key="free"), 201)
    assert len(listed(daemon)) == 3


def test_a_dry_run_makes_nothing(daemon: Daemon) -> None:
    told = body_of(ask(daemon, repeat_key="k", dry_run=True, buckets=["inbox"]))
    assert (told["dry_run"], told["would_create"]["capabilities"]) == (True, list(PRESETS["read"]))
    assert "key" not in told["would_create"]
    assert refused_field(ask(daemon, dry_run=True, preset="root")) == "preset"
    assert daemon.count("keys") == 1
    assert daemon.count("idempotency") == 0


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"name": None}, "name"),
    ({"name": ""}, "name"),
    ({"name": " "}, "name"),
    ({"name": "a\u0007"}, "name"),
    ({"name": "x" * 201}, "name"),
    ({"preset": None}, "capabilities"),
    ({"capabilities": ["knowledge:read"]}, "capabilities"),
    ({"preset": None, "capabilities": []}, "capabilities"),
    ({"preset": None, "capabilities": ["all"]}, "capabilities"),
    ({"preset": "root"}, "preset"),
    ({"buckets": []}, "buckets"),
    ({"buckets": "inbox"}, "buckets"),
    ({"models": []}, "models"),
    ({"expires_at": "2100-01-01"}, "expires_at"),
    ({"expires_at": "2020-01-01T00:00:00Z"}, "expires_at"),
    ({"expires_at": 4102444800}, "expires_at"),
]


def test_a_wrong_field_is_named(shared: Daemon) -> None:
    for fields, path in WRONG:
        assert refused_field(ask(shared, **fields)) == path


def test_buckets_and_models_that_are_none_are_refused(shared: Daemon) -> None:
    assert details_of(ask(shared, buckets=["nowhere"]), "bucket_not_found")["bucket"] == "nowhere"
    details_of(ask(shared, models=["gpt-4"]), "model_not_found")


def test_buckets_are_kept_as_ids_however_they_were_named(daemon: Daemon) -> None:
    inbox, other = daemon.make_bucket(), daemon.make_bucket("other")
    assert make(daemon, buckets=["inbox", other, inbox])["buckets"] == [inbox, other]


def test_a_key_for_one_bucket_reaches_nothing_else(working: Daemon) -> None:
    working.make_bucket("other")
    mine, theirs = working.add_ready(), working.add_ready(bucket="other")
    key = make(working, preset="admin", buckets=["inbox"])["key"]
    buckets = working.show("/v1/buckets", key=key)["buckets"]
    assert [bucket["slug"] for bucket in buckets] == ["inbox"]
    assert working.source(mine, key=key)["ready"] is True
    details_of(working.ask("GET", f"/v1/sources/{theirs}", key=key), "source_not_found")
    details_of(working.upload(bucket="other", key=key), "bucket_not_found")
    details_of(working.ask("PUT", "/v1/buckets/new", key=key), "forbidden_project_key")
    hits = working.show("/v1/search?q=quay", key=key)["data"]
    assert {hit["source_id"] for hit in hits} == {mine}
    details_of(working.ask("GET", "/v1/search?q=quay&buckets=other", key=key), "bucket_not_found")


@pytest.mark.parametrize("spelling", ["svc-agent", "svc-rag-agent"])
def test_a_key_for_one_model_may_search_with_it_in_both_spellings(working: Daemon, spelling: str) -> None:
    working.add_ready()
    key = make(working, models=[spelling])["key"]
    for agent in ("svc-agent", "svc-rag-agent", "svc-agent:default", None):
        asked = {"query": "quay"} | ({"agent": agent} if agent else {})
        assert working.post("/v1/search", key=key, json=asked)["data"]
    asked = {"query": "quay", "agent": f"{spelling}:other"}
    details_of(working.ask("POST", "/v1/search", key=key, json=asked), "model_not_allowed")


def test_a_key_for_another_model_may_not_search_by_the_default_one(working: Daemon) -> None:
    working.add_ready()
    key = make(working, models=["svc-agent:other"])["key"]
    for asked in ({}, {"agent": "svc-agent"}, {"agent": "svc-rag-agent", "buckets": ["inbox"]}):
        body = {"query": "quay", **asked}
        details_of(working.ask("POST", "/v1/search", key=key, json=body), "model_not_allowed")
    details_of(working.ask("GET", "/v1/search?q=quay", key=key), "model_not_allowed")
    details_of(
        working.ask("POST", "/v1/search", key=key, json={"query": "quay", "agent": "svc-rag-agent:other"}),
        "agent_not_found",
    )
    # Buckets without an agent would go around every agent's policy.
    by_bucket = working.ask("POST", "/v1/search", key=key, json={"query": "quay", "buckets": ["inbox"]})
    details_of(by_bucket, "model_not_allowed")


def test_an_expired_key_is_refused_from_its_moment_on(daemon: Daemon) -> None:
    soon = daemon.context.clock.timestamp(60)
    key = make(daemon, expires_at=soon)["key"]
    assert daemon.ask("GET", "/v1/buckets", key=key).status_code == 200
    daemon.advance(60)
    details_of(daemon.ask("GET", "/v1/buckets", key=key), "invalid_project_key")
    assert listed(daemon)[-1]["expires_at"] == soon


def test_a_revoked_key_is_refused_at_once_and_stays_in_the_list(daemon: Daemon) -> None:
    made = make(daemon)
    assert daemon.ask("GET", "/v1/buckets", key=made["key"]).status_code == 200
    revoked = body_of(daemon.ask("DELETE", f"{PATH}/{made['id']}"))
    assert KeyAnswer.model_validate(revoked, extra="forbid")
    details_of(daemon.ask("GET", "/v1/buckets", key=made["key"]), "invalid_project_key")
    daemon.advance(5)
    again = body_of(daemon.ask("DELETE", f"{PATH}/{made['id']}"))
    assert again["revoked_at"] == revoked["revoked_at"] == listed(daemon)[-1]["revoked_at"]
    details_of(daemon.ask("DELETE", f"{PATH}/{NEVER}"), "key_not_found")


def test_what_a_revoked_key_has_made_lives_on(daemon: Daemon) -> None:
    maker = make(daemon, preset="admin")
    child = make(daemon, maker["key"])
    body_of(daemon.ask("DELETE", f"{PATH}/{maker['id']}"))
    assert daemon.ask("GET", "/v1/buckets", key=child["key"]).status_code == 200


def test_the_last_key_may_end_itself(daemon: Daemon) -> None:
    body_of(daemon.ask("DELETE", f"{PATH}/{id_of(daemon.key)}"))
    details_of(daemon.ask("GET", PATH), "invalid_project_key")


def test_a_key_makes_no_wider_key(daemon: Daemon) -> None:
    inbox, soon = daemon.make_bucket(), daemon.context.clock.timestamp(60)
    daemon.make_bucket("other")
    own = [KEY_MANAGE, SEARCH]
    narrow = make(
        daemon, preset=None, capabilities=own, buckets=["inbox"], models=["svc-agent:a"], expires_at=soon, name="narrow"
    )["key"]
    assert details_of(ask(daemon, narrow), "forbidden_project_key") == {"required_capability": "knowledge:read"}
    fields: dict[str, Any] = {"preset": None, "capabilities": [SEARCH]}
    details_of(ask(daemon, narrow, **fields, buckets=["other"]), "bucket_not_found")
    details_of(ask(daemon, narrow, **fields, buckets=["inbox", "other"]), "bucket_not_found")
    details_of(ask(daemon, narrow, **fields, models=["svc-agent"]), "model_not_allowed")
    late = daemon.context.clock.timestamp(600)
    assert refused_field(ask(daemon, narrow, **fields, expires_at=late)) == "expires_at"
    child = make(daemon, narrow, **fields)
    assert (child["buckets"], child["models"], child["expires_at"]) == ([inbox], ["svc-agent:a"], soon)
    assert make(daemon, narrow, **fields, models=["svc-rag-agent:a"])["models"] == ["svc-rag-agent:a"]


def test_a_key_sees_and_ends_only_what_it_could_have_made(daemon: Daemon) -> None:
    daemon.make_bucket("other")
    own: dict[str, Any] = {"preset": None, "capabilities": [KEY_MANAGE, SEARCH]}
    narrow = make(daemon, buckets=["inbox"], **own)
    within = make(daemon, preset=None, capabilities=[SEARCH], buckets=["inbox"])
    wider = [
        make(daemon, **own),
        make(daemon, buckets=["other"], **own),
        make(daemon, preset="read", buckets=["inbox"]),
    ]
    assert [key["id"] for key in listed(daemon, narrow["key"])] == [narrow["id"], within["id"]]
    for key_id in (id_of(daemon.key), *(key["id"] for key in wider)):
        details_of(daemon.ask("DELETE", f"{PATH}/{key_id}", key=narrow["key"]), "key_not_found")
    body_of(daemon.ask("DELETE", f"{PATH}/{within['id']}", key=narrow["key"]))
    assert {key["id"] for key in listed(daemon)} >= {key["id"] for key in wider}


def test_the_list_comes_in_pages(daemon: Daemon) -> None:
    for name in ("a", "b"):
        make(daemon, name=name)
    assert [key["name"] for key in listed(daemon)] == ["admin", "a", "b"]
    first = daemon.show(PATH, limit="2")
    assert ([key["name"] for key in first["keys"]], first["has_more"]) == (["admin", "a"], True)
    rest = daemon.show(PATH, limit="2", after=first["last_id"])
    assert ([key["name"] for key in rest["keys"]], rest["has_more"]) == (["b"], False)


def test_keys_outlive_a_restart(make_daemon: MakeDaemon) -> None:
    first = make_daemon()
    kept, ended = make(first), make(first)
    body_of(first.ask("DELETE", f"{PATH}/{ended['id']}"))
    first.close()
    second = make_daemon()
    assert second.ask("GET", "/v1/buckets", key=kept["key"]).status_code == 200
    details_of(second.ask("GET", "/v1/buckets", key=ended["key"]), "invalid_project_key")


def test_the_admin_preset_is_everything() -> None:
    assert set(PRESETS["admin"]) == set(CAPABILITIES)
