"""Inspect and suspend processes that may end at any moment."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

import psutil


@contextmanager
def reading_nothing(pids: Iterable[int]) -> Iterator[None]:
    """Suspend the extraction servers of these daemons during the block, so that uploaded sources wait."""
    servers = [server for pid in pids for (server,) in [children_of(pid, "fork_server")]]
    for server in servers:
        server.suspend()
    try:
        yield
    finally:
        for server in servers:
            server.resume()


def has_ended(process: psutil.Process) -> bool:
    """Whether the process has ended, even if it is still listed as a zombie."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE or not process.is_running()
    except psutil.NoSuchProcess:
        return True


def children_of(pid: int | None, word: str) -> list[psutil.Process]:
    """Return the children of a process (None is this one) that have the word in their command."""
    found = []
    for child in psutil.Process(pid).children():
        with suppress(psutil.NoSuchProcess):
            if word in " ".join(child.cmdline()):
                found.append(child)
    return found
