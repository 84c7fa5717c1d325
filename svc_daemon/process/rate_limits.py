"""Rate limits and quotas of each team."""

from collections.abc import Callable
from math import ceil, isinf
from typing import Protocol

from svc_daemon.core.access.rate_limits import ByteWindow, TokenBucket
from svc_daemon.errors import ServiceError
from svc_daemon.settings.limits import Limits
from svc_daemon.wire.light.error_codes import ErrorCode

WINDOW_S = 60


class RateLimits(Protocol):
    """Counts each team's use of its rate limits and quotas. Use it only on the event loop."""

    async def charge_create(self, team_id: str, size_bytes: int) -> None:
        """Count one create request and its bytes; raises `upload_rate_limited` or `quota_exceeded`."""

    async def charge_bytes(self, team_id: str, size_bytes: int) -> None:
        """Count uploaded bytes; raises `quota_exceeded`."""

    async def used_bytes(self, team_id: str) -> int:
        """Return the bytes charged to the team in the last minute."""


class LocalRateLimits:
    """Keeps the counts of all teams in memory, for a single process. A restart resets the counts."""

    def __init__(self, limits: Limits, monotonic: Callable[[], float]) -> None:
        self._limits = limits
        self._monotonic = monotonic
        self._creates: dict[str, TokenBucket] = {}
        self._bytes: dict[str, ByteWindow] = {}

    async def charge_create(self, team_id: str, size_bytes: int) -> None:
        if self._limits.creates_per_second:
            now_s = self._monotonic()
            bucket = self._creates.setdefault(team_id, TokenBucket.full(self._limits.creates_per_second, now_s))
            refuse_create(bucket.take(now_s), self._limits)
        await self.charge_bytes(team_id, size_bytes)

    async def charge_bytes(self, team_id: str, size_bytes: int) -> None:
        if self._limits.bytes_per_minute:
            window = self._bytes.setdefault(team_id, ByteWindow(self._limits.bytes_per_minute, WINDOW_S))
            refuse_bytes(window.charge(size_bytes, self._monotonic()), window, size_bytes)

    async def used_bytes(self, team_id: str) -> int:
        window = self._bytes.get(team_id)
        return window.used_within(self._monotonic()) if window else 0


def refuse_create(wait_s: float, limits: Limits) -> None:
    """Raise `upload_rate_limited` if the team must wait, that is, if `wait_s` is above 0."""
    if wait_s > 0:
        raise ServiceError(
            ErrorCode.UPLOAD_RATE_LIMITED,
            f"More than {limits.creates_per_second} create requests in a second; wait {wait_s:.2f} seconds.",
            limit=limits.creates_per_second,
            retry_after_seconds=ceil(wait_s * 100) / 100,
        )


def refuse_bytes(wait_s: float, window: ByteWindow, size_bytes: int) -> None:
    """Raise `quota_exceeded` if the team must wait before it may upload this many bytes.

    `wait_s` is in seconds. Infinity means that the limit never allows that many bytes.
    """
    if wait_s > 0:
        never = f"{size_bytes:,} bytes are more than the {window.limit_bytes:,} that a team may upload in a minute."
        raise ServiceError(
            ErrorCode.QUOTA_EXCEEDED,
            never if isinf(wait_s) else None,
            limit_bytes=window.limit_bytes,
            used_bytes=window.used_bytes,
            requested_bytes=size_bytes,
            window_seconds=WINDOW_S,
            retry_after_seconds=WINDOW_S if isinf(wait_s) else ceil(wait_s),
        )
