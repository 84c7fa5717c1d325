"""Daemons to measure: without limits, and gone afterwards."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.acceptance.installations import Installation

UNLIMITED = {"SVC_LIMIT_CREATES_PER_SECOND": "0", "SVC_LIMIT_BYTES_PER_MINUTE": "0"}


@contextmanager
def running_daemon(folder: Path, **variables: str) -> Iterator[Installation]:
    """A daemon on a fresh data directory under `folder`, with these variables."""
    daemon = Installation(folder / "daemon", **UNLIMITED, **variables)
    daemon.start()
    try:
        yield daemon
    finally:
        daemon.clear()
