"""No answer shows a key that is kept to some buckets the id or the slug of another one, or an id of what is in it."""

import re
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from starlette.requests import Request

from svc_daemon.api.app import ENDPOINTS
from svc_daemon.api.handlers.events import follow
from svc_daemon.core.access import api_keys
from svc_daemon.operations.shared.authorization import authenticate
from svc_daemon.operations.shared.events import find_start
from svc_daemon.store.rows.events import START, EventFilter
from svc_daemon.store.rows.keys import list_keys
from tests.api import aliases
from tests.api.answers import body_of, details_of
from tests.api.daemons import NOTES, Daemon
from tests.api.sessions import ask_finalize, batch_body, open_batch, open_session, path_of, put, session_body
from tests.api.sites import PAGE
from tests.api.stages import Stage
from tests.api.tool_callers import Caller

OPEN, HIDDEN = "open-shelf", "hidden-shelf"


@dataclass
class House:
    """A daemon with one of everything in both buckets, and a key that is kept to one of them."""

    daemon: Daemon
    hidden_id: str
    key: str = ""
    #: Ids of what is in the hidden bucket alone, or was.
    hidden: set[str] = field(default_factory=set)
    #: Values of a path's parameters; several are tried one after the other.
    places: dict[str, list[str]] = field(default_factory=dict)

    def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        return self.daemon.ask(method, path, key=self.key, **options)

    def hides(self, text: str) -> bool:
        return not any(each in text for each in (self.hidden_id, HIDDEN, *self.hidden))

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
    hidden = fill_hidden(stage, open_id)
    places["source_id"].append(str(daemon.show(f"/v1/buckets/{OPEN}/sources", title="late.md")["sources"][0]["id"]))
    return House(daemon, hidden_id, daemon.add_key(buckets=(open_id,)), hidden, places)


def fill_hidden(stage: Stage, open_id: str) -> set[str]:
    """Put one of everything into the hidden bucket alone, and return the ids."""
    daemon, path = stage.daemon, f"/v1/buckets/{HIDDEN}"
    body = {"url": stage.file_url(), "webhook": {"url": stage.receiver.url}}
    old, gone = daemon.add_ready(bucket=HIDDEN, filename="old.md"), daemon.add_ready(bucket=HIDDEN, filename="gone.md")
    hooked, session = daemon.post(f"{path}/files/import", 201, json=body)["id"], open_session(daemon, bucket=HIDDEN)
    daemon.wait_ready(hooked)
    page = daemon.post(f"{path}/pages", 201, json={"url": stage.site.put("/hidden", PAGE)})["id"]
    for agent_id, policy in (("hidden", {"bucket_ids": [HIDDEN]}), ("gone", {"source_ids": [gone, old]})):
        daemon.post("/v1/agents", 201, json={"agent_id": agent_id, "policy": policy})
    tasks = [daemon.source(source_id)["task"]["id"] for source_id in (old, gone, hooked, page)]
    daemon.delete(f"/v1/sources/{gone}", force="true")
    # A source came into the open bucket later than its batch, and another one replaces a hidden source there too.
    batch = open_batch(daemon, [("late", NOTES)], bucket=HIDDEN)
    put(daemon, batch["by_id"]["late"], NOTES)
    (made,) = body_of(ask_finalize(daemon, batch, bucket=HIDDEN))["finalized"]
    daemon.post(f"/v1/buckets/{OPEN}/sources", json={"source_id": made["knowledge_id"]})
    daemon.patch(f"/v1/sources/{made['knowledge_id']}", title="late.md")
    blank = session_body(b" \n", filename="blank.txt", replaces=old) | {"bucket_slugs": [OPEN, HIDDEN]}
    sent = daemon.post(aliases.SESSION, 201, json=blank)
    put(daemon, sent, b" \n")
    replacing = daemon.post(f"/v1/buckets/{OPEN}/uploads/{sent['session_id']}/finalize", 201)["id"]
    daemon.wait_status(replacing, "failed")
    daemon.wait_ready(made["knowledge_id"], page)
    events = [
        each["id"] for each in daemon.show("/v1/events")["data"] if open_id not in (each["bucket_ids"] or [open_id])
    ]
    return {old, gone, hooked, page, *tasks, batch["batch_id"], session["session_id"], *events}


#: What changes something that both buckets have, and what is asked of a whole scope.
CALLS: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "/v1/sources/{source_id}/retry", {}),
    ("POST", "/v1/sources/{source_id}/refresh", {}),
    ("POST", "/v1/buckets/{bucket}/retry", {"status": "failed"}),
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


#: What is asked of the reads that take more than the path.
QUERIES: dict[str, list[dict[str, str]]] = {
    "/v1/buckets/{bucket}/sources": [
        {"status": "all"},
        {"status": "all", "limit": "2"},
        {"status": "all", "limit": "2", "sort": "-updated_at"},
        {"group_by": "error_code"},
    ],
    "/v1/knowledge/batches/{batch_id}": [{"include_items": "true"}],
    "/v1/sources/{source_id}": [{}, {"verify": "provider"}],
    "/v1/search": [{"q": "umber quay"}],
    "/v1/events": [{}, {"limit": "3"}, {"after": "latest"}],
    **{path: [{}, {"limit": "1"}] for path in ("/v1/buckets", "/v1/agents", "/v1/webhooks/deliveries")},
}
#: What no key sees that is kept to some buckets.
TEAM_ONLY = "/v1/webhooks/secret"


@pytest.mark.rule("auth.other-bucket", "auth.other-ids")
@pytest.mark.parametrize(
    "capabilities",
    [*api_keys.PRESETS.values(), *((each,) for each in api_keys.CAPABILITIES)],
    ids=[*api_keys.PRESETS, *api_keys.CAPABILITIES],
)
def test_no_read_shows_another_bucket(house: House, capabilities: tuple[str, ...]) -> None:
    key = house.daemon.add_key(*capabilities, buckets=(house.places["bucket"][1],))
    looked_up = {"/v1/sources": [{"ids": ",".join(house.places["source_id"])}]}
    for path in [row.path for row in ENDPOINTS if row.method == "GET"]:
        queries = (QUERIES | looked_up).get(path, [{}])
        targets = [(target, query) for target in house.targets(path) for query in queries]
        answers = [house.daemon.ask("GET", target, key=key, params=query) for target, query in targets]
        if capabilities == api_keys.CAPABILITIES:
            assert any(answer.is_success for answer in answers) is (path != TEAM_ONLY), path
        for answer in answers:
            assert house.hides(answer.text + str(answer.headers)), (path, answer.text)


@pytest.mark.rule("auth.other-ids", "buckets.list")
@pytest.mark.parametrize("is_limited", [True, False])
@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/v1/buckets", "buckets"),
        ("/v1/agents", "agents"),
        ("/v1/keys", "keys"),
        ("/v1/events", "data"),
        (f"/v1/buckets/{OPEN}/sources", "sources"),
        ("/v1/webhooks/deliveries", "deliveries"),
    ],
)
def test_pages_of_a_list_are_the_list_and_show_nothing_of_another_bucket(
    house: House, path: str, name: str, is_limited: bool
) -> None:
    """The last id of each page is one that the key may see, or opaque."""
    key = house.key if is_limited else None
    whole = house.daemon.show(path, key=key)
    assert name == "data" or not {"has_more", "last_id"} & set(whole)
    seen: list[Any] = []
    after, has_more = "", True
    while has_more:
        page = house.daemon.show(path, key=key, limit="1", after=after)
        assert not is_limited or house.hides(str(page))
        assert len(page[name]) <= 1
        seen += page[name]
        after, has_more = page["last_id"], page["has_more"]
    assert seen == whole[name]


@pytest.mark.rule("auth.other-ids")
def test_a_stream_shows_nothing_of_another_bucket(house: House) -> None:
    key = authenticate(house.daemon.context, f"Bearer {house.key}")
    request = Request({"type": "http", "app": house.daemon.app})
    last_id, _ = find_start(house.daemon.context, key, "latest")

    async def take() -> bytes:
        chosen = EventFilter(reachable=frozenset(key.buckets or ()))
        async with aclosing(follow(request, key, chosen, START, last_id)) as stream:
            return b"".join([await anext(stream), await anext(stream)])

    sent = house.daemon.loop.run(take()).decode()
    assert (sent.startswith("id: cur_"), sent.count("event: source.ready") > 2, house.hides(sent)) == (True,) * 3


@pytest.mark.rule("auth.other-ids")
def test_no_error_shows_what_is_in_another_bucket(house: House) -> None:
    daemon, hidden = house.daemon, house.daemon.show(f"/v1/buckets/{HIDDEN}/sources")["sources"]
    pages = [each for each in hidden if each["type"] == "page"]
    for page, known in ((pages[-1], {}), (pages[0], {"source_id": pages[0]["id"]})):
        refused = house.ask("POST", f"/v1/buckets/{OPEN}/pages", json={"url": page["source_url"]})
        assert details_of(refused, "website_url_exists") == known
        assert house.hides(refused.text)
    moved = daemon.add_ready(bucket=OPEN, filename="moved.md")
    daemon.post(f"/v1/buckets/{HIDDEN}/sources", json={"source_id": moved})
    daemon.delete(f"/v1/buckets/{OPEN}/sources/{moved}")
    first = daemon.add_ready(bucket=OPEN, filename="first.md")
    second = daemon.add_ready(b"Second.\n", bucket=OPEN, filename="second.md", replaces=first)
    daemon.wait(lambda: daemon.ask("GET", f"/v1/sources/{first}").status_code == 404, "it is replaced")
    seen = details_of(house.ask("GET", f"/v1/sources/{first}"), "source_not_found")
    assert seen == {"replaced_by": second}
    daemon.post(f"/v1/buckets/{HIDDEN}/sources", json={"source_id": second})
    daemon.delete(f"/v1/buckets/{OPEN}/sources/{second}")
    assert details_of(daemon.ask("GET", f"/v1/sources/{first}"), "source_not_found") == {"replaced_by": second}
    assert details_of(house.ask("GET", f"/v1/sources/{first}"), "source_not_found") == {}
    looked_up = body_of(house.ask("GET", "/v1/sources", params={"ids": first}))
    assert (looked_up["missing"], looked_up["replaced_by"]) == ([first], {})
    (old,) = (each["id"] for each in hidden if each["title"] == "old.md")
    for replaced in (moved, old, "src_unknown"):
        body = {"question": "Where?", "answer": "There.", "replaces": replaced}
        refused = house.ask("POST", f"/v1/buckets/{OPEN}/qa", json=body)
        assert details_of(refused, "source_not_found") == {}
        assert refused.json()["error"]["message"] == f"There is no source {replaced!r}."


@pytest.mark.rule("auth.webhook-secret")
@pytest.mark.parametrize(("method", "path"), [("GET", TEAM_ONLY), ("POST", f"{TEAM_ONLY}/rotate")])
def test_a_limited_key_neither_reads_nor_rotates_the_webhook_secret(house: House, method: str, path: str) -> None:
    before = house.daemon.show(TEAM_ONLY)["secret"]
    details = details_of(house.ask(method, path), "forbidden_project_key")
    assert details == {"required_capability": api_keys.WEBHOOK_MANAGE}
    assert house.daemon.show(TEAM_ONLY)["secret"] == before


@pytest.mark.rule("auth.other-bucket")
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


@pytest.mark.rule("auth.other-bucket")
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


@pytest.mark.index_files  # Milvus suggests no words
def test_a_limited_key_does_not_learn_which_words_stand_in_other_buckets(working: Daemon) -> None:
    working.make_bucket("secret")
    key = working.add_key(buckets=(working.show("/v1/buckets/inbox")["id"],))

    def look() -> Any:
        searched = [
            working.show("/v1/search", key=key, q=words) for words in ("merger horses", "merger", "hrses", "horses hay")
        ]
        asked = {"model": "svc-agent", "input": "When do the horses eat before the merger?"}
        answer = body_of(working.ask("POST", "/v1/responses", key=key, json=asked))
        pages = [
            (page["suggestions"], page["warnings"], [(hit["score"], hit["chunk_id"]) for hit in page["data"]])
            for page in searched
        ]
        shown = ("grounded", "unmatched", "related", "warnings")
        return pages, answer["output"][0]["content"][0]["text"], [answer[name] for name in shown]

    working.upload(b"The horses eat hay at noon.", filename="a.md")
    working.upload(b"The cows eat grass in the evening, and hay in winter.", filename="b.md")
    working.wait_ready(*working.members(status="all"))
    before = look()
    assert before[0][2][0] == [{"word": "hrses", "instead": "horses"}]
    for number in range(8):
        text = f"The merger and hrses of plan {number} are near horses."
        working.upload(text.encode(), filename=f"{number}.md", bucket="secret")
    working.wait_ready(*working.members("secret", status="all"))
    assert look() == before
