"""Waiting until sources are settled, the delays of retries, the pacer of creates, and following events."""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPMessage
from typing import Any
from unittest.mock import Mock
from urllib.parse import parse_qs

import pytest

from svc_cli.client.api import Client
from svc_cli.client.events import EventFollower
from svc_cli.client.retries import CreatePacer, RetryPolicy, Stopped, is_worth_retrying, parse_retry_after
from svc_cli.client.waiting import FEW, LONGEST_PAUSE_S, Watch, is_settled, wait_until_settled
from svc_cli.commands.nouns import events
from svc_cli.errors import ApiError, NetworkFailed, WaitTimedOut
from svc_daemon.core.access.rate_limits import TokenBucket
from tests.cli.odd_servers import OddServer
from tests.cli.terminals import Json, RunSvc

NAMES = [f"src_{number:04}" for number in range(2000)]


class Service:
    """A fake service whose sources reach a final state at given times of a fake clock."""

    def __init__(self, ends: dict[str, tuple[float, str]]) -> None:
        #: By source id: the time of its final state in seconds, and the state: `ready`, `failed` or `gone`.
        self.ends, self.pauses = ends, list[float]()
        self.now_s, self.asked, self.listed, self.batches = 0.0, 0, 0, 0
        self.is_old = False

    def follow_events(self, filters: Mapping[str, str | int] | None = None) -> EventFollower:
        """Fail as a service of a release without events."""
        raise ApiError(404, {"code": "not_found"})

    def look_up_sources(self, source_ids: Sequence[str]) -> Json:
        raise AssertionError("a service without events has no such route")

    def source(self, source_id: str) -> Json:
        self.asked += 1
        state = self._state(source_id)
        if state == "gone":
            raise ApiError(404, {"code": "source_not_found", "details": {"replaced_by": "src_next"}})
        return {"id": source_id, "status": "active" if state == "ready" else state, "ready": state == "ready"}

    def sources_page(self, bucket: str, filters: Mapping[str, str | int] | None = None) -> Json:
        """Return a page of the bucket's sources after an id; sources that are gone are not in it."""
        asked = filters or {}
        assert bucket == "handbook"
        assert asked["status"] == "all"
        self.listed += 1
        later = [key for key in sorted(self.ends) if key > str(asked["after"]) and self._state(key) != "gone"]
        page = [self.source(key) for key in later[: int(asked["limit"])]]
        self.asked -= len(page)
        return {"sources": page, "has_more": len(page) < len(later), "last_id": page[-1]["id"] if page else None}

    def batch(self, batch_id: str, *, items: bool = False) -> Json:
        """Return a batch of a hundred sources in the order of their ids; sources that are gone are `deleted`."""
        assert items
        self.batches += 1
        number = int(batch_id.removeprefix("bat_"))
        members = [self._item(name) for name in sorted(self.ends)[number * 100 : number * 100 + 100]]
        return {"batch_id": batch_id, "items": members}

    def _item(self, source_id: str) -> Json:
        state = self._state(source_id)
        status = {"ready": "active", "gone": "deleted"}.get(state, state)
        facts = {"knowledge_id": source_id, "status": status, "ready": state == "ready", "error": None}
        return facts if self.is_old else facts | {"warnings": [f"of {source_id}"]}

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now_s += seconds

    def wait(self, watch: Watch, timeout_s: float | None = None) -> dict[str, Json]:
        return wait_until_settled(self, watch, timeout_s=timeout_s, sleep=self.sleep, clock=lambda: self.now_s)

    def _state(self, source_id: str) -> str:
        moment_s, state = self.ends[source_id]
        return state if self.now_s >= moment_s else "indexing"


def test_single_source_is_seen_ready_within_50_ms() -> None:
    service = Service({"a": (0.015, "ready")})
    assert service.wait(Watch(["a"]))["a"]["ready"] is True
    assert service.now_s < 0.05


def test_pause_grows_to_the_maximum_and_restarts_when_a_source_settles() -> None:
    service = Service({"a": (20, "ready"), "b": (40, "ready")})
    service.wait(Watch(["a", "b"]))
    assert max(service.pauses) == LONGEST_PAUSE_S
    assert service.asked < 2 * 2 * 40
    assert min(service.pauses[6:]) < 0.05


def test_failed_and_deleted_sources_end_the_wait() -> None:
    seen = Service({"a": (1, "failed"), "b": (1, "gone"), "c": (1, "ready")}).wait(Watch(["a", "b", "c"]))
    assert [seen[key]["status"] for key in "abc"] == ["failed", "gone", "active"]
    assert seen["b"]["replaced_by"] == "src_next"


def test_many_sources_are_polled_through_pages_of_their_bucket() -> None:
    service = Service({name: (number / 100, "ready") for number, name in enumerate(NAMES[:1000])})
    assert all(source["ready"] for source in service.wait(Watch(NAMES[:1000], "handbook")).values())
    assert service.asked <= FEW * 10
    assert service.listed < 60


def test_only_sources_that_left_the_bucket_are_requested_one_by_one() -> None:
    gone = {NAMES[7], NAMES[250], NAMES[299]}
    service = Service({name: (1, "gone" if name in gone else "ready") for name in NAMES[:300]})
    seen = service.wait(Watch(NAMES[:300], "handbook"))
    assert {name for name in seen if seen[name]["status"] == "gone"} == gone
    assert service.asked == len(gone)
    service = Service(dict.fromkeys(NAMES, (0, "ready")))
    assert set(service.wait(Watch(NAMES[::100], "handbook"))) == set(NAMES[::100]), "other sources are ignored"
    assert service.asked == 0


def test_sources_sent_in_batches_are_polled_through_their_batches() -> None:
    gone = {NAMES[7], NAMES[250], NAMES[299]}
    batches = {name: f"bat_{number // 100}" for number, name in enumerate(NAMES[:1000])}
    ends = {name: (number / 100, "gone" if name in gone else "ready") for number, name in enumerate(NAMES[:1000])}
    service = Service(ends)
    seen = service.wait(Watch(NAMES[:1000], "handbook", batches))
    assert {name for name in seen if seen[name]["status"] == "gone"} == gone
    assert all(seen[name]["warnings"] == [f"of {name}"] for name in seen if name not in gone)
    assert service.asked == len(gone)
    assert service.listed == 0
    assert service.batches <= 10 + len(service.pauses)
    service = Service(ends)
    service.is_old = True
    assert all(map(is_settled, service.wait(Watch(NAMES[:1000], "handbook", batches)).values()))
    assert service.batches == 1, "an older service reports no warnings of a batch's items"
    assert service.listed > 0, "an older service reports no warnings of a batch's items"


def test_timeout_names_the_sources_that_are_not_settled() -> None:
    service = Service({"a": (1, "ready"), "b": (100, "ready")})
    watch = Watch(["a", "b"])
    with pytest.raises(WaitTimedOut) as late:
        service.wait(watch, timeout_s=5)
    assert late.value.details == {"source_ids": ["b"]}
    assert late.value.hint == "svc wait b"
    assert watch.seen["a"]["ready"] is True
    assert 5 <= service.now_s < 6.5


def test_follower_returns_no_events_for_a_negative_timeout() -> None:
    with Client("http://127.0.0.1:9", "sk-test") as client:
        assert client.follow_events().take(-0.001) == []


def test_wait_raises_other_api_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Service, "source", Mock(side_effect=ApiError(401, {"code": "invalid_project_key"})))
    with pytest.raises(ApiError, match="answered 401"):
        Service({"a": (0, "ready")}).wait(Watch(["a"]))


def test_only_errors_that_may_pass_soon_are_retried() -> None:
    soon = [(503, "storage_full"), (503, "shutting_down"), (502, "search_failed"), (408, "request_timeout")]
    never = [(409, "idempotency_key_conflict"), (429, "rag_quota_exceeded"), (500, "internal_error")]
    rows = [*((row, True, True) for row in [*soon, (409, "request_in_progress")])]
    rows += [((409, "bucket_store_indexing_pending"), True, False)]
    rows += [(row, False, False) for row in [*never, (400, "empty_file")]]
    for (status, code), retryable, worth in rows:
        assert is_worth_retrying(status, code, retryable=retryable) is worth, code


def test_retry_delays_double_with_jitter_and_follow_retry_after() -> None:
    assert RetryPolicy().delay_s(1, 3) == 3
    assert RetryPolicy().delay_s(1, 3600) is None
    policy = RetryPolicy(attempts=4, jitter=random.Random(1))
    delays = [policy.delay_s(attempt) for attempt in (1, 2, 3, 4)]
    assert delays[3] is None
    for delay_s, full_s in zip(delays[:3], (0.2, 0.4, 0.8), strict=True):
        assert delay_s is not None
        assert full_s / 2 <= delay_s <= full_s


@pytest.mark.parametrize(
    ("value", "asked_s"),
    (
        *(("2", 2.0), ("0.5", 0.5), (" 7 ", 7.0), ("-1", 0.0), ("9" * 300, 10.0**9)),
        *(("soon", None), ("", None), ("nan", None), ("inf", None), ("1e3", None), ("5 s", None), ("٣", None)),
        *(("Fri, 31 Dec 1999 23:59:59 GMT", 2.0), ("Friday, 31-Dec-99 23:59:59 GMT", 2.0)),
        *(("Fri Dec 31 23:59:59 1999", 2.0), ("Fri, 31 Dec 1999 23:59:50 GMT", 0.0)),
        *(("Sat, 01 Jan 2000 01:59:59 +0200", 2.0), ("Fri, 31 Dec 9999 23:59:59 GMT", 10.0**9)),
        *(("Fri, 99 Dec 1999 23:59:59 GMT", None), ("Fri, 31 Dec", None)),
    ),
)
def test_retry_after_is_read_as_seconds_and_as_each_form_of_a_date(value: str, asked_s: float | None) -> None:
    answered = HTTPMessage()
    answered["Retry-After"], answered["Date"] = value, "Fri, 31 Dec 1999 23:59:57 GMT"
    assert parse_retry_after(answered) == asked_s
    assert parse_retry_after(HTTPMessage()) is None


class Clock:
    """A fake clock that is set forward by waiting for a pacer."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def _moments(pacer: CreatePacer, clock: Clock, count: int, after: Callable[[], None] = lambda: None) -> list[float]:
    """Return when the pacer admits each create of a caller that waits exactly as long as it has to."""
    moments = []
    for _ in range(count):
        while (left_s := pacer._take()) > 0:
            clock.now_s += left_s
        moments.append(clock.now_s)
        after()
    return moments


@pytest.mark.parametrize(("per_second", "late_s"), ((1, 0.0), (2, 0.0), (2, 0.15), (5, 0.0), (5, 0.15), (50, 0.01)))
def test_paced_creates_never_find_the_token_bucket_empty(per_second: int, late_s: float) -> None:
    pacer = CreatePacer(clock := Clock())
    pacer.pace(per_second)
    moments = _moments(pacer, clock, 200)
    arrivals = sorted(moment + (late_s if number % 3 == 0 else 0.0) for number, moment in enumerate(moments))
    service = TokenBucket.full(per_second, arrivals[0])
    assert [service.take(arrival_s) for arrival_s in arrivals] == [0.0] * 200
    assert moments[-1] - moments[0] <= 200 / per_second * 1.02


def test_create_that_was_given_back_causes_no_wait() -> None:
    pacer = CreatePacer(clock := Clock())
    pacer.pace(5)
    moments = _moments(pacer, clock, 100, after=pacer.give_back)
    assert moments[-1] == moments[0]


def test_without_a_pace_only_a_hold_makes_creates_wait() -> None:
    pacer = CreatePacer(clock := Clock())
    assert _moments(pacer, clock, 50)[-1] == 100.0
    pacer.hold(3)
    pacer.hold(1)
    assert _moments(pacer, clock, 1) == [103.0]


@pytest.mark.parametrize("is_stopped", [False, True])
def test_held_creates_of_all_threads_wait_until_the_pause_ends_or_the_client_stops(is_stopped: bool) -> None:
    pacer = CreatePacer()
    pacer.hold(60 if is_stopped else 0.2)
    with ThreadPoolExecutor(4) as threads:
        passing = [threads.submit(pacer.wait) for _ in range(4)]
        assert not any(each.done() for each in passing)
        if is_stopped:
            pacer.stop()
        assert [type(each.exception(10)) for each in passing] == [Stopped if is_stopped else type(None)] * 4


def test_follower_returns_received_events_before_it_raises_a_failure() -> None:
    follower = EventFollower(Mock(), {})
    for came in ({"type": "source.ready"}, {"type": "source.failed"}, NetworkFailed("gone")):
        follower._came.put(came if isinstance(came, NetworkFailed) else (None, came))
    assert [event["type"] for event in follower.take()] == ["source.ready", "source.failed"]
    with pytest.raises(NetworkFailed):
        follower.take()


def streamed(*ids: str) -> tuple[int, bytes, dict[str, str]]:
    """Return an answer that streams these events and then ends."""
    rows = [{"id": each, "type": "source.ready", "created_at": "2026-01-01T12:00:00.000Z", "data": {}} for each in ids]
    lines = "".join(f"id: {row['id']}\ndata: {json.dumps(row)}\n\n" for row in rows)
    return 200, lines.encode(), {"Content-Type": "text/event-stream"}


@pytest.mark.rule("log.follow")
def test_follow_resumes_after_the_last_event_and_warns_if_it_has_expired(
    svc: RunSvc, odd: OddServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "RETURN_PAUSE_S", 0.0)
    monkeypatch.setattr(RetryPolicy, "delay_s", lambda _, attempt, __=None: 0.0 if attempt < 2 else None)
    monkeypatch.setenv("SVC_API_KEY", "sk-mine")
    odd.answer_health()
    asked: list[str] = []
    expired, refused = (
        (status, {"error": {"code": code, "message": "no"}}, dict[str, str]())
        for status, code in ((410, "events_expired"), (401, "invalid_project_key"))
    )
    away = [None, None]
    # The first stream breaks before its first line.
    answers: list[Any] = [streamed(), *away, streamed("evt_1"), *away, expired, streamed("evt_2"), refused]

    def answer(query: str) -> Any:
        resumed = odd.requests[-1][2].get("Last-Event-ID")
        asked.append(resumed or parse_qs(query)["after"][0])
        return answers[len(asked) - 1]

    odd.answers["GET /v1/events"] = answer
    ended = svc("events", "--follow", "--after", "evt_0", "--ndjson", "--base-url", odd.url)
    assert asked == [*["evt_0"] * 4, *["evt_1"] * 3, "latest", "evt_2"]
    *shown, failure = map(json.loads, ended.stdout.splitlines())
    assert [each["id"] for each in shown] == ["evt_1", "evt_2"]
    assert ended.exit == 4
    assert failure["error"]["code"] == "invalid_project_key"
    assert [ended.stderr.count(words) for words in ("the service is away", "may be missing")] == [2, 1]
