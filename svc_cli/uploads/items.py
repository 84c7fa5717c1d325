"""The result for each file or URL, and the exit code and the error for all of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from svc_cli.errors import FileRefused, SvcError, whole_error
from svc_cli.exits import Exit
from svc_cli.uploads.skips import Skip, code_of
from svc_daemon.wire import Json

#: What an action is called when nothing was to be sent.
DRY_ACTIONS = {
    "created": "would_create",
    "replaced": "would_replace",
    "retried": "would_retry",
    "refreshed": "would_refresh",
}


@dataclass(slots=True, kw_only=True)
class ReportItem:
    """One file or URL of a report."""

    #: The title, which is the path as given.
    path: str
    #: One of the report's actions, such as `created` or `skipped`.
    action: str
    source_id: str | None = None
    #: The source's status as last seen; None where there is no source.
    status: str | None = None
    ready: bool = False
    size_bytes: int | None = None
    sha256: str | None = None
    #: Why it was skipped.
    reason: str | None = None
    #: `{code, message, …}` of a failure or a conflict; `as_json` gives it every field.
    error: Json | None = None
    warnings: list[str] = field(default_factory=list)
    #: Exit code that this item alone would give.
    exit: Exit = Exit.DONE
    #: Bytes that went over the line for it.
    sent_bytes: int = 0

    @classmethod
    def of_skip(cls, skip: Skip) -> "ReportItem":
        """A file that was left out; one that was wanted has failed."""
        item = cls(path=skip.path, action="skipped", reason=skip.reason)
        if skip.error_code is not None:
            item.reason = None
            item.refuse(FileRefused(f"{skip.reason}.", code=skip.error_code))
        return item

    @property
    def is_pending(self) -> bool:
        """Accepted, but neither ready nor failed yet."""
        return self.source_id is not None and not self.ready and not self.error

    def follow(self, source: Json) -> None:
        """Take over the present state of the source."""
        self.source_id = source["id"]
        self.status = source["status"]
        self.ready = bool(source.get("ready"))
        self.warnings = list(source.get("warnings") or [])
        if self.status == "failed":
            self.fail(source.get("error") or {"code": "svc_source_failed", "message": "indexing failed."})
        elif self.status == "gone":
            successor = source.get("replaced_by")
            end = f"it was replaced by {successor} meanwhile." if successor else "it was deleted meanwhile."
            self.fail({"code": "source_not_found", "message": end, "retryable": False})

    def refuse(self, error: SvcError) -> None:
        """Record that this file could not be sent."""
        self.action, self.exit = "failed", error.exit
        self.error = {**error.body(), "request_id": error.request_id}

    def fail(self, error: Json) -> None:
        """Record that its source failed, or is gone."""
        self.action, self.error, self.exit = "failed", error, Exit.FAILED

    def conflict(self, source_id: str, error: Json) -> None:
        """Record that another source is in the way."""
        self.action, self.source_id, self.error, self.exit = "conflict", source_id, error, Exit.CONFLICT

    def as_json(self, *, is_dry: bool = False) -> Json:
        """The item as `--json` shows it."""
        return {
            "path": self.path,
            "action": DRY_ACTIONS.get(self.action, self.action) if is_dry else self.action,
            "source_id": self.source_id,
            "status": self.status,
            "ready": self.ready,
            "error": None if self.error is None else whole_error(self.error),
            "reason": self.reason,
            "reason_code": code_of(self.reason) if self.action == "skipped" and self.reason else None,
            "size_bytes": self.size_bytes,
            "sha256": self.sha256,
            "warnings": self.warnings,
        }


def worst(exits: Iterable[Exit]) -> Exit:
    """The exit code of many items: that of the failed ones if all have the same, otherwise FAILED."""
    kinds = set(exits) - {Exit.DONE}
    return kinds.pop() if len(kinds) == 1 else Exit.FAILED if kinds else Exit.DONE


def exit_for(items: Sequence[ReportItem], *, is_strict: bool) -> Exit:
    """The exit code of a report: one kind of trouble gives its own code, several give 3, with `--strict` skips too."""
    has_failed = is_strict and any(item.action == "skipped" for item in items)
    return worst(item.exit for item in items) or (Exit.FAILED if has_failed else Exit.DONE)


def error_for(items: Sequence[ReportItem], many: str) -> Json:
    """The error of a report that did not end well: that of the only item in trouble, else one for all.

    `many` completes the sentence "N … failed."
    """
    troubled = [item.error for item in items if item.error]
    if len(troubled) == 1:
        return troubled[0]
    message = f"{len(troubled)} {many} failed." if troubled else "files were skipped (--strict)."
    code = "svc_some_failed" if troubled else "svc_some_skipped"
    return {"code": code, "message": message, "retryable": False, "details": {}, "hint": None}
