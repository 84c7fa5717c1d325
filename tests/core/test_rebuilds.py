"""When to ask again during a rebuild."""

import pytest

from svc_daemon.core.rebuilds import retry_after_s


@pytest.mark.parametrize(
    ("elapsed_s", "done", "total", "expected"),
    [
        (0.0, 0, None, 1),
        (9.0, 0, 100, 1),
        (9.0, 5, None, 1),
        (10.0, 10, 15, 5),
        (1.0, 10, 11, 1),
        (1.0, 10, 10, 1),
        (60.0, 1, 1000, 30),
        # A wall clock that was moved back.
        (-60.0, 10, 20, 1),
    ],
)
def test_the_advice_is_the_rest_at_the_speed_so_far_within_bounds(
    elapsed_s: float, done: int, total: int | None, expected: int
) -> None:
    assert retry_after_s(elapsed_s, done, total) == expected
