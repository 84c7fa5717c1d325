"""Moments as the contract writes them, a plan's months, and the clock that everything takes as an argument."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta


@dataclass(frozen=True, slots=True)
class Clock:
    """Two times: the wall's, for what is stored and shown, and a steady one, for leases, time-outs and rates."""

    #: Aware UTC datetime of now.
    now: Callable[[], datetime]
    #: Seconds that never go back, from an arbitrary start.
    monotonic: Callable[[], float]

    def timestamp(self, after_s: float = 0) -> str:
        """Now, or `after_s` seconds from now, as it is stored."""
        return to_text(self.now() + timedelta(seconds=after_s))


def to_text(moment: datetime) -> str:
    """ISO 8601 UTC with milliseconds and `Z`; such texts sort as the moments do."""
    if moment.tzinfo is None:
        raise ValueError("a moment needs a time zone")
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def from_text(text: str) -> datetime:
    return datetime.fromisoformat(text)


def parse_span_s(text: str) -> float | None:
    """Seconds of `90s`, `5m`, `12h` or `30d`; None for anything else."""
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    number, unit = text[:-1], text[-1:]
    is_span = unit in units and number.isascii() and number.isdigit() and len(number) <= 9
    return float(int(number) * units[unit]) if is_span else None


def month_of(moment: datetime) -> str:
    """Such as `2026-01`, of a moment in UTC."""
    return moment.strftime("%Y-%m")


def end_of_month(moment: datetime) -> str:
    """The first moment of the month after, as text."""
    first = moment.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return to_text(first.replace(year=first.year + first.month // 12, month=first.month % 12 + 1))
