"""Decides whether a failed webhook call is retried, for the daemon and `svc webhook listen`.

A delivery is `pending` while another call is planned, and `delivered` once the receiver has answered with a 2xx status.
It is `failed` if no attempt is left.
"""

from dataclasses import dataclass

PENDING, DELIVERED, GIVEN_UP = "pending", "delivered", "failed"
#: Number of calls for an event: the first and one retry.
TRIES = 2


@dataclass(frozen=True, slots=True)
class Standing:
    """The status of a delivery after a call."""

    status: str
    tries_left: int


def judge_call(http_status: int | None, tries_left: int) -> Standing:
    """Compute the status of a delivery after a call. `http_status` is None if nobody answered."""
    if http_status is not None and 200 <= http_status <= 299:
        return Standing(DELIVERED, 0)
    left = max(tries_left - 1, 0)
    return Standing(PENDING if left else GIVEN_UP, left)
