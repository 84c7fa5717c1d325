"""Rate limits: a token bucket for create requests, and a sliding window of one minute for uploaded bytes."""

from collections import deque
from collections.abc import Iterable
from dataclasses import InitVar, dataclass, field
from itertools import accumulate


@dataclass(slots=True)
class TokenBucket:
    """A token bucket. It gains `per_second` tokens per second, and holds at most that many."""

    per_second: float
    tokens: float
    #: When `tokens` was last updated, in seconds of the monotonic clock.
    updated_s: float

    @classmethod
    def full(cls, per_second: float, now_s: float) -> "TokenBucket":
        return cls(per_second=per_second, tokens=per_second, updated_s=now_s)

    def wait_s(self, now_s: float) -> float:
        """Return the seconds until a token is available; 0 if there is one."""
        saved = min(self.per_second, self.tokens + (now_s - self.updated_s) * self.per_second)
        return max(0.0, (1 - saved) / self.per_second)

    def take(self, now_s: float) -> float:
        """Take a token and return 0. If there is no token, return the seconds until there is one."""
        if (wait_s := self.wait_s(now_s)) > 0:
            return wait_s
        self.tokens = min(self.per_second, self.tokens + (now_s - self.updated_s) * self.per_second) - 1
        self.updated_s = now_s
        return 0.0


@dataclass(slots=True)
class ByteWindow:
    """Counts the bytes of the last `window_s` seconds, and refuses more than the limit."""

    limit_bytes: int
    window_s: float = 60.0
    #: Time and number of bytes of each earlier charge, oldest first.
    charges: InitVar[Iterable[tuple[float, int]]] = ()
    used_bytes: int = field(init=False)
    _charges: deque[tuple[float, int]] = field(init=False)

    def __post_init__(self, charges: Iterable[tuple[float, int]]) -> None:
        self._charges = deque(charges)
        self.used_bytes = sum(size_bytes for _, size_bytes in self._charges)

    def charge(self, size_bytes: int, now_s: float) -> float:
        """Charge the bytes and return 0. If they exceed the limit, return the seconds to wait; inf means forever."""
        self._forget(now_s)
        if size_bytes > self.limit_bytes:
            return float("inf")
        if (over_bytes := self.used_bytes + size_bytes - self.limit_bytes) > 0:
            # The oldest charges leave the window first. Find how many must leave until these bytes fit.
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
        """Return the charges, with those of the same second added up, so that there are few to store."""
        merged: dict[int, tuple[float, int]] = {}
        for at_s, size_bytes in self._charges:
            _, sum_bytes = merged.get(int(at_s), (at_s, 0))
            merged[int(at_s)] = (at_s, sum_bytes + size_bytes)
        return list(merged.values())

    def _forget(self, now_s: float) -> None:
        while self._charges and self._charges[0][0] + self.window_s <= now_s:
            self.used_bytes -= self._charges.popleft()[1]
