"""The time in which all requests and waits of a client have to end, such as that of `--timeout`."""

import math
import time

from svc_cli.errors import WaitTimedOut

#: Seconds after the end in which requests that are under way may finish.
GRACE_S = 2.0


class Deadline:
    """The end of a time that begins now. Without `timeout_s`, there is no end."""

    def __init__(self, timeout_s: float | None = None) -> None:
        self.timeout_s = timeout_s
        self._ends_s = math.inf if timeout_s is None else time.monotonic() + timeout_s

    @property
    def left_s(self) -> float:
        return max(0.0, self._ends_s - time.monotonic())

    @property
    def grace_s(self) -> float:
        """Return the seconds that a request may take which is sent now."""
        return self.left_s + GRACE_S

    def within(self, seconds: float | None) -> float | None:
        """Return `seconds` or what is left, whichever is less; None if neither has an end."""
        left_s = min(self.left_s, math.inf if seconds is None else seconds)
        return None if left_s == math.inf else left_s

    def check(self) -> None:
        """Raise WaitTimedOut if the time is over."""
        if not self.left_s:
            raise WaitTimedOut(
                f"The time of {self.timeout_s:g} s is over; the service continues what it has accepted.",
                hint="run the same command again: it goes on where it stopped.",
            )
