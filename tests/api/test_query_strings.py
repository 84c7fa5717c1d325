"""Query strings: flags without a value are true, and a parameter that is sent twice is a list or refused."""

from typing import Any
from urllib.parse import quote

import pytest

from tests.api.answers import refused_field
from tests.api.daemons import Daemon


@pytest.mark.parametrize("query", ["?dry_run", "?dry_run=", "?dry_run=1", "?dry_run=true"])
def test_a_flag_without_a_value_is_true_so_that_nothing_is_made_or_deleted(daemon: Daemon, query: str) -> None:
    daemon.make_bucket("kept")
    assert "dry run" in daemon.ask("DELETE", f"/v1/buckets/kept{query}").text
    assert daemon.show("/v1/buckets/kept")["status"] == "active"
    assert daemon.post(f"/v1/buckets{query}", json={"slug": "planned"})["dry_run"] is True
    assert daemon.ask("GET", "/v1/buckets/planned").status_code == 404


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/v1/buckets?include_archived=1&include_archived=0", "include_archived"),
        ("/v1/buckets?limit=1&limit=2", "limit"),
        ("/v1/buckets/inbox/sources?status=all&status=failed", "status"),
        ("/v1/buckets/inbox/sources?after=a&after=b", "after"),
        ("/v1/buckets/inbox?members&members=false", "members"),
        ("/v1/events?key=a&key=b", "key"),
        ("/v1/webhooks/deliveries?status=pending&status=delivered", "status"),
        ("/v1/version?verify=writing&verify=writing", "verify"),
        ("/healthz?nonce=aaaaaaaaaaaaaaaa&nonce=bbbbbbbbbbbbbbbb", "nonce"),
    ],
    ids=lambda text: text if text.startswith("/") else "",
)
def test_a_parameter_that_takes_one_value_is_refused_if_it_is_sent_twice(shared: Daemon, path: str, field: str) -> None:
    assert refused_field(shared.ask("GET", path)) == field


@pytest.mark.parametrize("name", ["type", "source_id", "buckets"])
@pytest.mark.parametrize("path", ["/v1/events", "/v1/webhooks/deliveries", "/v1/buckets/inbox/sources"])
def test_lists_with_filters_refuse_parameters_that_they_do_not_know(shared: Daemon, path: str, name: str) -> None:
    known = {"/v1/buckets/inbox/sources": {"type"}, "/v1/webhooks/deliveries": {"source_id"}}.get(path, set())
    if name in known:
        name += "s"
    streamed = shared.ask("GET", path, params={name: "x"}, headers={"Accept": "text/event-stream"})
    assert refused_field(streamed) == refused_field(shared.ask("GET", path, params={name: "x"})) == name


@pytest.mark.parametrize("path", ["/v1/buckets", "/v1/buckets/inbox/sources", "/v1/keys", "/v1/webhooks/deliveries"])
def test_what_is_no_id_of_the_list_is_refused_as_the_end_of_a_page(shared: Daemon, path: str) -> None:
    for after in ("zzz", "notes.md", "evt" if path.endswith("deliveries") else "evt_01"):
        assert refused_field(shared.ask("GET", path, params={"after": after})) == "after"


@pytest.mark.rule("webhook.urls")
@pytest.mark.parametrize(
    "door", ["files", "uploads", "batches", "qa", "uploads/upl_x/finalize", "batches/bat_x/finalize"]
)
def test_a_webhook_in_the_query_of_an_upload_is_refused(shared: Daemon, door: str) -> None:
    options: dict[str, Any] = {"files": {"file": ("a.md", b"x")}} if door == "files" else {"json": {}}
    answer = shared.ask("POST", f"/v1/buckets/inbox/{door}?webhook=http://x.example", **options)
    assert refused_field(answer) == "webhook"


@pytest.mark.parametrize("name", ["agents", "agent_ids", "agentName", "models"])
def test_agents_are_no_agent_and_are_refused(shared: Daemon, name: str) -> None:
    for answer in (shared.ask("GET", f"/v1/search?q=quay&{name}=svc-agent"), shared.search("quay", **{name: ["a"]})):
        assert refused_field(answer) == name


@pytest.mark.parametrize("number", ["0_1", " 1", "+1", "\u0661", "nan", "0x1"])
@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/v1/search?q=quay", "score_threshold"),
        ("/v1/search?q=quay", "max_num_results"),
        ("/v1/buckets?", "limit"),
        ("/v1/events?", "limit"),
    ],
)
def test_a_number_has_decimal_digits_only(shared: Daemon, path: str, field: str, number: str) -> None:
    assert refused_field(shared.ask("GET", f"{path}&{field}={quote(number)}")) == field


def test_lists_join_what_is_sent_several_times(daemon: Daemon) -> None:
    first, second = daemon.add_source(), daemon.add_source(b"Another.\n", filename="b.md")
    for query in (f"ids={first},{second}", f"ids={first}&ids={second}"):
        found = daemon.show(f"/v1/sources?{query}")
        assert [source["id"] for source in found["sources"]] == [first, second], query
    wanted = {event["type"] for event in daemon.show("/v1/events?types=bucket&types=source.queued")["data"]}
    assert wanted == {"bucket.created", "source.queued"}


def test_explain_without_a_value_explains(working: Daemon) -> None:
    working.add_ready()
    (hit,) = working.show("/v1/search?q=quay&buckets=inbox&explain")["data"]
    assert hit["explain"]["rank"] == 1
