"""The metrics of the daemon, and the lines of its access log."""

import json
import logging
import re
from collections.abc import Mapping
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from svc_daemon.api.middleware import access_logs
from svc_daemon.wire.tasks import INDEXING
from tests.acceptance.installations import wait_until
from tests.api.daemons import Daemon
from tests.api.servers import hardened, serving_client
from tests.rules.modules import ROOT

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


#: A path, the request's headers, and the route and status of its line.
REQUESTS: list[tuple[str, dict[str, str], str, int]] = [
    ("/storage/t0ken?q=s3cret", {}, "/storage/{token}", 200),
    ("/t0ken", {}, "-", 404),
    ("/storage/t", {"Host": "evil.example"}, "-", 421),
    ("/storage/t", {"Origin": "null"}, "-", 403),
    ("/fail", {}, "/fail", 500),
]


@pytest.mark.rule("session.unlogged")
def test_a_line_has_the_template_and_neither_path_nor_query(caplog: pytest.LogCaptureFixture) -> None:
    app = hardened([Route("/storage/{token}", hello), Route("/fail", fail)])

    def lines() -> list[logging.LogRecord]:
        return [record for record in caplog.records if record.name == access_logs.__name__]

    with caplog.at_level(logging.INFO, logger=access_logs.__name__), serving_client(app) as client:
        for path, headers, route, status in REQUESTS:
            caplog.clear()
            sent_bytes = len(client.get(path, headers=headers).content)
            wait_until(lambda: bool(lines()), f"{path} is logged")
            (line,) = lines()
            fields: dict[str, Any] = dict(line.__dict__["fields"])
            assert fields.pop("duration_ms") >= 0
            assert fields == {"method": "GET", "route": route, "status": status, "sent_bytes": sent_bytes}, path
            assert line.getMessage() == "answered"
