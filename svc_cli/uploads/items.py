"""The result for each file or URL, and the exit code and error of a report."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from svc_cli.errors import FileRefused, SvcError, whole_error
from svc_cli.exits import Exit
from svc_cli.uploads.skips import Skip, code_of
from svc_daemon.wire import Json, JsonMapping

#: The names of the actions in a dry run.
DRY_ACTIONS = {
    "created": "would_create",
    "replaced": "would_replace",
    "retried": "would_retry",
    "refreshed": "would_refresh",
}


@dataclass(slots=True, kw_only=True)
class ReportItem:
    """The result for one file or URL, as shown in a report."""

    #: The URL, or the file's title.
    path: str
    #: What was done, such as `created` or `skipped`.
    action: str
    source_id: str | None = None
    #: The batch in which this run sent the file.
    batch_id: str | None = None
    #: The source's last known status.
    status: str | None = None
    ready: bool = False
    size_bytes: int | None = None
    sha256: str | None = None
    #: Why the file was skipped.
    reason: str | None = None
    #: The error of a failure or a conflict; optional fields such as `hint` may be missing.
    error: Json | None = None
    warnings: list[str] = field(default_factory=list)
    #: The exit code that the command would have if this were the only item.
    exit: Exit = Exit.DONE
    #: Bytes sent for this item.
    sent_bytes: int = 0

    @classmethod
    def of_skip(cls, skip: Skip) -> "ReportItem":
        """Return the item for a skipped file; a skip with an error code counts as failed."""
        item = cls(path=skip.path, action="skipped", reason=skip.reason)
        if skip.error_code is not None:
            item.reason = None
            item.refuse(FileRefused(f"{skip.reason}.", code=skip.error_code))
        return item

    @property
    def is_pending(self) -> bool:
        """Whether the source is neither ready nor failed yet."""
        return self.source_id is not None and not self.ready and not self.error

    def follow(self, source: JsonMapping) -> None:
        """Update the item with the current state of its source."""
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
        """Record that the file could not be sent."""
        self.action, self.exit = "failed", error.exit
        self.error = {**error.body(), "request_id": error.request_id}

    def fail(self, error: Json) -> None:
        """Record that the source failed or was deleted."""
        self.action, self.error, self.exit = "failed", error, Exit.FAILED

    def conflict(self, source_id: str, error: Json) -> None:
        """Record that the file has a conflict with this source."""
        self.action, self.source_id, self.error, self.exit = "conflict", source_id, error, Exit.CONFLICT

    def as_json(self, *, is_dry: bool = False) -> Json:
        """Return the item as shown by `--json`."""
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
    """Return the code that all failures share, FAILED if they differ, and DONE if there are none."""
    kinds = set(exits) - {Exit.DONE}
    return kinds.pop() if len(kinds) == 1 else Exit.FAILED if kinds else Exit.DONE


def exit_for(items: Sequence[ReportItem], *, is_strict: bool) -> Exit:
    """Return the exit code of a report. With `is_strict`, skipped files count as failures."""
    has_failed = is_strict and any(item.action == "skipped" for item in items)
    return worst(item.exit for item in items) or (Exit.FAILED if has_failed else Exit.DONE)


def error_for(items: Sequence[ReportItem], many: str) -> Json:
    """Return the error of a report: the item's own error if only one item failed, otherwise a summary.

    `many` completes the summary "N … failed.", for example "of 20 files".
    """
    troubled = [item.error for item in items if item.error]
    if len(troubled) == 1:
        return troubled[0]
    message = f"{len(troubled)} {many} failed." if troubled else "files were skipped (--strict)."
    code = "svc_some_failed" if troubled else "svc_some_skipped"
    return {"code": code, "message": message, "retryable": False, "details": {}, "hint": None}
