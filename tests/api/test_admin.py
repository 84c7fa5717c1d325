"""The operator's routes: teams and their keys, for the holder of the token, on this machine, in no browser."""

from typing import Any
from urllib.parse import quote

import httpx

from svc_daemon.api.admin_routes import ROUTES
from svc_daemon.core.access.api_keys import PRESETS
from tests.api.answers import body_of, details_of, refused_field
from tests.api.daemons import Daemon
from tests.api.fixtures import MakeDaemon

TEAMS, KEYS = "/admin/teams", "/admin/keys"
DOORS = [(method, route.path) for route in ROUTES for method in sorted((route.methods or set()) - {"HEAD"})]


def ask(daemon: Daemon, method: str, path: str, **options: Any) -> httpx.Response:
    return daemon.ask(method, path, key=daemon.operator_token, **options)


def make_team(daemon: Daemon, name: str = "blue") -> dict[str, Any]:
    return body_of(ask(daemon, "POST", TEAMS, json={"name": name}))


def test_a_team_is_made_with_a_key_that_opens_it(daemon: Daemon) -> None:
    answer = ask(daemon, "POST", TEAMS, json={"name": "blue"})
    team, key = body_of(answer)["team"], body_of(answer)["key"]
    assert answer.headers["Cache-Control"] == "no-store"
    assert (team["name"], key["name"], key["capabilities"]) == ("blue", "admin", list(PRESETS["admin"]))
    listed = body_of(daemon.ask("GET", "/v1/buckets", key=key["key"]))
    assert (listed["team_id"], listed["buckets"]) == (team["id"], [])
    daemon.make_bucket("inbox", key=key["key"])
    assert daemon.add_source(key=key["key"]) not in daemon.members(status="all")
    teams = ask(daemon, "GET", TEAMS)
    assert [each["name"] for each in body_of(teams)["teams"]] == ["default", "blue"]
    assert key["id"] not in teams.text


def test_a_team_has_a_name_of_its_own(shared: Daemon) -> None:
    before = shared.count("teams")
    for name in ("default", "team_01", "", " ", "x" * 201):
        assert refused_field(ask(shared, "POST", TEAMS, json={"name": name})) == "name", name
    details_of(ask(shared, "POST", TEAMS, json={"name": "a\u0000b"}), "invalid_json")
    assert shared.count("teams") == before


def test_a_key_is_made_for_any_team_and_judged_as_any_other(daemon: Daemon) -> None:
    team = make_team(daemon)["team"]
    for named in (team["id"], team["name"]):
        made = body_of(ask(daemon, "POST", KEYS, json={"team": named, "preset": "read"}))
        assert (made["team"], made["key"]["name"]) == (team, "operator")
        assert body_of(daemon.ask("GET", "/v1/buckets", key=made["key"]["key"]))["team_id"] == team["id"]
    keys = daemon.count("keys")
    details_of(ask(daemon, "POST", KEYS, json={"team": "green", "preset": "read"}), "not_found")
    assert refused_field(ask(daemon, "POST", KEYS, json={"team": team["id"]})) == "capabilities"
    assert refused_field(ask(daemon, "POST", KEYS, json={"preset": "read"})) == "team"
    buckets = {"team": team["id"], "preset": "read", "buckets": ["inbox"]}
    details_of(ask(daemon, "POST", KEYS, json=buckets), "bucket_not_found")
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
            details_of(ask(shared, method, path, headers=header), "origin_not_allowed")


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
    task = body_of(ask(daemon, "POST", by_id))
    assert (task["type"], task["status"], task["source_id"]) == ("store_rebuild", "queued", None)
    assert body_of(ask(daemon, "POST", by_name))["id"] == task["id"]
    key = team["key"]["key"]
    assert details_of(daemon.search("quay", key=key), "team_store_maintenance")["task_id"] == task["id"]
    assert body_of(daemon.ask("GET", f"/v1/knowledge/tasks/{task['id']}", key=key))["status"] == "queued"
    assert daemon.found("quay") == []
    details_of(ask(daemon, "POST", f"{TEAMS}/nobody/rebuild"), "not_found")
    assert daemon.count("tasks") == 1
