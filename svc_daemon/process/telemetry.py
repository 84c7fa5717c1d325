"""Counters and durations for `/metrics`, and OpenTelemetry traces.

A trace has the spans `request`, `queued` (until a worker takes the document) and `index` (until the source is ready or
has failed). The trace's id is stored with the indexing task.

Use them only on the event loop.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from svc_daemon.core.times import from_text
from svc_daemon.databases.contract import Connection, Exclusive
from svc_daemon.settings.limits import SettingError
from svc_daemon.store.rows.tasks import TaskRow
from svc_daemon.wire.light.extras import install_command
from svc_daemon.wire.light.versions import VERSION

T = TypeVar("T")

#: Describes a response, given its method, route template and status (None if the client disconnected first).
Describe = Callable[[str, str, int | None], None]


class Traces:
    """The interface for recording traces. This class records nothing, and is used if tracing is off."""

    is_on = False

    @contextmanager
    def serving(self, _headers: Mapping[str, str]) -> Iterator[Describe]:
        """Trace the block as a request with these headers.

        The block must call the yielded function to describe the response.
        """
        yield lambda *_: None

    def current(self) -> str | None:
        """Return the `traceparent` that identifies the current trace; None if there is none."""
        return None

    def carried(self, work: Callable[[Connection], T]) -> Callable[[Connection], T]:
        """Return `work` bound to the current trace, because it will run in another thread."""
        return work

    def record_task(self, task: TaskRow, ended_at: datetime, error: str | None = None) -> None:
        """Record how long a finished task waited in the queue, and how long it ran."""

    def close(self) -> None:
        """Export the recorded spans that weren't exported yet."""


class OpenTelemetry(Traces):
    """Records traces, and exports them through OpenTelemetry's SDK."""

    is_on = True

    def __init__(self, provider: Any) -> None:
        from opentelemetry.trace import SpanKind, Status, StatusCode  # noqa: PLC0415
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415

        self._provider = provider
        self._tracer = provider.get_tracer("svc", VERSION)
        self._propagator = TraceContextTextMapPropagator()
        self._kind, self._failed, self._status = SpanKind.SERVER, StatusCode.ERROR, Status

    @contextmanager
    def serving(self, headers: Mapping[str, str]) -> Iterator[Describe]:
        with self._tracer.start_as_current_span(
            "request", context=self._propagator.extract(headers), kind=self._kind
        ) as span:

            def describe(method: str, route: str, status: int | None) -> None:
                span.update_name(f"{method} {route}")
                span.set_attributes({"http.request.method": method, "http.route": route})
                if status is not None:
                    span.set_attribute("http.response.status_code", status)
                if status is None or status >= 500:
                    span.set_status(self._status(self._failed))

            yield describe

    def current(self) -> str | None:
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier)
        return carrier.get("traceparent")

    def carried(self, work: Callable[[Connection], T]) -> Callable[[Connection], T]:
        if isinstance(work, Exclusive):
            # An `Exclusive` step works for many requests, so it belongs to none of their traces.
            return work
        held = copy_context()
        return lambda connection: held.run(work, connection)

    def record_task(self, task: TaskRow, ended_at: datetime, error: str | None = None) -> None:
        if task.trace is None or task.started_at is None:
            return
        facts = {"svc.source_id": task.source_id or "", "svc.task_id": task.id, "svc.attempt": task.attempt}
        parent = self._propagator.extract({"traceparent": task.trace})
        moments = [from_text(task.created_at), from_text(task.started_at), ended_at]
        queued, begun, ended = (round(moment.timestamp() * 1_000_000) * 1000 for moment in moments)
        self._tracer.start_span("queued", parent, start_time=queued, attributes=facts).end(begun)
        span = self._tracer.start_span("index", parent, start_time=begun, attributes=facts)
        if error is not None:
            span.set_status(self._status(self._failed, error))
        span.end(ended)

    def close(self) -> None:
        self._provider.shutdown()


def open_traces() -> Traces:
    """Start exporting traces, configured by OpenTelemetry's environment variables (`OTEL_…`). Raises SettingError."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise SettingError(f"SVC_TRACES needs an extra that is not installed: {install_command('otel')}.") from error

    # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take precedence over this name, but not the library's own default.
    given = Resource.create()
    is_named = not str(given.attributes.get("service.name", "")).startswith("unknown_service")
    name = {} if is_named else {"service.name": "svc"}
    resource = Resource({"service.version": VERSION}).merge(given).merge(Resource(name))
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return OpenTelemetry(provider)


#: Upper bounds of the histogram's ranges, in seconds.
BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)


@dataclass(slots=True)
class Durations:
    """A histogram of durations."""

    #: Number of durations in each range. The ranges end at `BOUNDS_S`. The last range has no end.
    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS_S) + 1))
    total_s: float = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BOUNDS_S, seconds)] += 1
        self.total_s += seconds

    @contextmanager
    def timing(self, monotonic: Callable[[], float]) -> Iterator[None]:
        """Add the block's duration to the histogram, even if the block raises an error."""
        began_s = monotonic()
        try:
            yield
        finally:
            self.add(monotonic() - began_s)


@dataclass(slots=True)
class Metrics:
    """The counters of one process."""

    #: Number of requests by method, route template and HTTP status. The status is 0 if the client disconnected early.
    requests: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    #: Time from a request's first bytes to the end of its response, by route template.
    requests_s: defaultdict[str, Durations] = field(default_factory=lambda: defaultdict(Durations))
    #: Duration of searches, including those for answers and MCP tools.
    searches_s: Durations = field(default_factory=Durations)
    #: Time from queueing a source until it was ready.
    ready_s: Durations = field(default_factory=Durations)
    #: Number of sources whose indexing failed, by error code.
    failures: Counter[str] = field(default_factory=Counter)

    def count_request(self, method: str, route: str, status: int | None, seconds: float) -> None:
        self.requests[method, route, status or 0] += 1
        self.requests_s[route].add(seconds)
