"""What can be wrong with a data directory, and what a machine may lack for a while.

A problem with the data stays until it is repaired. A shortage passes by itself: an error of the system or of SQLite
names what was missing, and may be the cause of another error, at any depth. What a child process may not have by its
own limits is no shortage: that is a fault of its document.
"""

import errno
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

#: A kill leaves fewer stored files that nothing in the state names.
MANY_FILES = 10
#: Beyond this a write-ahead log has lost its bound.
LOG_BYTES = 64 * 1024 * 1024


class Mend(StrEnum):
    """What mends a problem without guessing, in the order in which it is done."""

    #: Opening and closing the file moves the log into it.
    TRIM_LOG = "trim_log"
    #: A file goes that was deleted on purpose, or that was never whole.
    REMOVE_FILE = "remove_file"
    #: Stored bytes that the state doesn't know become the source again that a team's index knows.
    TAKE_IN = "take_in"
    #: Stored bytes that nobody knows are moved aside.
    SET_ASIDE = "set_aside"
    #: The source ends as failed with the reason; wrong bytes are set aside.
    FAIL_SOURCE = "fail_source"
    #: The team's index is rebuilt from the stored bytes.
    REBUILD_INDEX = "rebuild_index"
    #: A document without a source leaves the index.
    REMOVE_DOCUMENT = "remove_document"
    #: Nobody waits for the task any more.
    CANCEL_TASK = "cancel_task"
    #: The source is read again from its stored bytes.
    QUEUE_SOURCE = "queue_source"
    #: The index gets the source's buckets again, and the memberships wait for that.
    SYNC_SOURCE = "sync_source"
    #: The index gets the source's title and buckets again.
    UPDATE_INDEX = "tell_index"
    #: The deletion of the bucket starts again.
    QUEUE_CASCADE = "queue_cascade"
    #: The event is written down, and its call is due.
    RECORD_EVENT = "record_event"
    #: The call is due.
    SEND_EVENT = "send_event"


def lost_files(files: int, known: int) -> str | None:
    """A warning about stored files that nothing in the state names; None for what a kill may have left."""
    if not known and files < MANY_FILES:
        return None
    return (
        f"{files} stored files are not in the state database, and search indexes know {known} of them. Was an older"
        " state.db put back? Stop the service and run `svc-daemon verify`; with --repair it takes in again what an"
        " index knows."
    )


@dataclass(frozen=True, slots=True)
class Problem:
    """A broken promise."""

    #: Such as `I3`: its number in the list of what must hold.
    invariant: str
    #: A sentence with every id.
    message: str
    #: None where mending would be a guess.
    mend: Mend | None = None
    #: The ids once more, by kind: `source_id`, `team_id`, and such.
    about: dict[str, str] = field(default_factory=dict)


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

#: Errors of the system that mean a shortage.
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
#: Python's message where the system refuses a thread.
_NO_THREAD = "can't start new thread"


def find_lack(error: BaseException) -> Lack | None:
    """What was missing, by the error or one that caused it; None where that is not known."""
    for cause in _causes(error):
        if isinstance(cause, MemoryError):
            return Lack.MEMORY
        if isinstance(cause, RuntimeError) and str(cause) == _NO_THREAD:
            return Lack.PROCESSES
        errno_ = cause.errno if isinstance(cause, OSError) else None
        if lack := ERRNOS.get(errno_ or 0) or _SQLITE.get(getattr(cause, "sqlite_errorname", "")):
            return lack
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    yield error
    inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    for cause in (*inner, error.__cause__):
        if cause is not None:
            yield from _causes(cause)
