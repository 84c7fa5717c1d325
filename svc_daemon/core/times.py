"""Clocks, the text format of times, and calendar months."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta


@dataclass(frozen=True, slots=True)
class Clock:
    """The daemon's clocks: a wall clock for times that are stored or shown, a monotonic one for timeouts, and one for
    leases.
    """

    #: Returns the current time as an aware UTC datetime.
    now: Callable[[], datetime]
    #: Returns seconds of a monotonic clock.
    monotonic: Callable[[], float]
    #: Returns seconds of a clock that all nodes of a cluster share; None if there is a single node.
    shared: Callable[[], float] | None = None

    def lease_s(self) -> float:
        """Return the time in seconds to compare with the end of leases, on a clock that all nodes share."""
        return self.monotonic() if self.shared is None else self.shared()

    def timestamp(self, after_s: float = 0) -> str:
        """Return the current time plus `after_s` seconds, in the stored format."""
        now = self.now()
        return to_text(now + timedelta(seconds=after_s) if after_s else now)


def to_text(moment: datetime) -> str:
    """Format as ISO 8601 UTC with milliseconds and `Z`, so that texts sort by time."""
    if moment.tzinfo is None:
        raise ValueError("a moment needs a time zone")
    # Converting is slow, and times are nearly always in UTC.
    in_utc = moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    return in_utc.isoformat(timespec="milliseconds")[: -len("+00:00")] + "Z"


def from_text(text: str) -> datetime:
    return datetime.fromisoformat(text)


def parse_span_s(text: str) -> float | None:
    """Convert `90s`, `5m`, `12h` or `30d` to seconds; None if the text is invalid."""
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    number, unit = text[:-1], text[-1:]
    is_span = unit in units and number.isascii() and number.isdigit() and len(number) <= 9
    return float(int(number) * units[unit]) if is_span else None


def month_of(moment: datetime) -> str:
    """Format the month of a UTC datetime, such as `2026-01`."""
    return moment.strftime("%Y-%m")


def end_of_month(moment: datetime) -> str:
    """Return the start of the next month, as text."""
    first = moment.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return to_text(first.replace(year=first.year + first.month // 12, month=first.month % 12 + 1))
