"""Limits of this process's resources and processor time that apply during a block."""

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def limited(kind: int, most: int) -> Iterator[None]:
    """Set the soft limit of one of the `resource.RLIMIT_` kinds during the block."""
    soft, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(kind, (soft, hard))


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
