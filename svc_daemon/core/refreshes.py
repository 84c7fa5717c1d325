"""When a source from a URL is fetched again by itself, and what follows from each try.

Each try of a schedule has one outcome:

    unchanged   the host has the same content: nothing is indexed, and the next try is due after the interval
    changed     the content is new: it is indexed beside the old text, which it replaces
    gone        the host answered 404 or 410: counted, and tried again after the interval. From the third time in a row,
                the source is deleted if its owner asked for that, and otherwise only reported
    failed      anything else, such as a time-out, a login form or a file without text: counted, and tried again sooner
                at first, then less and less often

Whatever the outcome, searches find the old text until the index has the new one. A schedule is a row of the state
database, so a killed daemon goes on with it. The caller passes the time and a random number.
"""

from dataclasses import dataclass
from enum import StrEnum

from svc_daemon.wire.sources import SourceError, StoredRefresh

#: The longest interval, in seconds: a year.
LONGEST_EVERY_S = 366 * 86400
#: After so many answers in a row that there is no such page, the page is gone.
GONE_TRIES = 3
#: The longest pause after a failure, unless the interval is longer.
LONGEST_PAUSE_S = 6 * 3600
#: The longest time for which a host may ask to be left alone (`Retry-After`), in seconds.
LONGEST_ASKED_S = 86_400
#: Pauses differ by up to this share in both directions, so that what was imported together is spread.
SPREAD = 0.1
#: From this failure on, the pause does not grow; otherwise its computation would overflow.
_LONGEST_FROM = 20

#: The HTTP statuses of a page that its host has removed.
GONE_STATUSES = (404, 410)


class Outcome(StrEnum):
    """How a try ended."""

    UNCHANGED = "unchanged"
    CHANGED = "changed"
    GONE = "gone"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What follows from a try."""

    refresh: StoredRefresh
    #: Seconds until the next try.
    pause_s: float
    #: Whether clients get an event: of the first failure, of another one, of a page that is gone, and when it is over.
    is_news: bool = False
    #: Whether the source is to be deleted, because its page is gone and its owner asked for that.
    is_over: bool = False


def start(every_seconds: int, on_gone: str) -> StoredRefresh:
    """Return a new schedule, without any try."""
    return StoredRefresh(every_seconds=every_seconds, on_gone=on_gone, failures=0, gone=0, tried_at=None, error=None)


def spread_s(every_s: float, least_s: float, jitter: float) -> float:
    """Return the interval, changed a little by `jitter` in [0, 1), but not to less than `least_s`."""
    return max(every_s * (1 - SPREAD + 2 * SPREAD * jitter), least_s)


def judge(
    refresh: StoredRefresh, outcome: Outcome, now: str, least_s: float, jitter: float, error: SourceError | None = None
) -> Verdict:
    """Return the schedule after a try at `now`, and when the next one is due. A failure comes with its `error`.

    `least_s` is the shortest interval that the service permits, and the first pause after a failure.
    """
    every_s = refresh["every_seconds"]
    if outcome in (Outcome.UNCHANGED, Outcome.CHANGED):
        kept: StoredRefresh = {**refresh, "tried_at": now, "failures": 0, "gone": 0, "error": None}
        return Verdict(kept, spread_s(every_s, least_s, jitter), is_news=refresh["failures"] > 0)
    failures = refresh["failures"] + 1
    gone = refresh["gone"] + 1 if outcome is Outcome.GONE else 0
    pause_s = min(least_s * 2.0 ** min(failures - 1, _LONGEST_FROM), max(every_s, LONGEST_PAUSE_S))
    if outcome is Outcome.GONE:
        # A host may lack its pages for an hour, so don't ask three times within it.
        pause_s = max(pause_s, every_s)
    failed: StoredRefresh = {**refresh, "tried_at": now, "failures": failures, "gone": gone, "error": error}
    known = refresh["error"]
    is_new = known is None or error is None or known["code"] != error["code"]
    is_over = gone >= GONE_TRIES and refresh["on_gone"] == "delete"
    return Verdict(failed, spread_s(pause_s, least_s, jitter), is_news=is_new or gone == GONE_TRIES, is_over=is_over)


def is_gone(refresh: StoredRefresh) -> bool:
    """Return whether the page has been missing often enough to count as gone."""
    return refresh["gone"] >= GONE_TRIES


def why_stale(refresh: StoredRefresh | None) -> str | None:
    """Return why a source's text may be outdated: its last refreshes failed. None if nothing is known against it."""
    if refresh is None or refresh["error"] is None:
        return None
    times = "once" if refresh["failures"] == 1 else f"{refresh['failures']} times in a row"
    return f"Its refresh failed {times}: {refresh['error']['message']}"
