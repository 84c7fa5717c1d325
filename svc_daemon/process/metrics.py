"""What this process has counted and timed since it started, for `/metrics`.

Everything is used on the event loop only, without locks, and costs about a microsecond. A restart resets it, which
Prometheus expects of counters.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

#: Upper bounds of the ranges in which durations are counted, in seconds.
BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)


@dataclass(slots=True)
class Durations:
    """The number of durations in each range, and their sum in seconds."""

    #: One for each of `BOUNDS_S`, and one for what is longer.
    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS_S) + 1))
    total_s: float = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BOUNDS_S, seconds)] += 1
        self.total_s += seconds

    @contextmanager
    def timing(self, monotonic: Callable[[], float]) -> Iterator[None]:
        """Add the time that the block takes, whether or not it fails."""
        began_s = monotonic()
        try:
            yield
        finally:
            self.add(monotonic() - began_s)


@dataclass(slots=True)
class Metrics:
    """The counters of one process."""

    #: Requests that have ended, by method, route template and HTTP status; 0 if the client left before the response.
    requests: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    #: From the head of a request to the end of its response, by route template.
    requests_s: defaultdict[str, Durations] = field(default_factory=lambda: defaultdict(Durations))
    #: Searches, including those for answers and MCP tools.
    searches_s: Durations = field(default_factory=Durations)
    #: From the moment that a source was queued until it was ready. Not counted are those whose buckets changed
    #: meanwhile, which become ready a little later.
    ready_s: Durations = field(default_factory=Durations)
    #: Sources whose indexing has failed, by error code.
    failures: Counter[str] = field(default_factory=Counter)

    def count_request(self, method: str, route: str, status: int | None, seconds: float) -> None:
        self.requests[method, route, status or 0] += 1
        self.requests_s[route].add(seconds)
