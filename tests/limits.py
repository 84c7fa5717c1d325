"""Limits of resources, processor time and disks that apply during a block."""

import resource
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest


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


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """Mount a small file system in this folder, or skip the test if that is not allowed."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "svc-test", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("only root can mount a small disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
