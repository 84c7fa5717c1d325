"""The operator's door: teams and their keys, for whoever holds the token, on this machine, in no browser."""

from typing import Any
from urllib.parse import quote

import httpx
import pytest

from svc_daemon.api.admin import ROUTES
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
    made = ask(daemon, "POST", TEAMS, json={"name": "blue"})
    team, key = body_of(made)["team"], body_of(made)["key"]
    assert made.headers["Cache-Control"] == "no-store"
    assert (team["name"], key["name"], key["capabilities"]) == ("blue", "admin", list(PRESETS["admin"]))
    told = body_of(daemon.ask("GET", "/v1/buckets", key=key["key"]))
    assert (told["team_id"], told["buckets"]) == (team["id"], [])
    daemon.make_bucket("inbox", key=key["key"])
    assert daemon.add_source(key=key["key"]) not in daemon.members(status="all")


def test_teams_are_listed_without_their_keys(daemon: Daemon) -> None:
    made = make_team(daemon)
    told = ask(daemon, "GET", TEAMS)
    assert [team["name"] for team in body_of(told)["teams"]] == ["default", "blue"]
    assert made["key"]["id"] not in told.text


@pytest.mark.parametrize("name", ["default", "team_01", "", " ", "a\u0000b", "x" * 201])
def test_a_team_has_a_name_of_its_own(daemon: Daemon, name: str) -> None:
    answer = ask(daemon, "POST", TEAMS, json={"name": name})
    if "\u0000" in name:
        details_of(answer, "invalid_json")
    else:
        assert refused_field(answer) == "name"
    assert daemon.count("teams") == 1


@pytest.mark.parametrize("by", ["id", "name"])
def test_a_key_is_made_for_any_team(daemon: Daemon, by: str) -> None:
    team = make_team(daemon)["team"]
    told = body_of(ask(daemon, "POST", KEYS, json={"team": team[by], "preset": "read"}))
    assert (told["team"], told["key"]["name"]) == (team, "operator")
    assert body_of(daemon.ask("GET", "/v1/buckets", key=told["key"]["key"]))["team_id"] == team["id"]


def test_it_is_judged_as_any_other_key(daemon: Daemon) -> None:
    team = make_team(daemon)["team"]["id"]
    details_of(ask(daemon, "POST", KEYS, json={"team": "green", "preset": "read"}), "not_found")
    assert refused_field(ask(daemon, "POST", KEYS, json={"team": team})) == "capabilities"
    assert refused_field(ask(daemon, "POST", KEYS, json={"preset": "read"})) == "team"
    buckets = {"team": team, "preset": "read", "buckets": ["inbox"]}
    details_of(ask(daemon, "POST", KEYS, json=buckets), "bucket_not_found")
    assert daemon.count("keys") == 2


def test_every_door_is_tried_below() -> None:
    assert {("POST", TEAMS), ("GET", TEAMS), ("POST", KEYS)} <= set(DOORS)


def test_nobody_without_the_token_comes_in(shared: Daemon) -> None:
    for method, path in DOORS:
        token = shared.operator_token
        for wrong in ("", shared.key, token[:-1], token + "0", token.upper(), "0" * len(token)):
            details_of(shared.ask(method, path, key=wrong), "invalid_project_key")
        for scheme in ("Basic", "Token", ""):
            header = {"Authorization": f"{scheme} {token}".strip()}
            details_of(shared.ask(method, path, key="", headers=header), "invalid_project_key")
        details_of(shared.ask("GET", "/v1/buckets", key=token), "invalid_project_key")


def test_no_page_comes_in_even_one_that_may_drive_the_api(shared: Daemon) -> None:
    for method, path in DOORS:
        for header in ({"Origin": "http://127.0.0.1"}, {"Origin": "null"}, {"Sec-Fetch-Site": "same-origin"}):
            details_of(shared.ask(method, path, key=shared.operator_token, headers=header), "origin_not_allowed")


ADDRESSES = [
    ("127.0.0.1", True),
    ("127.8.8.8", True),
    ("::1", True),
    ("::ffff:127.0.0.1", True),
    ("10.0.0.7", False),
    ("203.0.113.9", False),
    ("::ffff:203.0.113.9", False),
    ("fe80::1", False),
    ("unix", False),
]


@pytest.mark.parametrize(("address", "comes_in"), ADDRESSES)
def test_only_this_machine_comes_in(shared: Daemon, address: str, comes_in: bool) -> None:
    async def get() -> httpx.Response:
        transport = httpx.ASGITransport(shared.app, raise_app_exceptions=False, client=(address, 5000))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.get(TEAMS, headers={"Authorization": f"Bearer {shared.operator_token}"})

    answer = shared.loop.run(get())
    if comes_in:
        body_of(answer)
    else:
        details_of(answer, "not_found")


def test_what_is_not_there_is_told_as_anywhere(shared: Daemon) -> None:
    details_of(shared.ask("DELETE", TEAMS), "method_not_allowed")
    details_of(shared.ask("GET", "/admin"), "not_found")
    details_of(shared.ask("GET", "/admin/teams/"), "not_found")


def test_the_token_is_for_its_user_alone_and_for_one_run(make_daemon: MakeDaemon) -> None:
    first = make_daemon()
    path = first.files.operator_token
    assert (path.stat().st_mode & 0o777, path.read_text().strip()) == (0o600, first.operator_token)
    first.close()
    path.write_text("damaged")
    second = make_daemon()
    assert second.operator_token == path.read_text().strip() != first.operator_token
    details_of(second.ask("GET", TEAMS, key=first.operator_token), "invalid_project_key")


@pytest.mark.parametrize("by", ["id", "name"])
def test_a_teams_index_is_made_anew_on_demand(daemon: Daemon, by: str) -> None:
    team = make_team(daemon, "blue/green")
    path = f"{TEAMS}/{quote(team['team'][by], safe='')}/rebuild"
    task = body_of(ask(daemon, "POST", path))
    assert (task["type"], task["status"], task["source_id"]) == ("store_rebuild", "queued", None)
    assert body_of(ask(daemon, "POST", path))["id"] == task["id"]
    key = team["key"]["key"]
    assert details_of(daemon.search("quay", key=key), "team_store_maintenance")["task_id"] == task["id"]
    assert body_of(daemon.ask("GET", f"/v1/knowledge/tasks/{task['id']}", key=key))["status"] == "queued"
    assert daemon.found("quay") == []


def test_the_index_of_no_team_is_not_made(daemon: Daemon) -> None:
    details_of(ask(daemon, "POST", f"{TEAMS}/nobody/rebuild"), "not_found")
    assert daemon.count("tasks") == 0
