"""Waiting until sources are settled, the delays of retries, the pacer of creates, and following events."""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPMessage
from threading import Event
from typing import Any, Self
from unittest.mock import Mock
from urllib.parse import parse_qs

import pytest

from svc_cli.client import retries
from svc_cli.client.api import Client
from svc_cli.client.events import EventFollower
from svc_cli.client.retries import CreatePacer, RetryPolicy, Stopped, is_worth_retrying, parse_retry_after
from svc_cli.client.waiting import Watch, look_up, wait_and_look_up, wait_until_settled
from svc_cli.commands.nouns import events
from svc_cli.deadlines import Deadline
from svc_cli.errors import ApiError, NetworkFailed, WaitTimedOut
from svc_daemon.core.access.rate_limits import TokenBucket
from tests.cli.odd_servers import OddServer
from tests.cli.terminals import Json, RunSvc


class _Follower(EventFollower):
    """A follower of a service that sends nothing after these events."""

    def __init__(self, rows: Sequence[Json]) -> None:
        super().__init__(Mock(), {})
        for number, row in enumerate(rows):
            self._came.put((f"evt_{number}", row))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Service:
    """A fake service: its sources as they are looked up, and the events that come then."""

    def __init__(self, statuses: Mapping[str, str], *rows: Json) -> None:
        self.statuses, self.rows = statuses, rows

    def follow_events(self, filters: Mapping[str, str | int] | None = None) -> EventFollower:
        return _Follower(self.rows)

    def look_up_sources(self, source_ids: Sequence[str]) -> Json:
        found = [{"id": each, "status": self.statuses[each], "ready": False} for each in source_ids]
        missing = [row["id"] for row in found if row["status"] == "gone"]
        listed = [row for row in found if row["status"] != "gone"]
        return {"sources": listed, "missing": missing, "replaced_by": dict.fromkeys(missing, "src_next")}

    def source(self, source_id: str) -> Json:
        return {"id": source_id, "status": self.statuses[source_id], "waits_for": {"message": "The disk is full."}}


def test_what_the_service_waits_for_is_shown_when_no_event_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("svc_cli.client.waiting.QUIET_S", 0.01)
    watch, shown, service = Watch(["a"]), list[str](), Service({"a": "indexing"})

    def show(seen: Watch) -> None:
        shown.append(seen.waits_for)
        if seen.waits_for:
            service.statuses = {"a": "failed"}
            look_up(service, seen)

    wait_until_settled(service, watch, on_change=show)
    assert shown[0] == ""
    assert shown[-1] == "The disk is full."


def test_sources_that_events_have_settled_are_looked_up_once_at_the_end() -> None:
    looks: list[Sequence[str]] = []

    class Indexed(Service):
        def look_up_sources(self, source_ids: Sequence[str]) -> Json:
            looks.append(source_ids)
            rows: dict[str, Json] = {
                "b": {"id": "b", "status": "active", "ready": True, "bucket_sync_status": "active"},
                # The index is being rebuilt.
                "c": {"id": "c", "status": "active", "ready": False},
            }
            later: Json = {"sources": [rows[each] for each in source_ids if each in rows], "missing": []}
            return super().look_up_sources(source_ids) if len(looks) == 1 else later

    told = [{"type": "source.ready", "source_id": each, "data": {"status": "active", "ready": True}} for each in "bc"]
    states = wait_and_look_up(Indexed({"a": "failed", "b": "queued", "c": "queued"}, *told), "abc", None)
    assert looks == [["a", "b", "c"], ["b", "c"]]
    assert states["b"]["bucket_sync_status"] == "active"
    assert [state["ready"] for state in states.values()] == [False, True, True]
    looks.clear()
    wait_and_look_up(Indexed({"a": "failed"}), "a", None)
    assert looks == [["a"]]


def test_failed_deleted_and_ready_sources_end_the_wait() -> None:
    ready = {"type": "source.ready", "source_id": "c", "data": {"status": "active", "ready": True}}
    deleted = {"type": "source.deleted", "source_id": "d", "data": {}}
    service = Service({"a": "failed", "b": "gone", "c": "indexing", "d": "queued"}, ready, deleted)
    seen = wait_until_settled(service, Watch("abcd"))
    assert [seen[key]["status"] for key in "abcd"] == ["failed", "gone", "active", "gone"]
    assert seen["b"]["replaced_by"] == "src_next"


def test_older_service_that_lacks_a_type_of_event_is_followed_by_groups_of_types() -> None:
    asked = list[str]()

    class Older(Service):
        def follow_events(self, filters: Mapping[str, str | int] | None = None) -> EventFollower:
            asked.append(str((filters or {})["types"]))
            if "source.scanning" in asked[-1]:
                raise ApiError(
                    400, {"code": "invalid_request", "message": "types: has no event type 'source.scanning'"}
                )
            return super().follow_events(filters)

    ready = {"type": "source.ready", "source_id": "a", "data": {"status": "active", "ready": True}}
    renamed = {"type": "source.updated", "source_id": "a", "data": {"title": "Quay"}}
    seen = wait_until_settled(Older({"a": "indexing", "b": "gone"}, ready, renamed), Watch("ab"))
    assert (seen["a"]["status"], seen["a"]["ready"], asked[1:]) == ("active", True, ["source,store"])


def test_timeout_names_the_sources_that_are_not_settled() -> None:
    watch = Watch(["a", "b"])
    with pytest.raises(WaitTimedOut) as late:
        wait_until_settled(Service({"a": "failed", "b": "indexing"}), watch, timeout_s=0.01)
    assert late.value.details == {"source_ids": ["b"]}
    assert late.value.hint == "svc wait b"
    assert watch.seen["a"]["status"] == "failed"


def test_follower_returns_no_events_for_a_negative_timeout() -> None:
    with Client("http://127.0.0.1:9", "sk-test") as client:
        assert client.follow_events().take(-0.001) == []


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


@pytest.mark.parametrize(("longest_s", "pauses"), ((60.0, 30), (0.05, 7)))
def test_waits_for_the_same_request_of_another_client_are_no_attempts(
    longest_s: float, pauses: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retries, "LONGEST_RUN_S", longest_s)
    running = {"code": "request_in_progress", "retryable": True, "details": {"retry_after_seconds": 0.01}}
    attempts = retries.Attempts(RetryPolicy(attempts=3, first_delay_s=0.001), Deadline(None), Event())
    made = 0
    with suppress(ApiError):
        while made < 30:
            attempts.pause(ApiError(409, {**running, "message": "Running."}, "req_1"))
            made += 1
    assert made == pauses


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
