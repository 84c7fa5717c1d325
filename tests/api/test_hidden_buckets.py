"""No answer shows a key that is kept to some buckets the id or the slug of another one."""

import re
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from svc_daemon.api.app import ENDPOINTS
from svc_daemon.store.keys import list_keys
from tests.api import aliases
from tests.api.answers import body_of
from tests.api.daemons import NOTES, Daemon
from tests.api.sessions import batch_body, path_of, put, session_body
from tests.api.stages import Stage
from tests.api.tool_callers import Caller

OPEN, HIDDEN = "open-shelf", "hidden-shelf"


@dataclass
class House:
    """A daemon with one of everything in both buckets, and a key that is kept to one of them."""

    daemon: Daemon
    hidden_id: str
    key: str = ""
    #: Values of a path's parameters; several are tried one after the other.
    places: dict[str, list[str]] = field(default_factory=dict)

    def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        return self.daemon.ask(method, path, key=self.key, **options)

    def hides(self, text: str) -> bool:
        return self.hidden_id not in text and HIDDEN not in text

    def targets(self, path: str) -> list[str]:
        """The path with each value of each parameter."""
        found = [path]
        for name in re.findall(r"{(\w+)}", path):
            found = [each.replace(f"{{{name}}}", place) for each in found for place in self.places[name]]
        return found


@pytest.fixture(scope="module")
def house(stage: Stage) -> House:
    daemon = stage.daemon
    open_id, hidden_id = daemon.make_bucket(OPEN), daemon.make_bucket(HIDDEN)
    both = {"bucket_ids": [open_id, hidden_id]}
    page = {"url": stage.site.put("/shared", b"<html><body><p>The umber quay</p></body></html>"), **both}
    hook = {"url": stage.file_url(), "webhook": {"url": stage.receiver.url}}
    imported = daemon.post(f"/v1/buckets/{OPEN}/files/import", 201, json=hook)["id"]
    blank = daemon.add_source(b" \n", bucket=OPEN, filename="blank.txt")
    ready = [daemon.add_ready(bucket=OPEN), imported, daemon.post(aliases.PAGE, 201, json=page)["id"]]
    sources = [ready[0], blank, *ready[1:]]
    for source_id in sources:
        daemon.ask("POST", f"/v1/buckets/{HIDDEN}/sources", json={"source_id": source_id})
    daemon.wait_status(blank, "failed")
    daemon.wait_ready(*ready)
    daemon.wait(lambda: bool(daemon.show("/v1/webhooks/deliveries", status="delivered")["deliveries"]), "it is called")
    session = daemon.post(aliases.SESSION, 201, json=session_body() | both)
    batch = daemon.post(aliases.BATCH, 201, json=batch_body([("a", NOTES), ("b", NOTES)], **both))
    body_of(put(daemon, batch["items"][0], NOTES))
    daemon.ask("POST", f"/v1/buckets/{OPEN}/batches/{batch['batch_id']}/finalize")
    for agent_id, policy in (("wide", both), ("named", {"source_ids": sources[:1]})):
        daemon.post("/v1/agents", 201, json={"agent_id": agent_id, "policy": policy})
    places = {
        "bucket": [OPEN, open_id],
        "source_id": sources,
        "session_id": [session["session_id"]],
        "token": [path_of(session).rpartition("/")[2]],
        "batch_id": [batch["batch_id"]],
        "task_id": [daemon.source(source_id)["task"]["id"] for source_id in sources],
        "delivery_id": [daemon.show("/v1/webhooks/deliveries")["deliveries"][0]["id"]],
        "agent_id": ["wide", "named", "default"],
        "model": ["svc-agent:wide"],
        "key_id": [key.id for key in daemon.read(lambda connection: list_keys(connection, daemon.team_id))],
    }
    return House(daemon, hidden_id, daemon.add_key(buckets=(open_id,)), places)


#: What changes something that both buckets have, and what is asked of a whole scope.
CALLS: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "/v1/sources/{source_id}/retry", {}),
    ("POST", "/v1/sources/{source_id}/refresh", {}),
    ("PATCH", "/v1/sources/{source_id}", {"title": "x"}),
    ("DELETE", "/v1/sources/{source_id}", {}),
    ("POST", "/v1/buckets/{bucket}/sources", {"source_id": "{source_id}"}),
    ("POST", "/v1/buckets/{bucket}/uploads/{session_id}/finalize", {}),
    ("POST", "/v1/buckets/{bucket}/batches/{batch_id}/finalize", {}),
    ("DELETE", "/v1/buckets/{bucket}/uploads/{session_id}", {}),
    ("POST", "/v1/webhooks/deliveries/{delivery_id}/resend", {}),
    ("PUT", "/v1/agents/{agent_id}", {"role": "x"}),
    ("POST", "/v1/search", {"query": "umber quay", "explain": True}),
    *(("POST", "/v1/search", {"query": "umber quay", "agent": f"svc-agent:{each}"}) for each in ("wide", "named")),
    ("POST", "/v1/responses", {"model": "svc-agent:wide", "input": "Where is the umber quay?"}),
    ("PUT", f"/v1/buckets/{HIDDEN}", {}),
    ("POST", "/v1/buckets", {"slug": HIDDEN}),
]


def test_no_read_shows_another_bucket(house: House) -> None:
    queries = [{}, {"status": "all"}, {"include_items": "true"}, {"verify": "provider"}, {"q": "umber quay"}]
    queries.append({"ids": ",".join(house.places["source_id"])})
    for row in [row for row in ENDPOINTS if row.method == "GET"]:
        answers = [house.ask("GET", target, params=query) for target in house.targets(row.path) for query in queries]
        assert any(answer.is_success for answer in answers), row.path
        assert all(house.hides(answer.text + str(answer.headers)) for answer in answers), row.path


def test_no_call_shows_another_bucket(house: House) -> None:
    source_id = house.places["source_id"][0]
    for method, path, body in CALLS:
        sent = {name: source_id if value == "{source_id}" else value for name, value in body.items()}
        for target in house.targets(path):
            text = house.ask(method, target, json=sent).text
            assert house.hides(text.replace(HIDDEN, "") if HIDDEN in path + str(body) else text), target


def test_what_is_hidden_from_one_key_is_shown_to_another(house: House) -> None:
    source_id = house.places["source_id"][0]
    assert house.hidden_id in house.daemon.source(source_id)["bucket_ids"]
    assert house.daemon.source(source_id, key=house.key)["bucket_ids"] == [house.places["bucket"][1]]
    detached = house.daemon.add_source(bucket=OPEN, filename="detached.md")
    house.daemon.ask("POST", f"/v1/buckets/{HIDDEN}/sources", json={"source_id": detached})
    assert body_of(house.ask("DELETE", f"/v1/buckets/{OPEN}/sources/{detached}"))["bucket_ids"] == []


def test_no_tool_shows_another_bucket(house: House) -> None:
    tools = Caller(house.daemon, house.key)
    for tool, arguments in (
        ("svc-list-buckets", {}),
        ("svc-source-status", {"sourceIds": house.places["source_id"]}),
        ("svc-search", {"query": "umber quay"}),
        ("svc-ask", {"question": "Where is the umber quay?"}),
    ):
        assert house.hides(str(tools.call(tool, **arguments))), tool


def test_a_file_that_failed_for_another_bucket_does_not_name_it(house: House) -> None:
    daemon, doomed = house.daemon, house.daemon.make_bucket("doomed-shelf")
    both = {"bucket_ids": [house.places["bucket"][1], doomed]}
    batch = daemon.post(aliases.BATCH, 201, json=batch_body([("a", NOTES)], **both))
    body_of(put(daemon, batch["items"][0], NOTES))
    daemon.patch(f"/v1/buckets/{doomed}", status="archived")
    daemon.ask("POST", f"/v1/buckets/{OPEN}/batches/{batch['batch_id']}/finalize")
    path = f"/v1/knowledge/batches/{batch['batch_id']}?include_items=true"
    assert "doomed-shelf" in daemon.show(path)["items"][0]["error"]["message"]
    (item,) = body_of(house.ask("GET", path))["items"]
    assert (item["error"]["code"], item["bucket_ids"]) == ("bucket_not_found", both["bucket_ids"][:1])
    assert "doomed" not in item["error"]["message"]
