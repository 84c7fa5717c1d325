"""Shortages: what a machine may lack for a while, as distinct from what is wrong with a document.

An error of the system or of SQLite names what was missing; it may be the cause of another error, at any depth. What a
child's own cage refuses is not seen here: that is the document's.
"""

import errno
from collections.abc import Iterator
from enum import StrEnum


class Lack(StrEnum):
    """What is missing."""

    DISK = "disk"
    #: Less of the disk is free than is kept in reserve.
    RESERVE = "disk_reserve"
    DESCRIPTORS = "descriptors"
    MEMORY = "memory"
    #: The system starts no further process or thread.
    PROCESSES = "processes"


SENTENCES = {
    Lack.DISK: "The disk is full.",
    Lack.RESERVE: "The disk is nearly full: less is free than is kept in reserve.",
    Lack.DESCRIPTORS: "No more files can be opened.",
    Lack.MEMORY: "There is not enough memory.",
    Lack.PROCESSES: "No more processes or threads can be started.",
}

#: Errors of the system that say so.
ERRNOS = {
    errno.ENOSPC: Lack.DISK,
    errno.EDQUOT: Lack.DISK,
    errno.EMFILE: Lack.DESCRIPTORS,
    errno.ENFILE: Lack.DESCRIPTORS,
    errno.ENOMEM: Lack.MEMORY,
    errno.EAGAIN: Lack.PROCESSES,
}
_SQLITE = {
    "SQLITE_FULL": Lack.DISK,
    "SQLITE_IOERR_SHMSIZE": Lack.DISK,
    "SQLITE_NOMEM": Lack.MEMORY,
    "SQLITE_IOERR_NOMEM": Lack.MEMORY,
}
#: All that Python says where the system refuses a thread.
_NO_THREAD = "can't start new thread"


def find_lack(error: BaseException) -> Lack | None:
    """What was missing, by the error or one that caused it; None where that is not known."""
    return next((lack for cause in _causes(error) if (lack := _lack_of(cause))), None)


def _causes(error: BaseException) -> Iterator[BaseException]:
    yield error
    inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    for cause in (*inner, error.__cause__):
        if cause is not None:
            yield from _causes(cause)


def _lack_of(error: BaseException) -> Lack | None:
    if isinstance(error, MemoryError):
        return Lack.MEMORY
    if isinstance(error, OSError):
        return ERRNOS.get(error.errno or 0)
    if isinstance(error, RuntimeError) and str(error) == _NO_THREAD:
        return Lack.PROCESSES
    return _SQLITE.get(getattr(error, "sqlite_errorname", ""))
