"""Tasks: pauses before retries, which errors are shortages, and which lane starts a child process next."""

import errno
import os
import sqlite3
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_daemon.core.lanes import FEW, LANES, PROMPT, SCAN, SINGLE, SUSPECT, WAVE, choose, fill, in_turn
from svc_daemon.core.shortages import ERRNOS, SENTENCES, ShortageKind, find_shortage
from svc_daemon.core.task_retries import LONGEST_PAUSE_S, is_last, pause_s, retry_after_s


def test_pauses_grow_to_a_minute() -> None:
    assert [pause_s(attempt, jitter=0.5) for attempt in range(1, 7)] == [1, 4, 16, 60, 60, 60]


@given(st.integers(min_value=1, max_value=10**9), st.floats(min_value=0, max_value=1, exclude_max=True))
def test_a_pause_is_limited_after_any_number_of_attempts(attempt: int, jitter: float) -> None:
    pause = pause_s(attempt, jitter)
    assert 0.5 <= pause <= LONGEST_PAUSE_S * 1.5


def test_jitter_multiplies_a_pause_by_half_to_one_and_a_half() -> None:
    assert pause_s(2, 0.0) == 2
    assert pause_s(2, 0.999_999) == pytest.approx(6, abs=0.001)


@pytest.mark.parametrize(
    ("attempt", "attempts", "is_final"), [(1, 3, False), (2, 3, False), (3, 3, True), (4, 3, True), (1, 1, True)]
)
def test_an_attempt_is_the_last_if_no_retry_helps_or_none_is_left(attempt: int, attempts: int, is_final: bool) -> None:
    assert is_last(attempt, attempts, retryable=True) is is_final
    assert is_last(attempt, attempts, retryable=False)


@pytest.mark.parametrize(
    ("elapsed_s", "done", "total", "expected"),
    [
        *((0.0, 0, None, 1), (9.0, 0, 100, 1), (9.0, 5, None, 1), (10.0, 10, 15, 5)),
        *((1.0, 10, 11, 1), (1.0, 10, 10, 1), (60.0, 1, 1000, 30)),
        # The clock was set back.
        (-60.0, 10, 20, 1),
    ],
)
def test_retry_after_estimates_the_remaining_time_within_limits(
    elapsed_s: float, done: int, total: int | None, expected: int
) -> None:
    assert retry_after_s(elapsed_s, done, total) == expected


@pytest.mark.parametrize(("number", "lack"), ERRNOS.items())
def test_the_error_number_shows_the_missing_resource(number: int, lack: ShortageKind) -> None:
    error = OSError(number, os.strerror(number))
    assert find_shortage(error) is lack
    try:
        try:
            raise error
        except OSError as cause:
            raise RuntimeError("in other words") from cause
    except RuntimeError as reworded:
        assert find_shortage(ExceptionGroup("several", [ValueError("another"), reworded])) is lack


def test_a_full_database_and_exhausted_memory_are_shortages() -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("PRAGMA max_page_count = 1")
    with pytest.raises(sqlite3.OperationalError) as full:
        connection.execute("CREATE TABLE notes (text TEXT)")
    connection.close()
    assert find_shortage(full.value) is ShortageKind.DISK
    with pytest.raises(MemoryError) as memory:
        bytearray(1 << 62)
    assert find_shortage(memory.value) is ShortageKind.MEMORY


def test_a_thread_that_can_not_start_is_a_shortage() -> None:
    # Take the message from this interpreter itself.
    before = threading.stack_size(1 << 44)
    try:
        with pytest.raises(RuntimeError) as refused:
            threading.Thread(target=print).start()
    finally:
        threading.stack_size(before)
    assert find_shortage(refused.value) is ShortageKind.PROCESSES


def test_an_error_that_is_its_own_cause_ends_the_search() -> None:
    error = ValueError("as a library raises it")
    error.__cause__ = error
    assert find_shortage(error) is None


@pytest.mark.parametrize(
    "error", [OSError(errno.EFBIG, "too large"), OSError(errno.EIO, "failed"), ValueError("wrong"), OSError("?")]
)
def test_errors_caused_by_a_document_or_a_broken_disk_are_not_shortages(error: Any) -> None:
    assert find_shortage(error) is None


def test_each_shortage_has_a_sentence() -> None:
    assert set(SENTENCES) == set(ShortageKind)


#: The child processes by lane, the last turn of each lane, and the order of lanes expected. The limit is 2 children.
TURNS: list[tuple[dict[str, int], dict[str, int], list[str]]] = [
    ({}, {}, [PROMPT, WAVE, SINGLE, SUSPECT, SCAN]),
    ({}, {PROMPT: 4, WAVE: 3, SINGLE: 1, SUSPECT: 2, SCAN: 5}, [SINGLE, SUSPECT, WAVE, PROMPT, SCAN]),
    ({WAVE: 1}, {}, [PROMPT, SINGLE, SUSPECT, SCAN, WAVE]),
    ({WAVE: 2, PROMPT: 1, SCAN: 1}, {}, [SINGLE, SUSPECT, PROMPT]),
    ({PROMPT: 2, SCAN: 1}, {}, [WAVE, SINGLE, SUSPECT]),
    ({SINGLE: 1, SCAN: 1}, {}, [PROMPT, WAVE, SUSPECT, SINGLE]),
    ({SINGLE: 2, SCAN: 1}, {}, [PROMPT, WAVE]),
    ({SUSPECT: 1, SCAN: 1}, {}, [PROMPT, WAVE, SINGLE]),
    ({SUSPECT: 1, SINGLE: 1}, {}, [PROMPT, WAVE, SCAN]),
    ({WAVE: 2, SINGLE: 1, SCAN: 1}, {SUSPECT: 1}, [PROMPT, SUSPECT, SINGLE]),
    ({PROMPT: 2, WAVE: 2, SINGLE: 2}, {}, [SCAN]),
]


def test_lanes_take_turns_and_no_two_suspects_are_read_together() -> None:
    for at_work, served, expected in TURNS:
        assert in_turn(at_work, served, 2) == expected, (at_work, served)
    assert in_turn({}, {}, 1) == list(LANES) and in_turn({WAVE: 1}, {}, 1) == [PROMPT, SINGLE, SUSPECT, SCAN]


@pytest.mark.parametrize(
    ("is_small", "together", "lane"),
    [
        (True, 1, PROMPT),
        (True, FEW, PROMPT),
        (True, FEW + 1, WAVE),
        (False, 99, SINGLE),
    ],
)
def test_small_documents_share_a_child_and_bulk_uploads_have_their_own_lane(
    is_small: bool, together: int, lane: str
) -> None:
    assert choose(is_small=is_small, together=together) == lane


@pytest.mark.parametrize(
    ("sizes", "most", "count"), [([], 10, 0), ([99], 10, 1), ([4, 6, 1], 10, 2), ([4, 7], 10, 1), ([0] * 64, 10, 64)]
)
def test_a_wave_has_at_least_one_document_and_limited_bytes(sizes: list[int], most: int, count: int) -> None:
    assert fill(sizes, most) == count
