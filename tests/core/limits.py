"""A limit for computations whose time must grow with their input and not faster."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def cpu_limit_s(limit_s: float) -> Iterator[None]:
    """Stop the block with TimeoutError after so many seconds of this process's own processor time."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"the computation took more than {limit_s} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
