"""Isolation of teams: every id of another team is refused as not found, and no list has anything of another team."""

import re
from dataclasses import dataclass
from typing import Any

import pytest

from svc_daemon.api.app import ENDPOINTS
from svc_daemon.api.endpoints import Endpoint
from svc_daemon.store.rows.webhook_deliveries import DeliveryRow, create_delivery
from tests.api.answers import body_of, details_of
from tests.api.daemons import NOTES, Daemon
from tests.api.examples import name_of
from tests.api.sessions import batch_body, open_batch, open_session, session_body

#: The error code for an unknown id in each path parameter.
NAMED = ("bucket", "source", "session", "batch", "task", "key", "agent")
MISSING = {name if name == "bucket" else f"{name}_id": f"{name}_not_found" for name in NAMED}
MISSING |= {"delivery_id": "not_found", "model": "agent_not_found"}
B, S = "/v1/buckets/{bucket}", "/v1/sources/{source_id}"
QA = {"question": "q?", "answer": "a"}
#: Valid requests for the routes that validate the body before they look up the id.
BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("PATCH", B): {"json": {"name": "x"}},
    ("DELETE", B): {"params": {"force": "true"}},
    ("POST", f"{B}/files"): {"files": {"file": ("a.md", NOTES)}},
    ("POST", f"{B}/files/import"): {"json": {"url": "http://127.0.0.1:9/a.md"}},
    ("POST", f"{B}/pages"): {"json": {"url": "http://127.0.0.1:9/"}},
    ("POST", f"{B}/qa"): {"json": QA},
    ("POST", f"{B}/uploads"): {"json": session_body()},
    ("POST", f"{B}/batches"): {"json": batch_body([("a", NOTES)])},
    ("POST", f"{B}/batches/{{batch_id}}/finalize"): {"json": {}},
    ("POST", f"{B}/sources"): {"json": {"source_id": "src_any"}},
    ("POST", f"{B}/retry"): {"json": {"status": "failed"}},
    ("POST", f"{B}/vectors"): {"json": {"model": "any@1", "vectors": []}},
    ("PATCH", S): {"json": {"title": "x"}},
    ("PUT", "/v1/agents/{agent_id}"): {"json": {"role": "x"}},
}
#: Routes whose path has a slug or an id of the caller's own to create instead of an id to look up.
SLUGS = {("PUT", B), ("PUT", "/v1/watchers/{watcher_id}")}


@dataclass(frozen=True, slots=True)
class TwoTeams:
    """A daemon with two teams: the ids of the first team's objects, and the admin key of the second team."""

    daemon: Daemon
    ids: dict[str, str]
    key: str


@pytest.fixture(scope="module")
def two_teams(shared: Daemon) -> TwoTeams:
    daemon, bucket, source = shared, shared.make_bucket(), body_of(shared.upload(), 201)
    agent = daemon.post("/v1/agents", 201, json={"agent_id": "ours-alone"})
    ids = {"bucket": bucket, "source_id": source["id"], "task_id": source["task"]["id"]}
    ids |= {"session_id": open_session(daemon)["session_id"], "delivery_id": _add_delivery(daemon, source["id"])}
    ids |= {"batch_id": open_batch(daemon, [("a", NOTES)])["batch_id"], "agent_id": agent["id"]}
    ids |= {"model": "svc-agent:ours-alone", "key_id": daemon.show("/v1/keys")["keys"][0]["id"]}
    return TwoTeams(daemon, ids, daemon.add_team())


def _add_delivery(daemon: Daemon, source_id: str) -> str:
    now = daemon.context.clock.timestamp()
    ours: dict[str, Any] = {"id": "evt_ours", "team_id": daemon.team_id, "source_id": source_id, "body": "{}"}
    delivery = DeliveryRow(**ours, event="source.ready", url="http://127.0.0.1:9/", due_at=now, created_at=now)
    daemon.write(lambda connection: create_delivery(connection, delivery))
    return delivery.id


def parameters_of(row: Endpoint) -> list[str]:
    return re.findall(r"{(\w+)}", row.path)


WITH_IDS = [row for row in ENDPOINTS if row.keyed and parameters_of(row) and (row.method, row.path) not in SLUGS]


#: What every key of the team may see, whatever its buckets are.
OF_THE_TEAM = {"agent_id", "model", "key_id"}
IN_BUCKETS = [row for row in WITH_IDS if not OF_THE_TEAM & set(parameters_of(row))]
STRANGERS = [*(("team", row) for row in WITH_IDS), *(("bucket", row) for row in IN_BUCKETS)]


@pytest.fixture(scope="module")
def stranger(two_teams: TwoTeams, request: pytest.FixtureRequest) -> tuple[str, str]:
    """A key of another team, or one that is kept to another bucket; and its bucket."""
    daemon = two_teams.daemon
    if request.param == "team":
        return two_teams.key, daemon.make_bucket("own", key=two_teams.key)
    bucket = daemon.make_bucket("kept-to")
    return daemon.add_key(buckets=(bucket,)), bucket


@pytest.mark.rule("auth.other-team")
@pytest.mark.parametrize(
    ("stranger", "row"), STRANGERS, ids=[f"{kind} {name_of(row)}" for kind, row in STRANGERS], indirect=["stranger"]
)
def test_id_of_another_team_or_bucket_in_a_path_is_as_if_missing(
    two_teams: TwoTeams, stranger: tuple[str, str], row: Endpoint
) -> None:
    key, bucket = stranger
    names, options = parameters_of(row), BODIES.get((row.method, row.path), {})

    def refused(ids: dict[str, str], *named: str) -> str:
        answer = two_teams.daemon.ask(row.method, row.path.format(**ids), key=key, **options)
        code = answer.json()["error"]["code"]
        assert code in {MISSING[name] for name in named}
        details_of(answer, code)
        return re.sub("|".join([r"req_\w+", *ids.values()]), "ID", answer.text)

    missing = {name: f"{value[:-6]}zzzzzz" for name, value in two_teams.ids.items()}
    assert refused(two_teams.ids, *names) == refused(missing, *names)
    if len(names) > 1:
        refused(two_teams.ids | {"bucket": bucket}, names[1])


@pytest.mark.parametrize("row", [row for row in WITH_IDS if row.method == "GET"], ids=name_of)
def test_id_is_found_by_its_owner(two_teams: TwoTeams, row: Endpoint) -> None:
    answer = two_teams.daemon.ask("GET", row.path.format(**two_teams.ids))
    assert answer.status_code == 200 or answer.json()["error"]["code"] == "bucket_store_indexing_pending"


def test_every_kind_of_id_is_tried() -> None:
    assert {name for row in WITH_IDS for name in parameters_of(row)} == set(MISSING)


IN_BODIES: list[tuple[str, dict[str, Any], str]] = [
    (f"{B}/sources", {"json": {"source_id": "{source_id}"}}, "source_not_found"),
    (f"{B}/files", {"files": {"file": ("a.md", NOTES)}, "data": {"replaces": "{source_id}"}}, "source_not_found"),
    (f"{B}/qa", {"json": QA | {"replaces": "{source_id}"}}, "source_not_found"),
    (f"{B}/uploads", {"json": session_body(replaces="{source_id}")}, "source_not_found"),
    ("/v1/search", {"json": {"query": "quay", "buckets": ["{bucket}"]}}, "bucket_not_found"),
    ("/v1/search", {"json": {"query": "quay", "agent": "{model}"}}, "agent_not_found"),
    ("/v1/agents", {"json": {"policy": {"bucket_ids": ["{bucket}"]}}}, "invalid_agent_profile"),
    ("/v1/agents", {"json": {"policy": {"source_ids": ["{source_id}"]}}}, "invalid_agent_profile"),
    ("/v1/keys", {"json": {"name": "k", "preset": "read", "buckets": ["{bucket}"]}}, "bucket_not_found"),
]


@pytest.mark.parametrize(
    ("stranger", "path", "options", "code"),
    [(kind, *row) for kind in ("team", "bucket") for row in IN_BODIES if kind == "team" or "{model}" not in str(row)],
    indirect=["stranger"],
)
def test_id_of_another_team_or_bucket_in_a_body_is_refused(
    two_teams: TwoTeams, stranger: tuple[str, str], path: str, options: dict[str, Any], code: str
) -> None:
    key, bucket = stranger
    named = {name: _filled(value, two_teams.ids) for name, value in options.items()}
    details_of(two_teams.daemon.ask("POST", path.format(bucket=bucket), key=key, **named), code)


def _filled(value: Any, ids: dict[str, str]) -> Any:
    """Return the value with its placeholders replaced by ids."""
    if isinstance(value, dict):
        return {name: _filled(each, ids) for name, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, ids) for each in value]
    return value.format(**ids) if isinstance(value, str) else value


LISTS = [row for row in ENDPOINTS if row.keyed and row.method == "GET" and not parameters_of(row)]


@pytest.mark.rule("buckets.list")
def test_no_list_has_an_id_of_another_team(two_teams: TwoTeams) -> None:
    for row in LISTS:
        text = two_teams.daemon.ask("GET", row.path, key=two_teams.key, params={"q": "quay"}).text
        assert not any(each in text for each in (*two_teams.ids.values(), two_teams.daemon.team_id)), row
