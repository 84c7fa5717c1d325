"""Sources: readiness with every combination of memberships, and what follows from each try of a schedule."""

from itertools import combinations_with_replacement, permutations, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_daemon.core import refreshes
from svc_daemon.core.readiness import ACTIVE, ARCHIVED, DELETING, is_ready, store_status, sync_status
from svc_daemon.core.refreshes import LONGEST_PAUSE_S, Outcome, Verdict, is_gone, judge, spread_s, start, why_stale
from svc_daemon.wire.sources import SourceError, StoredRefresh
from tests.rules.modules import modules

STATUSES = ("queued", "indexing", "active", "failed")
SYNCS = ("queued", "syncing", "active", "failed")
#: The sync status is the first of these that a membership has.
SLOWEST_FIRST = ("failed", "queued", "syncing", "active")
MEMBERSHIPS = [some for size in range(4) for some in combinations_with_replacement(SYNCS, size)]


@pytest.mark.rule("source.ready")
def test_a_source_is_ready_if_it_and_all_its_memberships_are_active() -> None:
    for status, memberships in product(STATUSES, MEMBERSHIPS):
        expected = status == "active" and len(memberships) > 0 and set(memberships) == {"active"}
        assert is_ready(status, memberships) is expected, (status, memberships)


@pytest.mark.parametrize("memberships", MEMBERSHIPS)
def test_the_sync_status_is_that_of_the_least_advanced_membership(memberships: tuple[str, ...]) -> None:
    expected = next((sync for sync in SLOWEST_FIRST if sync in memberships), "queued")
    assert {sync_status(order) for order in permutations(memberships)} == {expected}


@pytest.mark.parametrize(("ready", "waiting", "failed"), [*product((0, 1), repeat=3)])
def test_the_status_of_a_buckets_index_follows_from_its_counts(ready: int, waiting: int, failed: int) -> None:
    status = "degraded" if failed else "indexing" if waiting else "active" if ready else "empty"
    assert store_status(ready, waiting, failed) == status
    # A rebuild has priority over all counts.
    assert store_status(ready, waiting, failed, in_maintenance=True) == "maintenance"


def test_operations_use_the_constants_for_statuses_of_buckets() -> None:
    operations = [module for module in modules("svc_daemon") if module.name.startswith("svc_daemon.operations.")]
    spelled = [
        (each.name, word) for each in operations for word in (ACTIVE, ARCHIVED, DELETING) if f'"{word}"' in each.source
    ]
    assert spelled == []


NOW, LEAST_S, DAY_S = "2026-01-02T00:00:00.000Z", 900, 86_400
DOWN: SourceError = {"code": "url_fetch_failed", "message": "The remote host answered 503.", "retryable": True}
LOGIN: SourceError = {"code": "url_is_web_page", "message": "The URL is a web page.", "retryable": False}
MISSING: SourceError = {"code": "url_fetch_failed", "message": "The remote host answered 404.", "retryable": True}


def after(*outcomes: tuple[Outcome, SourceError | None], every: int = DAY_S, on_gone: str = "report") -> Verdict:
    """The verdict on the last of these tries, with a jitter that changes no pause."""
    refresh, verdict = start(every, on_gone), None
    for outcome, error in outcomes:
        verdict = judge(refresh, outcome, NOW, LEAST_S, 0.5, error)
        refresh = verdict.refresh
    assert verdict is not None
    return verdict


SAME, NEW = (Outcome.UNCHANGED, None), (Outcome.CHANGED, None)
FAIL, FORM, GONE = (Outcome.FAILED, DOWN), (Outcome.FAILED, LOGIN), (Outcome.GONE, MISSING)


@pytest.mark.parametrize(
    ("outcomes", "every", "expected"),
    [
        ((SAME,), DAY_S, DAY_S),
        ((NEW,), DAY_S, DAY_S),
        *[((FAIL,) * tries, DAY_S, pause_s) for tries, pause_s in ((1, 900), (2, 1800), (3, 3600), (9, DAY_S))],
        *[((FAIL,) * tries, 900, pause_s) for tries, pause_s in ((1, 900), (5, 14_400), (6, LONGEST_PAUSE_S))],
        ((FAIL, FAIL, SAME), 3600, 3600),
        ((GONE,), DAY_S, DAY_S),
        ((GONE,), 900, 900),
        ((FAIL, FAIL, GONE), 900, 3600),
    ],
)
def test_the_next_try_is_due_after_the_interval_or_after_a_pause_that_grows(
    outcomes: Any, every: int, expected: float
) -> None:
    assert after(*outcomes, every=every).pause_s == pytest.approx(expected)


@pytest.mark.parametrize(
    ("outcomes", "failures", "gone", "error"),
    [
        ((SAME,), 0, 0, None),
        ((FAIL, FORM), 2, 0, LOGIN),
        ((GONE, GONE), 2, 2, MISSING),
        ((GONE, FAIL, GONE), 3, 1, MISSING),
        ((GONE, GONE, SAME, GONE), 1, 1, MISSING),
        ((FAIL, NEW), 0, 0, None),
    ],
)
def test_failures_are_counted_until_a_try_succeeds(outcomes: Any, failures: int, gone: int, error: Any) -> None:
    refresh = after(*outcomes).refresh
    assert (refresh["failures"], refresh["gone"], refresh["error"], refresh["tried_at"]) == (failures, gone, error, NOW)


@pytest.mark.parametrize(
    ("outcomes", "is_news"),
    [
        ((SAME,), False),
        ((FAIL,), True),
        ((FAIL, FAIL), False),
        ((FAIL, FORM), True),
        ((FAIL, SAME), True),
        ((FAIL, SAME, SAME), False),
        ((GONE, GONE), False),
        ((GONE, GONE, GONE), True),
        ((GONE,) * 4, False),
    ],
)
def test_clients_are_told_of_what_is_new(outcomes: Any, is_news: bool) -> None:
    assert after(*outcomes).is_news is is_news


@pytest.mark.parametrize("on_gone", ["report", "delete"])
@pytest.mark.parametrize(
    ("outcomes", "is_third"), [((GONE,) * 2, False), ((GONE,) * 3, True), ((GONE, FAIL, GONE, GONE), False)]
)
def test_only_a_third_missing_page_in_a_row_is_deleted_and_only_if_that_was_asked_for(
    outcomes: Any, is_third: bool, on_gone: str
) -> None:
    verdict = after(*outcomes, on_gone=on_gone)
    assert is_gone(verdict.refresh) is is_third
    assert verdict.is_over is (is_third and on_gone == "delete")


def test_a_source_is_stale_from_its_first_failure_until_a_try_succeeds() -> None:
    assert (why_stale(None), why_stale(start(900, "report")), why_stale(after(FAIL, SAME).refresh)) == (None,) * 3
    assert why_stale(after(FAIL).refresh) == "Its refresh failed once: The remote host answered 503."
    assert why_stale(after(FAIL, GONE).refresh) == "Its refresh failed 2 times in a row: The remote host answered 404."


@given(
    st.sampled_from([SAME, NEW, FAIL, GONE]),
    st.integers(min_value=0, max_value=10**9),
    st.integers(min_value=LEAST_S, max_value=refreshes.LONGEST_EVERY_S),
    st.floats(min_value=0, max_value=1, exclude_max=True),
)
def test_a_pause_is_never_shorter_than_the_least_nor_much_longer_than_the_longest(
    outcome: Any, failures: int, every: int, jitter: float
) -> None:
    refresh: StoredRefresh = {**start(every, "report"), "failures": failures}
    pause_s = judge(refresh, outcome[0], NOW, LEAST_S, jitter, outcome[1]).pause_s
    assert LEAST_S <= pause_s <= max(every, LONGEST_PAUSE_S) * 1.1


def test_pauses_of_what_was_imported_together_are_spread() -> None:
    assert [spread_s(1000, LEAST_S, jitter) for jitter in (0.0, 0.5)] == [900, 1000]
    assert spread_s(1000, LEAST_S, 0.999) == pytest.approx(1100, abs=1)
