"""What became of each file, and the counts and the exit code that follow."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from svc_cli.errors import SvcError, whole_error
from svc_cli.exits import Exit
from svc_cli.uploads.skips import code_of

#: Every outcome, in the order a summary names them; they add up to the number of items.
ACTIONS = ("created", "replaced", "retried", "refreshed", "unchanged", "conflict", "skipped", "failed")
#: What the first four are called when nothing was to be sent.
DRY_ACTIONS = {
    "created": "would_create",
    "replaced": "would_replace",
    "retried": "would_retry",
    "refreshed": "would_refresh",
}


@dataclass(slots=True, kw_only=True)
class Item:
    """One file of an upload."""

    #: The title, which is the path as given.
    path: str
    #: One of ACTIONS.
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
    error: dict[str, Any] | None = None
    warnings: list[str] = field(default_factory=list)
    #: Exit code that this item alone would give.
    exit: Exit = Exit.DONE
    #: Bytes that went over the line for it.
    sent_bytes: int = 0

    @property
    def is_pending(self) -> bool:
        """Accepted, but neither ready nor failed yet."""
        return self.source_id is not None and not self.ready and not self.error

    def follow(self, source: dict[str, Any]) -> None:
        """Take over what a source looks like by now."""
        self.source_id = source["id"]
        self.status = source["status"]
        self.ready = bool(source.get("ready"))
        self.warnings = list(source.get("warnings") or [])
        if self.status == "failed":
            self.fail(source.get("error") or {"code": "svc_source_failed", "message": "indexing failed."})
        elif self.status == "gone":
            self.fail({"code": "source_not_found", "message": _gone(source), "retryable": False})

    def refuse(self, error: SvcError) -> None:
        """Record that this file could not be sent."""
        self.action, self.exit = "failed", error.exit
        self.error = {**error.body(), "request_id": error.request_id}

    def fail(self, error: dict[str, Any]) -> None:
        """Record that its source failed, or is gone."""
        self.action, self.error, self.exit = "failed", error, Exit.FAILED

    def as_json(self, *, is_dry: bool = False) -> dict[str, Any]:
        """The item as `--json` shows it."""
        action = DRY_ACTIONS.get(self.action, self.action) if is_dry else self.action
        return {
            "path": self.path,
            "action": action,
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


@dataclass(slots=True, kw_only=True)
class Summary:
    """A whole upload or import."""

    kind: Literal["upload", "import"] = "upload"
    bucket: str
    items: list[Item]
    duration_ms: int
    is_dry: bool = False
    is_strict: bool = False
    #: Ended before everything was done: Ctrl-C, a time-out, a key that was refused.
    stopped_by: SvcError | None = None
    #: Files that were not looked at because of that.
    remaining: int = 0
    #: Batches that some of the files went in.
    batch_ids: list[str] = field(default_factory=list)

    @property
    def counts(self) -> dict[str, int]:
        """How many items ended each way, and how many of all are ready or still pending."""
        counted = Counter(item.action for item in self.items)
        return {action: counted[action] for action in ACTIONS} | {
            "ready": sum(item.ready for item in self.items),
            "pending": sum(item.is_pending for item in self.items),
        }

    @property
    def exit(self) -> Exit:
        """The exit code of the command: one kind of trouble gives its own code, several give 3."""
        if self.stopped_by is not None:
            return self.stopped_by.exit
        return worst(item.exit for item in self.items) or (
            Exit.FAILED if self.is_strict and self.counts["skipped"] else Exit.DONE
        )

    @property
    def error(self) -> dict[str, Any] | None:
        """What `--json` names as the reason for an exit code other than 0."""
        if self.stopped_by is not None:
            return {**self.stopped_by.body(), "request_id": self.stopped_by.request_id}
        if self.exit is Exit.DONE:
            return None
        troubled = [item for item in self.items if item.error]
        if len(troubled) == 1 and troubled[0].error:
            return troubled[0].error
        message = (
            f"{len(troubled)} of {len(self.items)} {'URLs' if self.kind == 'import' else 'files'} failed."
            if troubled
            else "files were skipped (--strict)."
        )
        code = "svc_some_failed" if troubled else "svc_some_skipped"
        return {"code": code, "message": message, "retryable": False, "details": {}, "hint": None}

    def as_json(self) -> dict[str, Any]:
        """The one value that `--json` prints."""
        value = {
            "v": 1,
            "type": f"{self.kind}.summary",
            "bucket": self.bucket,
            "dry_run": self.is_dry,
            "items": [item.as_json(is_dry=self.is_dry) for item in self.items],
            "counts": self.counts,
            "remaining": self.remaining,
            "batch_ids": self.batch_ids,
            "bytes_sent": sum(item.sent_bytes for item in self.items),
            "duration_ms": self.duration_ms,
            "exit_code": int(self.exit),
        }
        return value if self.error is None else {**value, "error": whole_error(self.error)}


def worst(exits: Iterable[Exit]) -> Exit:
    """The exit code of many: that of the troubled ones where they agree, else FAILED."""
    kinds = set(exits) - {Exit.DONE}
    return kinds.pop() if len(kinds) == 1 else Exit.FAILED if kinds else Exit.DONE


def _gone(source: dict[str, Any]) -> str:
    successor = source.get("replaced_by")
    return f"it was replaced by {successor} meanwhile." if successor else "it was deleted meanwhile."
