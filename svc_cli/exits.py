"""The exit codes of `svc` and the rule that gives each error of the API one of them."""

from enum import IntEnum


class Exit(IntEnum):
    """What `$?` means to a script."""

    #: Done; what policy skips is listed and counts as done.
    DONE = 0
    #: Uncategorised: a bug.
    BUG = 1
    #: Usage, configuration, or a prompt needed where nobody can answer.
    USAGE = 2
    #: Refused or failed as asked, or some of many did.
    FAILED = 3
    #: Not authenticated, or the key lacks a capability.
    DENIED = 4
    #: Bucket, source or local path not found.
    MISSING = 5
    #: Conflict: a taken name, a used idempotency key, dependents.
    CONFLICT = 6
    #: Retries are used up on 429, 5xx or the network.
    TEMPORARY = 7
    #: `--timeout` was reached; the work goes on.
    TIMEOUT = 8
    #: Changes are pending: `diff`, `sync --dry-run --exit-code`.
    PENDING = 10
    #: A safety stop: the folder is missing or empty, or too much of it is gone.
    SAFETY = 11
    #: The daemon can't be reached and could not be started.
    UNREACHABLE = 12
    #: Daemon and command line speak no common API version.
    INCOMPATIBLE = 13
    #: Another sync of this folder is running, or another process uses the data directory.
    LOCKED = 14
    #: Ctrl-C.
    INTERRUPTED = 130
    #: The reader of the output went away.
    CLOSED_PIPE = 141


#: Conflicts by their code, whatever status carries them (`force_required` is a 400).
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
    """The exit code of an error answer: its code first, then whether a retry can help, then its HTTP status."""
    if code in CONFLICT_CODES or code.endswith("_exists"):
        return Exit.CONFLICT
    if retryable or status >= 500:  # every server error is worth another try later
        return Exit.TEMPORARY
    return _BY_STATUS.get(status, Exit.FAILED)
