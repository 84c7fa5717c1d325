"""The exit codes of `svc`, and which of them an API error causes."""

from enum import IntEnum


class Exit(IntEnum):
    """The exit code of a command, for scripts."""

    #: Done. Skipped files are not failures.
    DONE = 0
    #: An unexpected error: a bug in svc.
    BUG = 1
    #: Wrong usage or configuration, or a question without a terminal to ask it.
    USAGE = 2
    #: The request was refused or has failed. If there were several requests, this applies to at least one.
    FAILED = 3
    #: Not authenticated, or the key lacks a capability.
    DENIED = 4
    #: Bucket, source or local path not found.
    MISSING = 5
    #: Conflict: for example, the name is taken, or the object is still in use.
    CONFLICT = 6
    #: A response with status 429 or 5xx, or a network error, after the last retry.
    TEMPORARY = 7
    #: `--timeout` has passed; the daemon continues the work.
    TIMEOUT = 8
    #: `diff` or `sync --dry-run --exit-code` found changes to make.
    PENDING = 10
    #: Safety stop: the folder is missing or empty, or too many files are gone.
    SAFETY = 11
    #: The daemon can't be reached and could not be started.
    UNREACHABLE = 12
    #: Daemon and command line have no API version in common.
    INCOMPATIBLE = 13
    #: Another sync of this folder is running, or another process uses the data directory.
    LOCKED = 14
    #: SIGHUP: the terminal or connection was closed.
    HUNG_UP = 129
    #: Ctrl-C.
    INTERRUPTED = 130
    #: The reader of the output closed the pipe.
    CLOSED_PIPE = 141
    #: SIGTERM, as from `kill` or `timeout`.
    TERMINATED = 143


#: Error codes that count as conflicts, whatever their HTTP status is.
CONFLICT_CODES = frozenset({"idempotency_key_conflict", "delete_blocked", "force_required"})

_BY_STATUS = {
    401: Exit.DENIED,
    403: Exit.DENIED,
    404: Exit.MISSING,
    408: Exit.TEMPORARY,
    409: Exit.CONFLICT,
    429: Exit.TEMPORARY,
}


def exit_for_answer(status: int, code: str, retryable: bool) -> Exit:
    """Return the exit code for an API error with this HTTP status."""
    if code in CONFLICT_CODES or code.endswith("_exists"):
        return Exit.CONFLICT
    if retryable or status >= 500:  # the same request may succeed later
        return Exit.TEMPORARY
    return _BY_STATUS.get(status, Exit.FAILED)
