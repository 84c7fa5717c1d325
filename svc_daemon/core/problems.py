"""Problems of a data directory, and their repairs.

A problem lasts until it is repaired; a shortage (see `core.shortages`) passes.
"""

from dataclasses import dataclass, field
from enum import StrEnum

#: If this many stored files have no row in the database, an older copy of the database was restored. A crash leaves
#: fewer files without a row.
MANY_FILES = 10
#: Maximum size of a write-ahead log in normal operation.
LOG_BYTES = 64 * 1024 * 1024


class Repair(StrEnum):
    """The safe repairs, in the order in which they are made."""

    #: Leave the installation's mark in an engine of the cluster that was emptied or replaced.
    MARK_ENGINE = "mark_engine"
    #: Checkpoint the write-ahead log by opening and closing the database.
    TRIM_LOG = "trim_log"
    #: Remove a file that was deleted on purpose or is incomplete.
    REMOVE_FILE = "remove_file"
    #: Create the missing database row of a source whose bytes and index entry exist.
    RECOVER = "recover"
    #: Move stored bytes that no row of the database names to another folder.
    SET_ASIDE = "set_aside"
    #: Mark the source as failed, and move its bytes aside if they differ from the uploaded bytes.
    FAIL_SOURCE = "fail_source"
    #: Rebuild the team's index from the stored bytes.
    REBUILD_INDEX = "rebuild_index"
    #: Remove from the index a document whose source doesn't exist.
    REMOVE_DOCUMENT = "remove_document"
    #: Index the source again from its stored bytes.
    QUEUE_SOURCE = "queue_source"
    #: Write the source's buckets to the index again. Until this is done, the source is not active in them.
    SYNC_SOURCE = "sync_source"
    #: Write the source's title and buckets to the index again. The source stays active meanwhile.
    UPDATE_INDEX = "update_index"


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
