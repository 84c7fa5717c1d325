"""API keys over HTTP: shown once, never wider than who made them, ended at once; and the operator's routes."""

from typing import Any
from urllib.parse import quote

import httpx
import pytest

from svc_daemon.api.admin_routes import ROUTES
from svc_daemon.core.access import api_keys
from svc_daemon.core.access.api_keys import KEY_MANAGE, PRESETS, SEARCH
from tests.api.answers import body_of, details_of, refused_field, without_id
from tests.api.daemons import Daemon
from tests.api.fixtures import MakeDaemon

PATH = "/v1/keys"
NEVER = "key_00000000000000000000000000"


def ask(daemon: Daemon, key: str | None = None, repeat_key: str | None = None, **fields: Any) -> httpx.Response:
    body = {"name": "made", "preset": "read"} | fields
    body = {name: value for name, value in body.items() if value is not None}
    return daemon.ask("POST", PATH, key=key, repeat_key=repeat_key, json=body)


def make(daemon: Daemon, key: str | None = None, **fields: Any) -> dict[str, Any]:
    return body_of(ask(daemon, key, **fields), 201)


def revoke(daemon: Daemon, key_id: str, key: str | None = None) -> httpx.Response:
    return daemon.ask("DELETE", f"{PATH}/{key_id}", key=key)


def listed(daemon: Daemon, key: str | None = None, **query: str) -> list[dict[str, Any]]:
    return list(daemon.show(PATH, key=key, **query)["keys"])


def opens(daemon: Daemon, key: str) -> bool:
    """Whether the key is one that lives."""
    answer = daemon.ask("GET", "/v1/buckets", key=key)
    if not answer.is_success:
        details_of(answer, "invalid_project_key")
    return answer.is_success


def search(daemon: Daemon, key: str, **body: Any) -> httpx.Response:
    return daemon.search("quay", key=key, **body)


def id_of(key: str) -> str:
    parts = api_keys.parse(key)
    assert parts is not None
    return parts.key_id


def test_a_new_key_works_and_does_what_it_was_made_for(daemon: Daemon) -> None:
    made = make(daemon, preset="ingest")
    expected: dict[str, Any] = {"capabilities": list(PRESETS["ingest"])}
    expected |= dict.fromkeys(("buckets", "models", "expires_at", "revoked_at"))
    assert {name: made[name] for name in expected} == expected
    assert daemon.upload(key=made["key"]).status_code == 201
    refused = details_of(daemon.ask("GET", "/v1/search?q=x", key=made["key"]), "forbidden_project_key")
    assert refused == {"required_capability": SEARCH}


def test_the_key_is_shown_once_and_kept_nowhere(daemon: Daemon) -> None:
    first = ask(daemon, repeat_key="k")
    made = body_of(first, 201)
    assert first.headers["Cache-Control"] == "no-store"
    prefix = made["hint"].removesuffix("…")
    assert made["key"].startswith(prefix)
    replay = ask(daemon, repeat_key="k")
    assert replay.headers["Idempotent-Replayed"] == "true"
    assert without_id(body_of(replay)) == without_id(made) | {"key": None}
    secret = made["key"].removeprefix(prefix)
    digest = api_keys.hash_secret(secret[: -api_keys.CHECKSUM_LENGTH])
    shown = daemon.ask("GET", PATH).text + revoke(daemon, made["id"]).text + replay.text
    rows = daemon.read(lambda c: [tuple(row) for row in c.execute("SELECT * FROM keys").fetchall()])
    stored = b"".join(path.read_bytes() for path in daemon.files.root.glob("state.db*")) + repr(rows).encode()
    assert (secret in shown, digest in shown) == (False, False)
    assert (digest.encode() in stored, secret.encode() in stored) == (True, False)


#: Bodies that are refused, by the field that the refusal names.
WRONG: dict[str, list[dict[str, Any]]] = {
    "name": [{"name": name} for name in (None, "", " ", "a\u0007", "x" * 201)],
    "capabilities": [{"preset": None}, {"preset": None, "capabilities": []}],
    "preset": [{"preset": "root"}],
    "buckets": [{"buckets": []}, {"buckets": "inbox"}],
    "models": [{"models": []}],
    "expires_at": [{"expires_at": moment} for moment in ("2020-01-01T00:00:00Z", 4102444800)],
    "bukets": [{"bukets": ["inbox"]}],
    "expires": [{"expires": "2099-01-01T00:00:00Z"}],
}


@pytest.mark.parametrize("path", WRONG)
def test_a_wrong_field_is_named(shared: Daemon, path: str) -> None:
    for fields in WRONG[path]:
        assert refused_field(ask(shared, **fields)) == path, fields


def test_a_bucket_or_model_of_a_key_must_be_there(shared: Daemon) -> None:
    assert details_of(ask(shared, buckets=["nowhere"]), "bucket_not_found")["bucket"] == "nowhere"
    details_of(ask(shared, models=["gpt-4"]), "model_not_found")


@pytest.mark.rule("buckets.list")
def test_a_key_for_one_bucket_reaches_nothing_else_and_makes_none(working: Daemon) -> None:
    inbox, other = working.make_bucket(), working.make_bucket("other")
    mine, _ = working.add_ready(), working.add_ready(bucket="other")
    assert make(working, buckets=["inbox", other, inbox])["buckets"] == [inbox, other]
    key = make(working, preset="admin", buckets=["inbox"])["key"]
    assert [bucket["slug"] for bucket in working.show("/v1/buckets", key=key)["buckets"]] == ["inbox"]
    assert body_of(working.ask("PUT", "/v1/buckets/inbox", key=key))["created"] is False
    details_of(working.ask("PUT", "/v1/buckets/new", key=key), "forbidden_project_key")
    details_of(working.ask("POST", "/v1/buckets", key=key, json={"slug": "new"}), "forbidden_project_key")
    assert working.found("quay", key=key) == [mine]


@pytest.mark.rule("model.keys", "auth.models")
def test_a_key_for_one_model_searches_with_it_alone_in_both_spellings(working: Daemon) -> None:
    source_id = working.add_ready()
    for spelling in ("svc-agent", "svc-rag-agent"):
        key = make(working, models=[spelling])["key"]
        for asked in ({"agent": agent} for agent in ("svc-agent", "svc-rag-agent", "svc-agent:default", None)):
            assert working.found("quay", key=key, **asked) == [source_id], (spelling, asked)
        details_of(search(working, key, agent=f"{spelling}:other"), "model_not_allowed")
    key = make(working, models=["svc-agent:other"])["key"]
    # Buckets without an agent would go around every agent's policy.
    around: list[dict[str, Any]] = [{}, {"buckets": ["inbox"]}]
    for body in (*around, {"agent": "svc-agent"}, {"agent": "svc-rag-agent", "buckets": ["inbox"]}):
        details_of(search(working, key, **body), "model_not_allowed")
    details_of(working.ask("GET", "/v1/search?q=quay", key=key), "model_not_allowed")
    details_of(search(working, key, agent="svc-rag-agent:other"), "agent_not_found")


def test_a_revoked_key_is_refused_at_once_and_over_a_restart_and_stays_in_the_list(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon()
    made = make(daemon, preset="admin")
    child = make(daemon, made["key"])
    assert opens(daemon, made["key"])
    revoked = body_of(revoke(daemon, made["id"]))
    assert not opens(daemon, made["key"])
    daemon.advance(5)
    again = body_of(revoke(daemon, made["id"]))
    (row,) = (each for each in listed(daemon) if each["id"] == made["id"])
    assert again["revoked_at"] == revoked["revoked_at"] == row["revoked_at"]
    details_of(revoke(daemon, NEVER), "key_not_found")
    daemon.close()
    daemon = make_daemon()
    # What a revoked key has made lives on.
    assert [opens(daemon, each["key"]) for each in (made, child)] == [False, True]
    # The last key may end itself.
    body_of(revoke(daemon, id_of(daemon.key)))
    assert not opens(daemon, daemon.key)


@pytest.mark.rule("auth.models")
def test_a_key_makes_no_wider_key(daemon: Daemon) -> None:
    inbox, soon, late = daemon.make_bucket(), *(daemon.context.clock.timestamp(seconds) for seconds in (60, 600))
    daemon.make_bucket("other")
    own: dict[str, Any] = {"buckets": ["inbox"], "models": ["svc-agent:a"], "expires_at": soon}
    narrow = make(daemon, preset=None, capabilities=[KEY_MANAGE, SEARCH], **own)["key"]
    assert details_of(ask(daemon, narrow), "forbidden_project_key") == {"required_capability": "knowledge:read"}
    fields: dict[str, Any] = {"preset": None, "capabilities": [SEARCH]}
    for buckets in (["other"], ["inbox", "other"]):
        details_of(ask(daemon, narrow, **fields, buckets=buckets), "bucket_not_found")
    details_of(ask(daemon, narrow, **fields, models=["svc-agent"]), "model_not_allowed")
    assert refused_field(ask(daemon, narrow, **fields, expires_at=late)) == "expires_at"
    child = make(daemon, narrow, **fields)
    assert (child["buckets"], child["models"], child["expires_at"]) == ([inbox], ["svc-agent:a"], soon)
    assert make(daemon, narrow, **fields, models=["svc-rag-agent:a"])["models"] == ["svc-rag-agent:a"]


def test_a_key_sees_and_ends_only_what_it_could_have_made(daemon: Daemon) -> None:
    daemon.make_bucket("other")
    own: dict[str, Any] = {"preset": None, "capabilities": [KEY_MANAGE, SEARCH]}
    narrow = make(daemon, buckets=["inbox"], **own)
    within = make(daemon, preset=None, capabilities=[SEARCH], buckets=["inbox"])
    wider = [make(daemon, **fields) for fields in (own, own | {"buckets": ["other"]}, {"buckets": ["inbox"]})]
    assert [key["id"] for key in listed(daemon, narrow["key"])] == [narrow["id"], within["id"]]
    for key_id in (id_of(daemon.key), *(key["id"] for key in wider)):
        details_of(revoke(daemon, key_id, narrow["key"]), "key_not_found")
    body_of(revoke(daemon, within["id"], narrow["key"]))
    assert {key["id"] for key in listed(daemon)} >= {key["id"] for key in wider}


def test_any_key_may_revoke_itself_and_without_key_manage_no_other(daemon: Daemon) -> None:
    made, other = make(daemon), make(daemon)
    details_of(revoke(daemon, other["id"], key=made["key"]), "forbidden_project_key")
    assert body_of(revoke(daemon, made["id"], key=made["key"]))["revoked_at"]
    assert (opens(daemon, made["key"]), opens(daemon, other["key"])) == (False, True)


TEAMS, KEYS = "/admin/teams", "/admin/keys"
DOORS = [(method, route.path) for route in ROUTES for method in sorted((route.methods or set()) - {"HEAD"})]


def operate(daemon: Daemon, method: str, path: str, **options: Any) -> httpx.Response:
    return daemon.ask(method, path, key=daemon.operator_token, **options)


def make_team(daemon: Daemon, name: str = "blue") -> dict[str, Any]:
    return body_of(operate(daemon, "POST", TEAMS, json={"name": name}))


def test_a_team_is_made_with_a_key_that_opens_it(daemon: Daemon) -> None:
    answer = operate(daemon, "POST", TEAMS, json={"name": "blue"})
    team, key = body_of(answer)["team"], body_of(answer)["key"]
    assert answer.headers["Cache-Control"] == "no-store"
    assert (team["name"], key["name"], key["capabilities"]) == ("blue", "admin", list(PRESETS["admin"]))
    listed = body_of(daemon.ask("GET", "/v1/buckets", key=key["key"]))
    assert (listed["team_id"], listed["buckets"]) == (team["id"], [])
    daemon.make_bucket("inbox", key=key["key"])
    assert daemon.add_source(key=key["key"]) not in daemon.members(status="all")
    teams = operate(daemon, "GET", TEAMS)
    assert [each["name"] for each in body_of(teams)["teams"]] == ["default", "blue"]
    assert key["id"] not in teams.text


def test_a_team_has_a_name_of_its_own(shared: Daemon) -> None:
    before = shared.count("teams")
    for name in ("default", "team_01", "", " ", "x" * 201):
        assert refused_field(operate(shared, "POST", TEAMS, json={"name": name})) == "name", name
    details_of(operate(shared, "POST", TEAMS, json={"name": "a\u0000b"}), "invalid_json")
    assert shared.count("teams") == before


def test_a_key_is_made_for_any_team_and_judged_as_any_other(daemon: Daemon) -> None:
    team = make_team(daemon)["team"]
    for named in (team["id"], team["name"]):
        made = body_of(operate(daemon, "POST", KEYS, json={"team": named, "preset": "read"}))
        assert (made["team"], made["key"]["name"]) == (team, "operator")
        assert body_of(daemon.ask("GET", "/v1/buckets", key=made["key"]["key"]))["team_id"] == team["id"]
    keys = daemon.count("keys")
    details_of(operate(daemon, "POST", KEYS, json={"team": "green", "preset": "read"}), "not_found")
    assert refused_field(operate(daemon, "POST", KEYS, json={"team": team["id"]})) == "capabilities"
    assert refused_field(operate(daemon, "POST", KEYS, json={"preset": "read"})) == "team"
    buckets = {"team": team["id"], "preset": "read", "buckets": ["inbox"]}
    details_of(operate(daemon, "POST", KEYS, json=buckets), "bucket_not_found")
    assert daemon.count("keys") == keys


def test_without_the_token_every_route_is_closed(shared: Daemon) -> None:
    assert {("POST", TEAMS), ("GET", TEAMS), ("POST", KEYS)} <= set(DOORS)
    token = shared.operator_token
    for method, path in DOORS:
        for wrong in ("", shared.key, token[:-1], token + "0", token.upper(), "0" * len(token)):
            details_of(shared.ask(method, path, key=wrong), "invalid_project_key")
        for scheme in ("Basic", "Token", ""):
            header = {"Authorization": f"{scheme} {token}".strip()}
            details_of(shared.ask(method, path, key="", headers=header), "invalid_project_key")
    details_of(shared.ask("GET", "/v1/buckets", key=token), "invalid_project_key")


def test_no_page_comes_in_even_one_that_may_drive_the_api(shared: Daemon) -> None:
    for method, path in DOORS:
        for header in ({"Origin": "http://127.0.0.1"}, {"Origin": "null"}, {"Sec-Fetch-Site": "same-origin"}):
            details_of(operate(shared, method, path, headers=header), "origin_not_allowed")


def test_only_this_machine_comes_in(shared: Daemon) -> None:
    async def get(address: str) -> httpx.Response:
        transport = httpx.ASGITransport(shared.app, raise_app_exceptions=False, client=(address, 5000))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.get(TEAMS, headers={"Authorization": f"Bearer {shared.operator_token}"})

    for address in ("127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"):
        assert shared.loop.run(get(address)).status_code == 200, address
    for address in ("10.0.0.7", "203.0.113.9", "::ffff:203.0.113.9", "fe80::1", "unix"):
        details_of(shared.loop.run(get(address)), "not_found")


def test_the_token_is_for_its_user_alone_and_for_one_run(make_daemon: MakeDaemon) -> None:
    first = make_daemon()
    path = first.files.operator_token
    assert (path.stat().st_mode & 0o777, path.read_text().strip()) == (0o600, first.operator_token)
    first.close()
    path.write_bytes(b"\xff")
    second = make_daemon()
    assert second.operator_token == path.read_text().strip() != first.operator_token
    details_of(second.ask("GET", TEAMS, key=first.operator_token), "invalid_project_key")


def test_a_teams_index_is_rebuilt_on_demand(daemon: Daemon) -> None:
    team = make_team(daemon, "blue/green")
    by_id, by_name = (f"{TEAMS}/{quote(team['team'][by], safe='')}/rebuild" for by in ("id", "name"))
    task = body_of(operate(daemon, "POST", by_id))
    assert (task["type"], task["status"], task["source_id"]) == ("store_rebuild", "queued", None)
    assert body_of(operate(daemon, "POST", by_name))["id"] == task["id"]
    key = team["key"]["key"]
    assert details_of(daemon.search("quay", key=key), "team_store_maintenance")["task_id"] == task["id"]
    assert body_of(daemon.ask("GET", f"/v1/knowledge/tasks/{task['id']}", key=key))["status"] == "queued"
    assert daemon.found("quay") == []
    details_of(operate(daemon, "POST", f"{TEAMS}/nobody/rebuild"), "not_found")
    assert daemon.count("tasks") == 1
