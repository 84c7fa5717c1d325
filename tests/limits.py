"""Limits that the kernel holds this process to for a while."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def limited(kind: int, most: int) -> Iterator[None]:
    """Set the soft limit of one of the `resource.RLIMIT_` kinds."""
    soft, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(kind, (soft, hard))
