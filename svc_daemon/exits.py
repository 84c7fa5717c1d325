"""Exit codes and error output of `svc-daemon`, in the format of `svc`."""

import os
import sys
import time
from collections.abc import Callable
from typing import Any, NoReturn, Protocol

from svc_daemon.wire.light.printed_text import dump_json, escape_text

EXIT_DONE, EXIT_FAILED, EXIT_USAGE, EXIT_REFUSED, EXIT_MISSING = 0, 1, 2, 3, 5
EXIT_TEMPORARY, EXIT_ADDRESS, EXIT_LOCKED, EXIT_INTERRUPTED = 7, 12, 14, 130

#: Exit codes for directories that can't be used.
_REFUSED = {
    "svc_data_dir_not_found": EXIT_MISSING,
    "svc_data_dir_locked": EXIT_LOCKED,
    "svc_data_dir_not_empty": EXIT_REFUSED,
    "svc_backup_running": EXIT_LOCKED,
    "svc_backup_refused": EXIT_USAGE,
    "svc_daemon_unreachable": EXIT_ADDRESS,
}
#: Seconds between two lines of progress.
PROGRESS_S = 5.0


def refuse(
    code: str, message: str, exit_code: int, as_json: bool, *, hint: str | None = None, retryable: bool = False
) -> NoReturn:
    """Report an error that this program has detected, and exit."""
    error = {"code": code, "message": message, "retryable": retryable, "details": {}, "hint": hint}
    refuse_as(error, exit_code, as_json)


class DirectoryProblem(Protocol):
    """Why a directory can't be used; see `data_directory.DirectoryRefused`."""

    code: str
    message: str
    hint: str
    retryable: bool


def refuse_directory(error: DirectoryProblem, as_json: bool) -> NoReturn:
    """Report why a directory can't be used, and exit."""
    refuse(error.code, error.message, _REFUSED[error.code], as_json, hint=error.hint, retryable=error.retryable)


def refuse_as(error: dict[str, Any], exit_code: int, as_json: bool) -> NoReturn:
    """Report an error in the API's format, and exit. In text, the hint follows the message."""
    fields = {"hint": None} | error
    if as_json:
        print(dump_json({"error": fields, "exit_code": exit_code}))
    fail(" ".join(filter(None, (fields["message"], fields["hint"]))), exit_code)


def fail(message: str, code: int) -> NoReturn:
    """Print one line on stderr, and exit."""
    print_note(f"error: {message}")
    raise SystemExit(code)


def progress_notes() -> Callable[[str], None]:
    """Return a function that prints progress to stderr, at most every `PROGRESS_S` seconds."""
    due_s = time.monotonic() + PROGRESS_S

    def note(line: str) -> None:
        nonlocal due_s
        if time.monotonic() >= due_s:
            due_s = time.monotonic() + PROGRESS_S
            print_note(line)

    return note


def print_result(value: Any, text: str, as_json: bool) -> None:
    """Print the result of a command on stdout: `value` as JSON, or `text`."""
    if as_json or text:
        print(dump_json(value) if as_json else escape_text(text))


def print_note(line: str) -> None:
    """Print a line on stderr, ignoring write errors."""
    try:
        print(escape_text(line), file=sys.stderr, flush=True)
    except OSError:
        # Discard what could not be written. Otherwise Python would try to write it again at exit, and exit with 120.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
