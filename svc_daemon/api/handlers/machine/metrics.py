"""The HTTP handler for `GET /metrics`, in Prometheus' format.

Each node reports its own counters, which begin at 0 when the node starts. All nodes read the number of unfinished tasks
from the state database, and report the same number.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api.endpoints import Endpoint
from svc_daemon.api.requests import caller, context_of, import_extra, is_from_browser, is_from_this_machine
from svc_daemon.core.access.api_keys import KEY_MANAGE
from svc_daemon.core.times import from_text
from svc_daemon.errors import StoreUnavailable
from svc_daemon.process.contexts import Context
from svc_daemon.process.telemetry import BOUNDS_S, Durations
from svc_daemon.store.rows.tasks import count_open_by_type
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.light.versions import VERSION

#: Headers that show that a proxy has forwarded the request.
_PASSED_ON = ("forwarded", "x-forwarded-for", "x-real-ip")
_RANGES = [*(f"{bound:g}" for bound in BOUNDS_S), "+Inf"]


async def metrics(request: Request) -> Response:
    is_passed_on = any(name in request.headers for name in _PASSED_ON)
    if is_passed_on or is_from_browser(request) or not is_from_this_machine(request):
        caller(request, KEY_MANAGE)
    core, exposition = [await import_extra(f"prometheus_client.{part}", "metrics") for part in ("core", "exposition")]
    context = context_of(request)
    try:
        waiting = await context.read_in_thread(count_open_by_type)
    except StoreUnavailable:
        # What this node knows by itself is most needed while the database is away.
        waiting = None
    measured = await asyncio.to_thread(request.app.state.measure)
    registry = core.CollectorRegistry(auto_describe=False)
    registry.register(_Collected([*_work(core, context), *_queue(core, context, waiting), *_sizes(core, measured)]))
    encode, media_type = exposition.choose_encoder(request.headers.get("accept", ""))
    return Response(encode(registry), headers={"Content-Type": media_type})


class _Collected:
    """Passes the metrics of one response to the Prometheus library."""

    def __init__(self, families: Iterable[Any]) -> None:
        self._families = families

    def collect(self) -> Iterable[Any]:
        return self._families


def _work(core: Any, context: Context) -> Iterator[Any]:
    """Build the metrics of requests, searches, indexing and database writes in this process."""
    counted, database = context.metrics, context.database
    yield core.InfoMetricFamily("svc", "The version of the service.", {"version": VERSION})
    requests = core.CounterMetricFamily(
        "svc_requests",
        "Requests, by route and status; 0 if the client left first.",
        labels=("method", "route", "status"),
    )
    for (method, route, status), count in sorted(counted.requests.items()):
        requests.add_metric((method, route, str(status)), count)
    yield requests
    seconds = core.HistogramMetricFamily(
        "svc_request_duration_seconds", "From a request's head to the end of its response.", labels=("route",)
    )
    for route, durations in sorted(counted.requests_s.items()):
        seconds.add_metric((route,), _ranges(durations), durations.total_s)
    yield seconds
    for name, durations, what in (
        ("svc_search_duration_seconds", counted.searches_s, "Searches, including those for answers and MCP tools."),
        ("svc_ready_seconds", counted.ready_s, "From the moment that a source was queued until it was ready."),
    ):
        yield core.HistogramMetricFamily(name, what, buckets=_ranges(durations), sum_value=durations.total_s)
    failures = core.CounterMetricFamily("svc_sources_failed", "Sources that have failed.", labels=("code",))
    for code, count in sorted(counted.failures.items()):
        failures.add_metric((code,), count)
    yield failures
    yield core.CounterMetricFamily(
        "svc_state_operations", "Writes to the state that were committed.", value=database.operations
    )
    yield core.SummaryMetricFamily(
        "svc_state_commit_seconds",
        "Commits of the state, each until it is durable.",
        count_value=database.commits,
        sum_value=database.commits_s,
    )
    yield core.GaugeMetricFamily(
        "svc_state_read_only", "1 after an I/O error has stopped all writes.", value=float(database.is_broken)
    )


def _ranges(durations: Durations) -> list[tuple[str, float]]:
    """Return cumulative counts: each range includes the counts of all lower ranges."""
    return list(zip(_RANGES, accumulate(durations.counts), strict=True))


def _queue(core: Any, context: Context, waiting: Iterable[tuple[str, str, int, str]] | None) -> Iterator[Any]:
    """Build the metrics of unfinished tasks, unless they are unknown (None), and of what tasks wait for."""
    tasks = core.GaugeMetricFamily("svc_tasks", "Unfinished tasks.", labels=("type", "status"))
    oldest = core.GaugeMetricFamily(
        "svc_oldest_task_age_seconds", "The age of the oldest unfinished task.", labels=("type", "status")
    )
    now = context.clock.now()
    for kind, status, count, oldest_at in waiting or ():
        tasks.add_metric((kind, status), count)
        oldest.add_metric((kind, status), max((now - from_text(oldest_at)).total_seconds(), 0))
    if waiting is not None:
        yield tasks
        yield oldest
    up = core.GaugeMetricFamily("svc_engine_up", "1 if the engine can be used, else 0.", labels=("engine",))
    can_use: dict[str, bool] = {name: state.message is None for name, state in context.engines.now.items()}
    for name, is_up in (can_use or {"sqlite": not context.database.is_broken}).items():
        up.add_metric((name,), float(is_up))
    yield up
    shortage = context.shortages.now
    lacking = core.GaugeMetricFamily("svc_shortage", "1 while work waits for what is missing.", labels=("lack",))
    if shortage is not None:
        lacking.add_metric((shortage.kind.value,), 1)
    yield lacking


def _sizes(core: Any, measured: Mapping[str, float]) -> Iterator[Any]:
    connections = measured.get("connections", 0)
    yield core.GaugeMetricFamily("svc_connections", "Open connections of clients.", value=connections)
    sizes = core.GaugeMetricFamily("svc_disk_bytes", "Bytes on this machine's disk, by what they are.", labels=("of",))
    for name in ("state", "index", "free"):
        if name in measured:
            sizes.add_metric((name,), measured[name])
    yield sizes


# fmt: off
ENDPOINTS = (
    Endpoint("GET", "/metrics", metrics, "Counters and gauges for Prometheus", {200: None}, keyed=False,
             errors=(ErrorCode.EXTRA_NOT_INSTALLED,)),
)
# fmt: on
