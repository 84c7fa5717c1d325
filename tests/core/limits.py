"""Limits the processor time of computations that must be linear."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def cpu_limit_s(limit_s: float) -> Iterator[None]:
    """Raise TimeoutError in the block after this many seconds of the process's processor time."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"the computation took more than {limit_s} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
