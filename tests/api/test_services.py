"""What the service shows of itself: health, version, limits, models, metrics, and the lines of its access log."""

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from svc_daemon.api.middleware import access_logs
from svc_daemon.errors import ServiceError
from svc_daemon.settings.limits import Limits
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.light.local_daemons import parse_secret, prove
from svc_daemon.wire.light.versions import API_NEWEST, API_OLDEST, API_RANGE, VERSION
from svc_daemon.wire.tasks import INDEXING
from tests.acceptance.installations import wait_until
from tests.api.answers import details_of, refused_field
from tests.api.daemons import NOTES, Daemon
from tests.api.fixtures import MakeDaemon
from tests.api.servers import hardened, serving_client
from tests.rules.modules import ROOT


def test_health_needs_no_key_and_reports_the_length_of_the_queue(daemon: Daemon) -> None:
    daemon.add_source()
    daemon.delete(f"/v1/sources/{daemon.add_source()}")
    daemon.advance(5)
    health = daemon.show("/healthz", key="")
    about: dict[str, Any] = {"status": "ok", "version": VERSION, "api": API_RANGE, "proof": None}
    about |= {"installation_id": daemon.installation_id, "queue": {"queued": 1, "running": 0}}
    assert {name: health[name] for name in about} == about
    assert health["uptime_seconds"] >= 5
    assert 0 < health["writer"]["commits"] <= health["writer"]["operations"]


def test_health_returns_a_proof_made_with_the_secret_in_the_data_directory(daemon: Daemon) -> None:
    secret = parse_secret(daemon.files.secret.read_text())
    assert secret is not None
    nonces = ("0123456789abcdef", "0123456789abcdeF")
    proofs = [daemon.show(f"http://127.0.0.1:7820/healthz?nonce={nonce}", key="")["proof"] for nonce in nonces]
    assert proofs == [prove(secret, daemon.installation_id, 7820, nonce) for nonce in nonces]
    assert proofs[0] != proofs[1]
    for nonce in ("", "x" * 15, "x" * 129):
        assert refused_field(daemon.ask("GET", "/healthz", key="", params={"nonce": nonce})) == "nonce"


def test_version_needs_a_key_and_shows_whether_the_writing_model_works(daemon: Daemon) -> None:
    version = daemon.show("/v1/version")
    assert (version["version"], version["api_oldest"], version["api_newest"]) == (VERSION, API_OLDEST, API_NEWEST)
    details_of(daemon.ask("GET", "/v1/version", key=""), "invalid_project_key")
    assert (version["writing"], daemon.show("/v1/version", verify="writing")["writing"]["state"]) == (None, "off")
    assert refused_field(daemon.ask("GET", "/v1/version", params={"verify": "x"})) == "verify"
    with daemon.writing("http://nowhere.invalid/v1"):
        writing = daemon.show("/v1/version", verify="writing")["writing"]
    assert (writing["state"], writing["model"], "SVC_LLM_BASE_URL" in writing["message"]) == ("failing", "small", True)


def test_every_limit_is_shown_with_its_value_and_its_use(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon(limits=Limits(tags=7))
    daemon.make_bucket()
    daemon.add_source()
    shown = daemon.show("/v1/limits")
    limits = shown["limits"]
    assert shown["key"] == daemon.show("/v1/keys")["keys"][0]
    assert set(limits) == {limit.name for limit in fields(Limits)}
    assert limits["tags"] == {"value": 7, "unit": "tags", "used": None}
    assert limits["file_bytes"] == {"value": 26_214_400, "unit": "bytes", "used": None}
    theirs = daemon.show("/v1/limits", key=daemon.add_team())["limits"]
    daemon.advance(61)
    later = daemon.show("/v1/limits")["limits"]
    assert [each["bytes_per_minute"]["used"] for each in (limits, theirs, later)] == [len(NOTES), 0, 0]


@pytest.mark.parametrize("extension", (".txt", ".md", ".html", ".pdf", ".docx", ".csv", ".json", ".py"))
def test_common_formats_need_no_extra(shared: Daemon, extension: str) -> None:
    formats = shared.show("/v1/limits")["formats"]
    (found,) = [each for each in formats if extension in each["extensions"]]
    assert (found["extra"], bool(found["content_types"])) == (None, True)


LISTS = ("/v1/models", "/v1/rag-agent/models")


@pytest.fixture(scope="module")
def daemon_with_agents(shared: Daemon) -> Daemon:
    """A daemon with two named agents."""
    for agent_id in ("sales", "legal"):
        shared.post("/v1/agents", 201, json={"agent_id": agent_id})
    return shared


def listed(daemon: Daemon, path: str, key: str | None = None) -> list[dict[str, Any]]:
    page = daemon.show(path, key=key)
    assert (page["object"], set(page)) == ("list", {"object", "data", "request_id"})
    return list(page["data"])


@pytest.mark.rule("agents.models", "agents.rag-models")
def test_every_agent_is_listed_as_a_model_and_found_under_both_spellings(daemon_with_agents: Daemon) -> None:
    made = int(datetime.fromisoformat(daemon_with_agents.show("/v1/agents/sales")["created_at"]).timestamp())
    for path in LISTS:
        models = listed(daemon_with_agents, path)
        assert [model["id"] for model in models] == ["svc-agent", "svc-agent:legal", "svc-agent:sales"]
        sales = {"id": "svc-agent:sales", "object": "model", "created": made, "owned_by": daemon_with_agents.team_id}
        assert (models[2], {tuple(model) for model in models}) == (sales, {tuple(models[2])})
    for model in ("svc-agent", "svc-rag-agent", "svc-agent:sales", "svc-rag-agent:sales"):
        assert daemon_with_agents.show(f"/v1/models/{model}")["id"] == model


@pytest.mark.rule("agents.models")
def test_key_sees_only_the_models_that_it_may_use(daemon_with_agents: Daemon) -> None:
    for allowed in ("svc-agent:sales", "svc-rag-agent:sales"):
        key = daemon_with_agents.add_key(models=(allowed, "svc-agent:made-later"))
        for path in LISTS:
            assert [model["id"] for model in listed(daemon_with_agents, path, key)] == ["svc-agent:sales"], allowed
        assert daemon_with_agents.ask("GET", "/v1/models/svc-rag-agent:sales", key=key).is_success
        details_of(daemon_with_agents.ask("GET", "/v1/models/svc-agent", key=key), "model_not_allowed")


Samples = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


def scrape(daemon: Daemon) -> Samples:
    answer = daemon.ask("GET", "/metrics", key="")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/plain; version=")
    families = text_string_to_metric_families(answer.text)
    return {named(sample): sample.value for family in families for sample in family.samples}


def named(sample: Sample) -> tuple[str, frozenset[tuple[str, str]]]:
    return sample.name, frozenset(sample.labels.items())


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples.get((name, frozenset(labels.items())), 0)


@pytest.mark.one_daemon  # each node counts its own requests
def test_counters_match_the_requests_that_were_sent(daemon: Daemon) -> None:
    daemon.make_bucket()
    before = scrape(daemon)
    source_ids = [daemon.add_source(b"# Page %d\n\nWords." % number) for number in range(3)]
    path = "/v1/buckets/{bucket}/files"
    waiting = scrape(daemon)
    assert value(waiting, "svc_tasks", type=INDEXING, status="queued") == 3
    assert 0 <= value(waiting, "svc_oldest_task_age_seconds", type=INDEXING, status="queued") < 60
    daemon.start("indexing")
    daemon.wait_ready(*source_ids)
    for _ in range(2):
        assert daemon.search("Words").status_code == 200
    assert daemon.ask("GET", "/v1/buckets/nowhere").status_code == 404
    assert daemon.ask("BREW", "/coffee").status_code == 404
    after = scrape(daemon)

    def grown(name: str, **labels: str) -> float:
        return value(after, name, **labels) - value(before, name, **labels)

    assert grown("svc_requests_total", method="POST", route=path, status="201") == 3
    assert grown("svc_request_duration_seconds_count", route=path) == 3
    assert grown("svc_requests_total", method="GET", route="/v1/buckets/{bucket}", status="404") == 1
    assert grown("svc_requests_total", method="-", route="-", status="404") == 1
    assert grown("svc_search_duration_seconds_count") == grown("svc_search_duration_seconds_bucket", le="+Inf") == 2
    assert grown("svc_ready_seconds_count") == 3
    assert grown("svc_state_operations_total") >= 5
    assert 0 < grown("svc_state_commit_seconds_count") <= grown("svc_state_operations_total")
    assert grown("svc_state_commit_seconds_sum") > 0
    assert value(after, "svc_tasks", type=INDEXING, status="queued") == 0


@pytest.mark.sqlite
@pytest.mark.index_files
def test_sizes_of_the_state_the_index_and_the_free_disk_are_shown(working: Daemon) -> None:
    working.make_bucket()
    working.add_ready()
    shown = scrape(working)
    assert min(value(shown, "svc_disk_bytes", of=each) for each in ("state", "index", "free")) > 0


@pytest.mark.one_daemon  # each node counts its own requests
def test_failed_sources_are_counted_by_error_code(daemon: Daemon) -> None:
    daemon.start("indexing")
    source_id = daemon.add_source(b"%PDF-1.7\nnothing that a PDF has", filename="broken.pdf")
    daemon.wait_status(source_id, "failed")
    assert value(scrape(daemon), "svc_sources_failed_total", code="document_unreadable") == 1


def test_forwarded_or_browser_requests_need_a_key_that_may_manage_keys(daemon: Daemon) -> None:
    reader, admin = daemon.add_key("knowledge:read"), daemon.add_key("key:manage")
    for header in ({"X-Forwarded-For": "192.0.2.7"}, {"Forwarded": "for=192.0.2.7"}, {"Sec-Fetch-Site": "none"}):
        for key, status in (("", 401), (reader, 403), (admin, 200)):
            assert daemon.ask("GET", "/metrics", key=key, headers=header).status_code == status, header


@pytest.mark.one_daemon  # each node counts its own requests
def test_docs_describe_every_metric_and_the_dashboard_uses_no_unknown_one(daemon: Daemon) -> None:
    shown = {name for name, _ in scrape(daemon)}
    # Metrics without samples on an idle daemon.
    shown |= {"svc_sources_failed_total", "svc_shortage", "svc_tasks", "svc_oldest_task_age_seconds"}
    page = (ROOT / "docs/how-to/metrics.md").read_text(encoding="utf-8")
    table = set(re.findall(r"^\| `(svc_\w+)` \|", page, re.MULTILINE))
    assert table == {re.sub(r"(?<=_seconds)_(bucket|count|sum)$", "", name) for name in shown}
    dashboard = json.loads((ROOT / "docs/how-to/grafana.json").read_text(encoding="utf-8"))
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    for text in (page, *asked):
        for name in re.findall(r"svc_\w+", text.replace("svc_info", "")):
            assert name in shown | table, text


async def hello(request: Request) -> Response:
    return Response("hello")


async def fail(request: Request) -> Response:
    raise RuntimeError("unexpected")


async def away(request: Request) -> Response:
    raise ServiceError(ErrorCode.ANSWER_FAILED, "The model's server answered 204.")


BUG = {"code": "internal_error", "cause": "Something unexpected went wrong; please quote the request id."}
#: A path, the request's headers, and the route, the status and the error of its line.
REQUESTS: list[tuple[str, dict[str, str], str, int, dict[str, str]]] = [
    ("/storage/t0ken?q=s3cret", {}, "/storage/{token}", 200, {}),
    ("/t0ken", {}, "-", 404, {"code": "not_found"}),
    ("/storage/t", {"Host": "evil.example"}, "-", 421, {"code": "host_not_allowed"}),
    ("/storage/t", {"Origin": "null"}, "-", 403, {"code": "origin_not_allowed"}),
    ("/fail", {}, "/fail", 500, BUG),
    ("/away", {}, "/away", 502, {"code": "answer_failed", "cause": "The model's server answered 204."}),
]


@pytest.mark.rule("session.unlogged")
def test_a_line_has_the_template_and_neither_path_nor_query(caplog: pytest.LogCaptureFixture) -> None:
    app = hardened([Route("/storage/{token}", hello), Route("/fail", fail), Route("/away", away)])

    def lines() -> list[logging.LogRecord]:
        return [record for record in caplog.records if record.name == access_logs.__name__]

    with caplog.at_level(logging.INFO, logger=access_logs.__name__), serving_client(app) as client:
        for path, headers, route, status, error in REQUESTS:
            caplog.clear()
            sent_bytes = len(client.get(path, headers=headers).content)
            wait_until(lambda: bool(lines()), f"{path} is logged")
            (line,) = lines()
            fields: dict[str, Any] = dict(line.__dict__["fields"])
            assert fields.pop("duration_ms") >= 0
            assert fields == {"method": "GET", "route": route, "status": status, "sent_bytes": sent_bytes} | error, path
            assert line.getMessage() == "answered"
