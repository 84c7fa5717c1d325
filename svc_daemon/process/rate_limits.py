"""Rate limits and quotas: create requests per second and bytes per minute, counted in memory for each team.

Used on the event loop only, without locks. A restart resets the counts.
"""

from collections.abc import Callable
from math import ceil, isinf

from svc_daemon.core.access.rates import ByteWindow, TokenBucket
from svc_daemon.errors import ServiceError
from svc_daemon.settings import Limits
from svc_daemon.wire.codes import ErrorCode

WINDOW_S = 60


class RateLimits:
    """Counts how much of its rate limits and quotas each team has used."""

    def __init__(self, limits: Limits, monotonic: Callable[[], float]) -> None:
        self._limits = limits
        self._monotonic = monotonic
        self._creates: dict[str, TokenBucket] = {}
        self._bytes: dict[str, ByteWindow] = {}

    def take_create(self, team_id: str) -> None:
        """Count one create request; raises `upload_rate_limited` if the team exceeds the limit."""
        if self._limits.creates_per_second == 0:
            return
        now_s = self._monotonic()
        bucket = self._creates.setdefault(team_id, TokenBucket.full(self._limits.creates_per_second, now_s))
        if (wait_s := bucket.take(now_s)) > 0:
            raise ServiceError(
                ErrorCode.UPLOAD_RATE_LIMITED,
                f"More than {self._limits.creates_per_second} create requests in a second; wait {wait_s:.2f} seconds.",
                limit=self._limits.creates_per_second,
                retry_after_seconds=ceil(wait_s * 100) / 100,
            )

    def charge_bytes(self, team_id: str, size_bytes: int) -> None:
        """Count uploaded bytes; raises `quota_exceeded` if the team exceeds the limit."""
        limit_bytes = self._limits.bytes_per_minute
        if limit_bytes == 0:
            return
        window = self._bytes.setdefault(team_id, ByteWindow(limit_bytes, WINDOW_S))
        wait_s = window.charge(size_bytes, self._monotonic())
        if wait_s > 0:
            raise ServiceError(
                ErrorCode.QUOTA_EXCEEDED,
                limit_bytes=limit_bytes,
                used_bytes=window.used_bytes,
                requested_bytes=size_bytes,
                window_seconds=WINDOW_S,
                retry_after_seconds=WINDOW_S if isinf(wait_s) else ceil(wait_s),
            )

    def used_bytes(self, team_id: str) -> int:
        """Return the number of bytes charged to the team in the last minute."""
        window = self._bytes.get(team_id)
        return window.used_within(self._monotonic()) if window else 0
