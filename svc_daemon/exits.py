"""How the operator's commands end: exit codes of the command line's table, and errors in the form of `svc`'s own."""

import json
import os
import sys
from typing import Any, NoReturn

EXIT_DONE, EXIT_FAILED, EXIT_USAGE, EXIT_REFUSED, EXIT_MISSING = 0, 1, 2, 3, 5
EXIT_TEMPORARY, EXIT_ADDRESS, EXIT_LOCKED = 7, 12, 14


def refuse(
    code: str, message: str, exit_code: int, as_json: bool, *, hint: str | None = None, retryable: bool = False
) -> NoReturn:
    """Report an error of this program, and end."""
    error = {"code": code, "message": message, "retryable": retryable, "details": {}, "hint": hint}
    refuse_as(error, exit_code, as_json)


def refuse_as(error: dict[str, Any], exit_code: int, as_json: bool) -> NoReturn:
    """Report an error, and end; for people, the hint follows the sentence."""
    fields = {"hint": None} | error
    if as_json:
        print(json.dumps({"error": fields, "exit_code": exit_code}, ensure_ascii=False))
    fail(" ".join(filter(None, (fields["message"], fields["hint"]))), exit_code)


def fail(message: str, code: int) -> NoReturn:
    """Print one line, and end."""
    print_note(f"error: {message}")
    raise SystemExit(code)


def print_note(line: str) -> None:
    """Print a line on stderr. If it can't be written, for example because the disk is full, the command goes on."""
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        # Python would try once more at its end, and then exit with 120.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
