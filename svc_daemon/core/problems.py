"""Problems of a data directory and their repairs, and temporary shortages of the machine's resources.

A problem lasts until it is repaired; a shortage passes. A child process that reaches its own limits is not a shortage,
since its document is the cause.
"""

import errno
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from svc_daemon.errors import StoreUnavailable

#: If this many stored files have no row in the database, an older copy of the database was restored. A crash leaves
#: fewer files without a row.
MANY_FILES = 10
#: Maximum size of a write-ahead log in normal operation.
LOG_BYTES = 64 * 1024 * 1024


class Repair(StrEnum):
    """The safe repairs, in the order in which they are made."""

    #: Checkpoint the write-ahead log by opening and closing the database.
    TRIM_LOG = "trim_log"
    #: Remove a file that was deleted on purpose or is incomplete.
    REMOVE_FILE = "remove_file"
    #: Create the missing row of a source whose bytes and index entry exist.
    RECOVER = "recover"
    #: Move stored bytes that no row of the database names to another folder.
    SET_ASIDE = "set_aside"
    #: Mark the source as failed, and move its bytes aside if they differ from the uploaded bytes.
    FAIL_SOURCE = "fail_source"
    #: Rebuild the team's index from the stored bytes.
    REBUILD_INDEX = "rebuild_index"
    #: Remove from the index a document whose source doesn't exist.
    REMOVE_DOCUMENT = "remove_document"
    #: Cancel a task that has nothing to do, because no source waits for it or its bucket is not being deleted.
    CANCEL_TASK = "cancel_task"
    #: Index the source again from its stored bytes.
    QUEUE_SOURCE = "queue_source"
    #: Write the source's buckets to the index again. Until this is done, the source is not active in them.
    SYNC_SOURCE = "sync_source"
    #: Write the source's title and buckets to the index again. The source stays active meanwhile.
    UPDATE_INDEX = "update_index"
    #: Start the interrupted deletion of a bucket again.
    QUEUE_CASCADE = "queue_cascade"
    #: Record the missing event of a source, and schedule its webhook call.
    RECORD_EVENT = "record_event"
    #: Schedule the webhook call of a recorded event.
    SEND_EVENT = "send_event"


def lost_files(files: int, known: int) -> str | None:
    """Return a warning about stored files that the state database lacks, or None if there are few.

    `known` is how many of these files are in a search index. If any is, the warning is always given.
    """
    if not known and files < MANY_FILES:
        return None
    return (
        f"{files} stored files are not in the state database, and search indexes know {known} of them. Was an older"
        " state.db restored? Stop the service and run `svc-daemon verify`; with --repair, it recovers the files that an"
        " index knows."
    )


@dataclass(frozen=True, slots=True)
class Problem:
    """A violated invariant of a data directory, and how to repair it."""

    #: The number of the invariant, such as `I3`, or `secret` for a missing secret.
    invariant: str
    #: A sentence with the ids of all affected objects.
    message: str
    #: The repair; None if no repair is safe.
    repair: Repair | None = None
    #: The ids in the message, by kind, such as `source_id`.
    about: dict[str, str] = field(default_factory=dict)


class Lack(StrEnum):
    """A resource that the machine may be short of."""

    DISK = "disk"
    #: Less disk space is free than the configured reserve.
    RESERVE = "disk_reserve"
    DESCRIPTORS = "descriptors"
    MEMORY = "memory"
    #: The system can't start another process or thread.
    PROCESSES = "processes"
    #: An engine on another machine, such as the object store, doesn't answer.
    STORE = "store"


SENTENCES = {
    Lack.DISK: "The disk is full.",
    Lack.RESERVE: "The disk is nearly full: less is free than is kept in reserve.",
    Lack.DESCRIPTORS: "No more files can be opened.",
    Lack.MEMORY: "There is not enough memory.",
    Lack.PROCESSES: "No more processes or threads can be started.",
    Lack.STORE: "A store on another machine does not answer.",
}

#: The resource that is short, by the system's error number.
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
#: Python's message if the system refuses to start a thread.
_NO_THREAD = "can't start new thread"


def find_lack(error: BaseException) -> Lack | None:
    """Return the resource whose shortage caused the error, or None."""
    for cause in _causes(error):
        if isinstance(cause, MemoryError):
            return Lack.MEMORY
        if isinstance(cause, StoreUnavailable):
            return Lack.STORE
        if isinstance(cause, RuntimeError) and str(cause) == _NO_THREAD:
            return Lack.PROCESSES
        errno_ = cause.errno if isinstance(cause, OSError) else None
        if lack := ERRNOS.get(errno_ or 0) or _SQLITE.get(getattr(cause, "sqlite_errorname", "")):
            return lack
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
