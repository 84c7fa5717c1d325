"""Calendar months of UTC, by which a plan counts."""

from datetime import datetime

from svc_daemon.core.times import to_text


def month_of(moment: datetime) -> str:
    """Such as `2026-01`, of a moment in UTC."""
    return moment.strftime("%Y-%m")


def end_of_month(moment: datetime) -> str:
    """The first moment of the month after, as it is told."""
    first = moment.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return to_text(first.replace(year=first.year + first.month // 12, month=first.month % 12 + 1))
