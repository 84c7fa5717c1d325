"""Decides whether a webhook call is retried, for the daemon and `svc webhook listen`.

pending    a call is due: the first one, its retry, or a requested resend
delivered  the receiver has answered with a 2xx status
failed     no attempt is left, and no call was answered with a 2xx status
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
