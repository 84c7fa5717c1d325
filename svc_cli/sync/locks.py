"""One sync of a mapping at a time."""

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path

from svc_cli.errors import SyncRunning


@contextlib.contextmanager
def hold(path: Path, what: str) -> Iterator[None]:
    """Hold the lock beside an index; the kernel lets go of it however the process ends. Raises SyncRunning."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise SyncRunning(
                f"Another sync of {what} is running.", hint="wait for it, or stop `svc watch` for this folder."
            ) from error
        yield
