"""When a request is tried again, and the gate before creates."""

import random
import threading

from svc_cli.client.pacing import Gate
from svc_cli.client.retries import RetryPolicy, is_worth_retrying, parse_retry_after
from tests.acceptance.installations import wait_until


def test_only_what_may_pass_soon_is_tried_again() -> None:
    soon = [(503, "storage_full"), (503, "shutting_down"), (502, "search_failed"), (408, "request_timeout")]
    for status, code in [*soon, (409, "request_in_progress")]:
        assert is_worth_retrying(status, code, retryable=True)
    assert not is_worth_retrying(409, "bucket_store_indexing_pending", retryable=True)
    never = [
        (409, "idempotency_key_conflict"),
        (429, "rag_quota_exceeded"),
        (500, "internal_error"),
        (400, "empty_file"),
    ]
    for status, code in never:
        assert not is_worth_retrying(status, code, retryable=False)


def test_delays_double_with_jitter_and_end_and_the_service_may_ask_for_a_longer_one() -> None:
    assert (RetryPolicy().delay_s(1, 3), RetryPolicy().delay_s(1, 3600)) == (3, None)
    policy = RetryPolicy(attempts=4, jitter=random.Random(1))
    delays = [policy.delay_s(attempt) for attempt in (1, 2, 3, 4)]
    assert delays[3] is None
    for delay_s, full_s in zip(delays[:3], (0.2, 0.4, 0.8), strict=True):
        assert delay_s is not None
        assert full_s / 2 <= delay_s <= full_s


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
