"""The gate before creates: one 429 holds back every create of this client, so that no worker runs into the next one."""

import random
import threading
import time


class Stopped(Exception):
    """The run was told to stop while it waited."""


class Gate:
    """Open until somebody is told to wait; then closed for all until that time has passed."""

    def __init__(self) -> None:
        self._opens_s = 0.0
        self._lock = threading.Lock()
        self._stopped = threading.Event()

    def hold(self, seconds: float) -> None:
        """Close for `seconds` from now; a longer hold stays."""
        with self._lock:
            self._opens_s = max(self._opens_s, time.monotonic() + seconds)

    def wait(self) -> None:
        """Return when open. Raises Stopped when `stop` was called."""
        while not self._stopped.is_set():
            left_s = self._opens_s - time.monotonic()
            if left_s <= 0:
                return
            # Jitter, or all workers would rush the first free slot together.
            self._stopped.wait(left_s + random.uniform(0, 0.05))  # noqa: S311 - spread, not secrecy
        raise Stopped

    def stop(self) -> None:
        """Turn everybody away, now and later."""
        self._stopped.set()
