"""Rate limits: a token bucket for create requests, a one-minute sliding window for bytes.

Each team has its own. `take` and `charge` change nothing if the limit is exceeded.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import InitVar, dataclass, field
from itertools import accumulate


@dataclass(slots=True)
class TokenBucket:
    """A token bucket that is refilled at `per_second` tokens per second; `per_second` is also its capacity."""

    per_second: float
    tokens: float
    #: Monotonic time of the last update of `tokens`, in seconds.
    updated_s: float

    @classmethod
    def full(cls, per_second: float, now_s: float) -> "TokenBucket":
        return cls(per_second=per_second, tokens=per_second, updated_s=now_s)

    def wait_s(self, now_s: float) -> float:
        """Return the seconds until a token is available; 0 if one is available now."""
        saved = min(self.per_second, self.tokens + (now_s - self.updated_s) * self.per_second)
        return max(0.0, (1 - saved) / self.per_second)

    def take(self, now_s: float) -> float:
        """Take a token and return 0; if none is available, return the seconds until one is."""
        if (wait_s := self.wait_s(now_s)) > 0:
            return wait_s
        self.tokens = min(self.per_second, self.tokens + (now_s - self.updated_s) * self.per_second) - 1
        self.updated_s = now_s
        return 0.0


@dataclass(slots=True)
class ByteWindow:
    """Counts the bytes that were charged within the last `window_s` seconds."""

    limit_bytes: int
    window_s: float = 60.0
    #: Times and sizes of earlier charges, oldest first.
    charges: InitVar[Iterable[tuple[float, int]]] = ()
    used_bytes: int = field(init=False)
    _charges: deque[tuple[float, int]] = field(init=False)

    def __post_init__(self, charges: Iterable[tuple[float, int]]) -> None:
        self._charges = deque(charges)
        self.used_bytes = sum(size_bytes for _, size_bytes in self._charges)

    def charge(self, size_bytes: int, now_s: float) -> float:
        """Charge the bytes and return 0, or return the seconds until the limit permits them (inf if it never does)."""
        self._forget(now_s)
        if size_bytes > self.limit_bytes:
            return float("inf")
        if (over_bytes := self.used_bytes + size_bytes - self.limit_bytes) > 0:
            # Wait until the oldest charges that cover the excess have left the window.
            left = accumulate(size_bytes for _, size_bytes in self._charges)
            last = next((at for (at, _), freed in zip(self._charges, left, strict=True) if freed >= over_bytes), now_s)
            return max(last + self.window_s - now_s, 0.001)
        self._charges.append((now_s, size_bytes))
        self.used_bytes += size_bytes
        return 0.0

    def used_within(self, now_s: float) -> int:
        """Return the bytes charged within the window that ends now."""
        self._forget(now_s)
        return self.used_bytes

    def merged(self) -> list[tuple[float, int]]:
        """Return the charges, those of the same second as one at the time of the latest, so that they stay few."""
        merged: dict[int, tuple[float, int]] = {}
        for at_s, size_bytes in self._charges:
            _, sum_bytes = merged.get(int(at_s), (at_s, 0))
            merged[int(at_s)] = (at_s, sum_bytes + size_bytes)
        return list(merged.values())

    def _forget(self, now_s: float) -> None:
        while self._charges and self._charges[0][0] + self.window_s <= now_s:
            self.used_bytes -= self._charges.popleft()[1]
