"""The errors that `svc` and its Python client raise.

SvcError             the base class: an error code, a sentence and a hint
 ├─ ApiError         the service returned an error response
 ├─ UsageError       invalid flags, settings or configuration files
 │   ├─ SourceAmbiguous  several sources have the given name
 │   └─ NotExact         what a command that changes something was given would be a guess
 ├─ Declined         the user answered no to a question
 ├─ NoRoom           a disk of this machine is full
 ├─ FileRefused      one file can't be sent; others are not affected
 │   └─ FileUnstable     it changed while it was read
 ├─ TitleConflict    the bucket has different content under this title; nothing was sent
 ├─ PathMissing      a given local path does not exist
 ├─ DaemonUnreachable nothing answers at the address, or another service does
 ├─ NetworkFailed    the connection failed, and no retries are left
 ├─ Incompatible     daemon and command line have no API version in common
 ├─ NotAuthenticated no API key is available for this address
 ├─ KeyNotShown      a key was created, but the response that contained it was lost
 ├─ SafetyStop       the folder is missing or empty, or too many files are gone; nothing was removed
 ├─ SyncRunning      another sync of the folder is running
 ├─ ExportRefused    the file is damaged, or not an export of a bucket (`svc_cli.exports`)
 ├─ BucketChanged    a source was deleted or replaced while its bucket was exported (`svc_cli.exports`)
 ├─ NotReady         a source that was waited for has failed or is gone
 ├─ WaitTimedOut     `--timeout` has passed; the service continues the work
 ├─ Interrupted      Ctrl-C, SIGTERM or SIGHUP
 └─ BadAnswer        the response is not one of this API
"""

import errno
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from svc_cli.exits import Exit, exit_for_answer

#: What the user can do if a file can't be made larger, by error number.
NO_ROOM = {
    errno.ENOSPC: "free some space there, then run the command again.",
    errno.EDQUOT: "free some space there, then run the command again.",
    errno.EFBIG: "the file system there, or `ulimit -f`, allows no larger files.",
}


class SvcError(Exception):
    """The base class of all errors."""

    #: Error codes of the client start with `svc_`; those of the API never do.
    code: str = "svc_error"
    exit: Exit = Exit.BUG
    retryable: bool = False
    #: Whether the next request would fail too: no connection could be opened, or the service asks for a long pause.
    is_dead: bool = False

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        code: str | None = None,
        details: dict[str, Any] | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code or self.code
        self.details = details or {}
        self.request_id = request_id

    def body(self) -> dict[str, Any]:
        """Return the `error` object for JSON output."""
        return {
            "code": self.code,
            "message": self.message,
            "retryable": self.retryable,
            "details": self.details,
            "hint": self.hint,
        }

    def summarized(self) -> dict[str, Any]:
        """Return the `error` object of a summary or of one of its items, which has the request's id in it."""
        return {**self.body(), "request_id": self.request_id}

    def envelope(self) -> dict[str, Any]:
        """Return what `--json` prints if the command fails."""
        return {"error": self.body(), "request_id": self.request_id, "exit_code": int(self.exit)}


def whole_error(error: Mapping[str, Any]) -> dict[str, Any]:
    """Return the error of one item, such as a file, with defaults for missing fields."""
    missing = {"retryable": False, "details": {}, "hint": find_hint(error), "request_id": None}
    return {"code": error["code"], "message": error["message"], **missing, **error}


def find_hint(error: Mapping[str, Any]) -> str | None:
    """Return the hint for an error of the API."""
    given = error.get("details")
    details = given if isinstance(given, Mapping) else {}
    if error["code"] == "storage_full" and details.get("engine"):
        return "run the same command again when it is back; `svc doctor` shows what is wrong with it."
    if error["code"] in _FETCHES and str(details.get("http_status")).startswith("4"):
        return "check the URL: trying again helps only if the host gives another answer."
    if error["code"] == "invalid_request":
        # The service names a field of its API, and the user has given an option.
        match details.get("errors"):
            case [{"path": str(path)}, *_]:
                return next((hint for field, hint in FIELD_HINTS.items() if path.startswith(field)), None)
    return HINTS.get(error["code"])


class ApiError(SvcError):
    """An error response: `status` is the HTTP status, `code` the API's error code."""

    def __init__(self, status: int, error: Mapping[str, Any], request_id: str | None = None) -> None:
        details = error.get("details")
        super().__init__(
            # Name the flag instead of the API's query parameter.
            str(error.get("message") or f"The service answered {status}.").replace("force=true", "--force"),
            code=str(error.get("code") or "svc_bad_answer"),
            details=dict(details) if isinstance(details, Mapping) else {},
            request_id=request_id,
        )
        self.status = status
        self.retryable = bool(error.get("retryable"))
        self.exit = exit_for_answer(status, self.code, self.retryable)
        self.hint = find_hint({"code": self.code, "details": self.details})
        if self.code == "internal_error":
            self.hint = f"`svc daemon logs` shows more about request {request_id}."


class UsageError(SvcError):
    code = "svc_usage"
    exit = Exit.USAGE


class SourceAmbiguous(UsageError):
    code = "svc_source_ambiguous"


class NotExact(UsageError):
    code = "svc_not_exact"


class Declined(SvcError):
    code = "svc_declined"
    exit = Exit.FAILED


class NoRoom(SvcError):
    code = "svc_no_room"
    exit = Exit.TEMPORARY
    retryable = True


def refused_by_system(error: OSError, hint: str | None = None) -> SvcError:
    """Convert an OSError to a NoRoom or UsageError. The hint is for what isn't a lack of room."""
    message = f"{error.filename}: {error.strerror}." if error.filename is not None else f"{error.strerror or error}."
    if error.errno in NO_ROOM:
        return NoRoom(message, hint=NO_ROOM[error.errno])
    return UsageError(message, code="svc_file_refused", hint=hint)


class FileRefused(SvcError):
    """This file or folder can't be sent; others are not affected."""

    exit = Exit.FAILED


class FileUnstable(FileRefused):
    code = "svc_file_unstable"
    exit = Exit.TEMPORARY
    retryable = True


#: What Python raises if a program meets what nobody foresaw; not what stops a thread or ends a run.
UNFORESEEN = (ArithmeticError, AttributeError, LookupError, MemoryError, OSError, RuntimeError, TypeError, ValueError)


def understood(error: Exception) -> SvcError:
    """Return the error; one that nobody foresaw becomes the error of one file, so that it doesn't end the run."""
    if isinstance(error, SvcError):
        return error
    return FileRefused(f"unexpected {type(error).__name__}: {error}.", code="svc_bug", hint="please report it.")


class TitleConflict(SvcError):
    code = "svc_title_conflict"
    exit = Exit.CONFLICT


class PathMissing(SvcError):
    code = "svc_path_not_found"
    exit = Exit.MISSING

    @classmethod
    def of_folder(cls, folder: Path) -> Self:
        """Return the error for a folder that is not there, or is a file."""
        details = {"path": str(folder)}
        if folder.is_file():
            return cls(f"{folder} is a file, not a folder.", hint="`svc upload` sends single files.", details=details)
        return cls(f"{folder}: there is no such folder.", details=details)


class DaemonUnreachable(SvcError):
    code = "svc_daemon_unreachable"
    exit = Exit.UNREACHABLE
    retryable = True


class NetworkFailed(SvcError):
    code = "svc_network_failed"
    exit = Exit.TEMPORARY
    retryable = True


class Incompatible(SvcError):
    code = "svc_api_incompatible"
    exit = Exit.INCOMPATIBLE


class NotAuthenticated(SvcError):
    code = "svc_no_api_key"
    exit = Exit.DENIED


class KeyNotShown(SvcError):
    code = "svc_key_not_shown"
    exit = Exit.FAILED


class SafetyStop(SvcError):
    code = "svc_safety_stop"
    exit = Exit.SAFETY


class SyncRunning(SvcError):
    code = "svc_sync_running"
    exit = Exit.LOCKED
    retryable = True


class NotReady(SvcError):
    """A source that was waited for has failed or is gone. `details["sources"]` maps ids to states."""

    code = "svc_not_ready"
    exit = Exit.FAILED


class WaitTimedOut(SvcError):
    code = "svc_timeout"
    exit = Exit.TIMEOUT
    retryable = True
    is_dead = True


class BadAnswer(SvcError):
    code = "svc_bad_answer"
    exit = Exit.TEMPORARY


class Interrupted(SvcError):
    code = "svc_interrupted"
    exit = Exit.INTERRUPTED
    retryable = True

    @classmethod
    def of(cls, interrupt: BaseException, hint: str | None = None) -> "Interrupted":
        """Return the error for an exception that `interrupts` has raised with the number of the signal."""
        error = cls("Interrupted.", hint=hint)
        if interrupt.args:
            error.exit = Exit(128 + interrupt.args[0])
        return error


#: The codes of errors of a host from which the service fetches.
_FETCHES = frozenset({"url_fetch_failed", "website_analysis_failed"})
#: The code of the error if nothing of a folder, or of what a pattern finds, is sent.
NOTHING = "svc_nothing_to_send"
#: The hints for error codes of the API, and for those of files that are left out.
HINTS: dict[str, str] = {
    NOTHING: "`svc ignore list DIR` shows what is left out; an exception such as `!docs/` in .svcignore takes it.",
    "not_found": "the service may be older than `svc`; after an upgrade, `svc daemon restart` starts the new one.",
    "invalid_project_key": "`svc auth status` shows which key is sent and where it came from.",
    "forbidden_project_key": "use a key that has the capability: `svc auth login`.",
    "bucket_not_found": "`svc bucket ls --all` shows every bucket, archived ones too.",
    "agent_not_found": "`svc agent ls` shows the agents that the key may use.",
    "model_not_allowed": "`svc agent ls` shows the agents that the key may use; name one with --agent.",
    "agent_exists": "`svc agent set` changes it.",
    "agent_limit_reached": "`svc agent rm AGENT` deletes an agent that you no longer need.",
    "bucket_slug_exists": "`svc bucket ls --all` shows it; choose another slug, or restore an archived bucket.",
    "batch_not_found": "a batch is named by its complete id, as `--json` of an upload shows it in `batch_ids`.",
    "key_not_found": "`svc key ls` shows the keys that this one may revoke.",
    "source_not_found": "`svc source ls -b BUCKET` shows the sources of a bucket.",
    "bucket_store_indexing_pending": "`svc status -b BUCKET` shows what is being indexed; `svc upload` adds files.",
    "delete_blocked": "`--force` deletes it anyway.",
    "force_required": "`--force` deletes the bucket and the sources that are in no other bucket.",
    "file_too_large": "split the file, or leave out parts that don't have to be searchable.",
    "storage_full": "free some disk space on the disk of the data directory, then run the same command again.",
    "search_failed": "`svc doctor` shows whether the search index can be used.",
    "host_not_allowed": "name the host in the daemon's SVC_ALLOWED_HOSTS and restart it, or call it localhost.",
}
#: The hint for what the service refuses, by the beginning of the field's name in the API.
FIELD_HINTS = {
    "refresh.every_seconds": "--every sets it: 900 s are 15m, the shortest interval unless the service has another.",
    "policy.bucket_ids": "`svc bucket ls` shows the buckets; -b names them.",
    "policy.source_ids": "`svc source ls -b BUCKET` shows the sources; --source names them.",
    "capabilities": "--can takes one of them; --preset takes admin, ingest or read.",
}
