"""A real daemon exports one OpenTelemetry trace from an upload request until its source is ready."""

import sys
from typing import Any

import pytest

from svc_daemon.wire.light.extras import install_command
from tests.acceptance.calls import make_bucket, upload, wait_ended
from tests.acceptance.forks import ROOT
from tests.acceptance.installations import PATIENCE_S, wait_until
from tests.cli.odd_servers import OddServer, serving
from tests.conftest import UNLIMITED, MakeInstallation

TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
UPLOAD = "POST /v1/buckets/{bucket}/files"


def received(collector: OddServer) -> list[Any]:
    """Return the spans that the daemon has exported so far."""
    protocol = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    bodies = [protocol.ExportTraceServiceRequest.FromString(body) for _, _, body in list(collector.calls)]
    scopes = (scope for body in bodies for resource in body.resource_spans for scope in resource.scope_spans)
    return [span for scope in scopes for span in scope.spans]


def test_trace_of_the_caller_continues_until_its_source_is_ready(make_installation: MakeInstallation) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    with serving() as collector:
        collector.answers["POST /v1/traces"] = (200, b"", {})
        quickly = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_BSP_SCHEDULE_DELAY": "50"}
        one = make_installation(SVC_TRACES="1", **quickly, **UNLIMITED).start()
        with one.client() as other:
            make_bucket(other, "notes")
        with one.client(traceparent=f"00-{TRACE}-{CALLER}-01") as client:
            ready = upload(client, "notes", "plan.md", b"# Plan\n\nWords.").json()["id"]
            failed = upload(client, "notes", "broken.pdf", b"%PDF-1.7\nnothing").json()["id"]
            for source_id in (ready, failed):
                wait_ended(client, source_id, PATIENCE_S)

        def of_the_trace(name: str) -> list[Any]:
            return [span for span in received(collector) if span.trace_id.hex() == TRACE and span.name == name]

        wait_until(lambda: len(of_the_trace("index")) == len(of_the_trace(UPLOAD)) == 2, "the spans")
        assert {span.parent_span_id.hex() for span in of_the_trace(UPLOAD)} == {CALLER}
        # Without OTEL_SERVICE_NAME, the library would call the service unknown.
        assert all(b"unknown_service" not in body for _, _, body in collector.calls)
        requests = {span.span_id: span for span in of_the_trace(UPLOAD)}
        worked = {attributes(span)["svc.source_id"]: span for span in of_the_trace("index")}
        assert worked.keys() == {ready, failed}
        assert {span.parent_span_id for span in worked.values()} == requests.keys()
        waited = {attributes(span)["svc.source_id"]: span for span in of_the_trace("queued")}
        for source_id, span in worked.items():
            assert (waited[source_id].end_time_unix_nano, waited[source_id].parent_span_id) == (
                span.start_time_unix_nano,
                span.parent_span_id,
            )
        assert (worked[ready].status.code, worked[failed].status.message) == (0, "document_unreadable")
        # No private data is exported.
        assert not any(
            word in body for _, _, body in collector.calls for word in (b"plan.md", b"Words", one.key.encode())
        )


def attributes(span: Any) -> dict[str, str]:
    return {each.key: each.value.string_value for each in span.attributes}


def test_traces_setting_without_the_extra_names_the_extra_to_install(make_installation: MakeInstallation) -> None:
    one = make_installation(SVC_TRACES="1")
    one.root.mkdir()
    (one.root / "opentelemetry").mkdir()
    (one.root / "opentelemetry/__init__.py").write_text("raise ModuleNotFoundError(__name__)\n")
    one.environ["PYTHONPATH"] = f"{one.root}:{ROOT}"
    ended = one.run(sys.executable, "-m", "svc_daemon", "serve")
    assert (ended.exit, install_command("otel") in ended.stderr) == (2, True)
    one.environ["SVC_TRACES"] = "yes"
    assert "SVC_TRACES must be on or off" in one.run(sys.executable, "-m", "svc_daemon", "serve").stderr
