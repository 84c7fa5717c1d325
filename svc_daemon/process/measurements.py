"""Counters and durations since this process started, for `/metrics`.

Use them only on the event loop.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

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
