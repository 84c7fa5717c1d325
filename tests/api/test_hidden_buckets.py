"""No answer tells a key that is kept to some buckets the id or the slug of another one."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from svc_daemon.api.app import ENDPOINTS
from svc_daemon.api.endpoints import Endpoint
from svc_daemon.extract.cages import Extractor
from svc_daemon.store.keys import list_keys
from tests.api import aliases
from tests.api.answers import body_of
from tests.api.daemons import NOTES, Daemon, Loop
from tests.api.sessions import batch_body, path_of, put, session_body
from tests.api.sites import Receiver, Site, hosting, receiving
from tests.api.tool_callers import Caller

OPEN, HIDDEN = "open-shelf", "hidden-shelf"


@dataclass
class House:
    """A daemon with one of everything in both buckets, and a key that is kept to one of them."""

    daemon: Daemon
    hidden_id: str
    key: str = ""
    #: What stands in place of a path's parameters; several are tried one after the other.
    places: dict[str, list[str]] = field(default_factory=dict)

    def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        return self.daemon.ask(method, path, key=self.key, **options)

    def hides(self, answer: httpx.Response) -> bool:
        told = answer.text + str(answer.headers)
        return self.hidden_id not in told and HIDDEN not in told


@pytest.fixture(scope="module")
def house(loop: Loop, extractor: Extractor, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    daemon = Daemon(loop, tmp_path_factory.mktemp("house") / "data", extractor)
    daemon.start()
    try:
        with hosting() as site, receiving() as receiver:
            yield furnish(daemon, site, receiver)
    finally:
        daemon.close()


def furnish(daemon: Daemon, site: Site, receiver: Receiver) -> House:
    open_id, hidden_id = daemon.make_bucket(OPEN), daemon.make_bucket(HIDDEN)
    both = {"bucket_ids": [open_id, hidden_id]}
    house = House(daemon, hidden_id, daemon.add_key(buckets=(open_id,)))
    url = site.put("/shared.md", NOTES, "text/markdown")
    page = {"url": site.put("/shared", b"<html><body><p>The umber quay</p></body></html>"), **both}
    sources = [
        daemon.add_ready(bucket=OPEN),
        daemon.add_source(b" \n", bucket=OPEN, filename="blank.txt"),
        imported(daemon, url, receiver.url),
        str(body_of(daemon.ask("POST", aliases.PAGE, json=page), 201)["id"]),
    ]
    for source_id in sources:
        daemon.ask("POST", f"/v1/buckets/{HIDDEN}/sources", json={"source_id": source_id})
    daemon.wait_status(sources[1], "failed")
    daemon.wait_ready(sources[0], *sources[2:])
    session = body_of(daemon.ask("POST", aliases.SESSION, json=session_body() | both), 201)
    batch = body_of(daemon.ask("POST", aliases.BATCH, json=batch_body([("a", NOTES), ("b", NOTES)], **both)), 201)
    body_of(put(daemon, batch["items"][0], NOTES))
    daemon.ask("POST", f"/v1/buckets/{OPEN}/batches/{batch['batch_id']}/finalize")
    for agent_id, policy in (("wide", {"bucket_ids": [open_id, hidden_id]}), ("named", {"source_ids": sources[:1]})):
        body_of(daemon.ask("POST", "/v1/agents", json={"agent_id": agent_id, "policy": policy}), 201)
    house.places = {
        "bucket": [OPEN, open_id],
        "source_id": sources,
        "session_id": [session["session_id"]],
        "token": [path_of(session).rpartition("/")[2]],
        "batch_id": [batch["batch_id"]],
        "task_id": [daemon.source(source_id)["task"]["id"] for source_id in sources],
        "delivery_id": [daemon.ask("GET", "/v1/webhooks/deliveries").json()["deliveries"][0]["id"]],
        "agent_id": ["wide", "named", "default"],
        "model": ["svc-agent:wide"],
        "key_id": [key.id for key in daemon.read(lambda connection: list_keys(connection, daemon.team_id))],
    }
    return house


def imported(daemon: Daemon, url: str, webhook: str) -> str:
    body = {"url": url, "webhook": {"url": webhook}}
    source_id = str(body_of(daemon.ask("POST", f"/v1/buckets/{OPEN}/files/import", json=body), 201)["id"])
    arrived = {"source_id": source_id, "status": "delivered"}
    daemon.wait(
        lambda: bool(daemon.ask("GET", "/v1/webhooks/deliveries", params=arrived).json()["deliveries"]),
        "the webhook is called",
    )
    return source_id


def targets(house: House, path: str) -> list[str]:
    """The path with each of its things in place."""
    found = [path]
    for name in re.findall(r"{(\w+)}", path):
        found = [each.replace(f"{{{name}}}", place) for each in found for place in house.places[name]]
    return found


def name_of(row: Endpoint) -> str:
    return f"{row.method} {row.path}"


READS = [row for row in ENDPOINTS if row.method == "GET"]
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
    ("POST", "/v1/search", {"query": "umber quay", "agent": "svc-agent:wide"}),
    ("POST", "/v1/search", {"query": "umber quay", "agent": "svc-agent:named"}),
    ("POST", "/v1/responses", {"model": "svc-agent:wide", "input": "Where is the umber quay?"}),
    ("PUT", f"/v1/buckets/{HIDDEN}", {}),
    ("POST", "/v1/buckets", {"slug": HIDDEN}),
]


def test_no_look_tells_another_bucket(house: House) -> None:
    for row in READS:
        queries = [{}, {"status": "all"}, {"include_items": "true"}, {"verify": "provider"}, {"q": "umber quay"}]
        answers = [house.ask("GET", target, params=query) for target in targets(house, row.path) for query in queries]
        assert any(answer.is_success for answer in answers)
        assert all(map(house.hides, answers))


def test_no_call_tells_another_bucket(house: House) -> None:
    for method, path, body in CALLS:
        for target in targets(house, path):
            source_id = house.places["source_id"][0]
            sent = {name: source_id if value == "{source_id}" else value for name, value in body.items()}
            answer = house.ask(method, target, json=sent)
            told = answer.text.replace(HIDDEN, "") if HIDDEN in path + str(body) else answer.text
            assert house.hidden_id not in told, target
            assert HIDDEN not in told, target


def test_what_is_hidden_from_one_key_is_shown_to_another(house: House) -> None:
    (source_id, *_) = house.places["source_id"]
    assert house.hidden_id in house.daemon.source(source_id)["bucket_ids"]
    assert house.daemon.source(source_id, key=house.key)["bucket_ids"] == [house.places["bucket"][1]]


def test_a_detach_tells_no_other_bucket(house: House) -> None:
    source_id = house.daemon.add_source(bucket=OPEN, filename="detached.md")
    house.daemon.ask("POST", f"/v1/buckets/{HIDDEN}/sources", json={"source_id": source_id})
    answer = house.ask("DELETE", f"/v1/buckets/{OPEN}/sources/{source_id}")
    assert body_of(answer)["bucket_ids"] == []


def test_no_tool_tells_another_bucket(house: House) -> None:
    tools = Caller(house.daemon, house.key)
    for tool, arguments in (
        ("svc-list-buckets", {}),
        ("svc-source-status", {"sourceIds": house.places["source_id"]}),
        ("svc-search", {"query": "umber quay"}),
        ("svc-ask", {"question": "Where is the umber quay?"}),
    ):
        told = str(tools.call(tool, **arguments))
        assert house.hidden_id not in told, tool
        assert HIDDEN not in told, tool


def test_a_file_that_failed_for_another_bucket_does_not_name_it(house: House) -> None:
    daemon, doomed = house.daemon, house.daemon.make_bucket("doomed-shelf")
    both = {"bucket_ids": [house.places["bucket"][1], doomed]}
    batch = body_of(daemon.ask("POST", aliases.BATCH, json=batch_body([("a", NOTES)], **both)), 201)
    body_of(put(daemon, batch["items"][0], NOTES))
    daemon.ask("PATCH", f"/v1/buckets/{doomed}", json={"status": "archived"})
    daemon.ask("POST", f"/v1/buckets/{OPEN}/batches/{batch['batch_id']}/finalize")
    path = f"/v1/knowledge/batches/{batch['batch_id']}?include_items=true"
    assert "doomed-shelf" in body_of(daemon.ask("GET", path))["items"][0]["error"]["message"]
    (item,) = body_of(house.ask("GET", path))["items"]
    assert (item["error"]["code"], item["bucket_ids"]) == ("bucket_not_found", both["bucket_ids"][:1])
    assert "doomed" not in item["error"]["message"]
