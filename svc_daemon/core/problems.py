"""Problems of a data directory, and temporary shortages of the machine.

A problem with the data stays until it is repaired. A shortage passes by itself: an error of the system or of SQLite
shows what was missing, and may be the cause of another error, at any depth. If a child process reaches its own limits,
that is a fault of its document and no shortage.
"""

import errno
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

#: A kill leaves fewer stored files without a row than this.
MANY_FILES = 10
#: A larger write-ahead log was not trimmed as it should be.
LOG_BYTES = 64 * 1024 * 1024


class Mend(StrEnum):
    """The safe repairs, in the order in which they are made."""

    #: Opening and closing the file moves the log into it.
    TRIM_LOG = "trim_log"
    #: Remove a file that was deleted on purpose, or never complete.
    REMOVE_FILE = "remove_file"
    #: Make stored bytes without a row the source again that a team's index knows.
    TAKE_IN = "take_in"
    #: Move unknown stored bytes aside.
    SET_ASIDE = "set_aside"
    #: Let the source fail with the reason, and set wrong bytes aside.
    FAIL_SOURCE = "fail_source"
    #: Rebuild the team's index from the stored bytes.
    REBUILD_INDEX = "rebuild_index"
    #: Remove a document without a source from the index.
    REMOVE_DOCUMENT = "remove_document"
    #: Cancel a task that no source waits for.
    CANCEL_TASK = "cancel_task"
    #: Index the source again from its stored bytes.
    QUEUE_SOURCE = "queue_source"
    #: Write the source's buckets to the index again, before its memberships become active.
    SYNC_SOURCE = "sync_source"
    #: Write the source's title and buckets to the index again.
    UPDATE_INDEX = "tell_index"
    #: Start the deletion of the bucket again.
    QUEUE_CASCADE = "queue_cascade"
    #: Record the event, and make its call due.
    RECORD_EVENT = "record_event"
    #: Make the call due.
    SEND_EVENT = "send_event"


def lost_files(files: int, known: int) -> str | None:
    """A warning about stored files without a row; None for as few as a kill may have left."""
    if not known and files < MANY_FILES:
        return None
    return (
        f"{files} stored files are not in the state database, and search indexes know {known} of them. Was an older"
        " state.db put back? Stop the service and run `svc-daemon verify`; with --repair it takes in again what an"
        " index knows."
    )


@dataclass(frozen=True, slots=True)
class Problem:
    """A violated invariant."""

    #: The number of the invariant, such as `I3`.
    invariant: str
    #: A sentence with every id.
    message: str
    #: The repair; None if it would be a guess.
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
    #: The system can't start another process or thread.
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
