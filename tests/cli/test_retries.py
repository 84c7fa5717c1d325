"""When a request is tried again, and the gate before creates."""

import random
import threading

import pytest

from svc_cli.client.pacing import Gate
from svc_cli.client.retries import RetryPolicy, is_worth_retrying, parse_retry_after
from tests.acceptance.installations import wait_until


@pytest.mark.parametrize(
    ("status", "code", "retryable", "worth"),
    [
        (503, "storage_full", True, True),
        (503, "shutting_down", True, True),
        (502, "search_failed", True, True),
        (408, "request_timeout", True, True),
        (409, "request_in_progress", True, True),
        (409, "bucket_store_indexing_pending", True, False),
        (409, "idempotency_key_conflict", False, False),
        (429, "rag_quota_exceeded", False, False),
        (500, "internal_error", False, False),
        (400, "empty_file", False, False),
    ],
)
def test_only_what_may_pass_soon_is_tried_again(status: int, code: str, retryable: bool, worth: bool) -> None:
    assert is_worth_retrying(status, code, retryable) is worth


def test_delays_double_with_jitter_and_end() -> None:
    policy = RetryPolicy(attempts=4, jitter=random.Random(1))
    delays = [policy.delay_s(attempt) for attempt in (1, 2, 3, 4)]
    assert delays[3] is None
    for delay_s, full_s in zip(delays[:3], (0.2, 0.4, 0.8), strict=True):
        assert delay_s is not None
        assert full_s / 2 <= delay_s <= full_s


def test_the_service_may_ask_for_a_longer_pause_but_not_for_any() -> None:
    policy = RetryPolicy()
    assert policy.delay_s(1, retry_after_s=3) == 3
    assert policy.delay_s(1, retry_after_s=3600) is None


def test_a_retry_after_header_is_seconds_or_nothing() -> None:
    headers = {"2": 2.0, "0.5": 0.5, "-1": 0.0, "soon": None, None: None}
    assert {text: parse_retry_after(text) for text in headers} == headers


def test_a_held_gate_holds_everybody_and_opens_again() -> None:
    gate = Gate()
    passed: list[int] = []

    def pass_through(number: int) -> None:
        gate.wait()
        passed.append(number)

    gate.hold(0.2)
    threads = [threading.Thread(target=pass_through, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    assert passed == []
    wait_until(lambda: len(passed) == 4, "all four through the gate", 5)
    for thread in threads:
        thread.join()
