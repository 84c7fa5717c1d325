"""Shortages of the machine's resources: which one an error shows.

A child process that reaches its own limits is not a shortage, since its document is the cause.
"""

import errno
from collections.abc import Iterator
from enum import StrEnum

from svc_daemon.errors import StoreUnavailable


class ShortageKind(StrEnum):
    """A resource that the machine may be short of."""

    DISK = "disk"
    #: Less disk space is free than the configured reserve.
    RESERVE = "disk_reserve"
    DESCRIPTORS = "descriptors"
    MEMORY = "memory"
    #: The system can't start another process or thread.
    PROCESSES = "processes"
    #: An engine on another machine, such as the object store, doesn't answer, or the folder of the blobs is gone.
    STORE = "store"


SENTENCES = {
    ShortageKind.DISK: "The disk is full.",
    ShortageKind.RESERVE: "The disk is nearly full: less is free than is kept in reserve.",
    ShortageKind.DESCRIPTORS: "No more files can be opened.",
    ShortageKind.MEMORY: "There is not enough memory.",
    ShortageKind.PROCESSES: "No more processes or threads can be started.",
    ShortageKind.STORE: "A store on another machine does not answer, or the volume of the stored files is gone.",
}


#: The resource that is short, by the system's error number.
ERRNOS = {
    errno.ENOSPC: ShortageKind.DISK,
    errno.EDQUOT: ShortageKind.DISK,
    errno.EMFILE: ShortageKind.DESCRIPTORS,
    errno.ENFILE: ShortageKind.DESCRIPTORS,
    errno.ENOMEM: ShortageKind.MEMORY,
    errno.EAGAIN: ShortageKind.PROCESSES,
}


_SQLITE = {
    "SQLITE_FULL": ShortageKind.DISK,
    "SQLITE_IOERR_SHMSIZE": ShortageKind.DISK,
    "SQLITE_NOMEM": ShortageKind.MEMORY,
    "SQLITE_IOERR_NOMEM": ShortageKind.MEMORY,
}


#: Python's message if the system refuses to start a thread.
_NO_THREAD = "can't start new thread"


def find_shortage(error: BaseException) -> ShortageKind | None:
    """Return the resource whose shortage caused the error, or None."""
    for cause in _causes(error):
        if isinstance(cause, MemoryError):
            return ShortageKind.MEMORY
        if isinstance(cause, StoreUnavailable):
            return ShortageKind.STORE
        if isinstance(cause, RuntimeError) and str(cause) == _NO_THREAD:
            return ShortageKind.PROCESSES
        errno_ = cause.errno if isinstance(cause, OSError) else None
        if shortage := ERRNOS.get(errno_ or 0) or _SQLITE.get(getattr(cause, "sqlite_errorname", "")):
            return shortage
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and its causes, each once: some pymilvus errors are their own cause."""
    found, left = set[int](), [error]
    while left:
        cause = left.pop(0)
        if id(cause) in found:
            continue
        found.add(id(cause))
        yield cause
        inner = cause.exceptions if isinstance(cause, BaseExceptionGroup) else ()
        left += [each for each in (*inner, cause.__cause__) if each is not None]
