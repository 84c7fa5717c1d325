"""What to do with a file, its result, and the exit code and error of a report.

If a source has the file's title and bytes, nothing is sent. If a source has the title but other bytes, that is a
conflict.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from svc_cli.errors import FileRefused, SvcError, whole_error
from svc_cli.exits import Exit
from svc_cli.transfer.ignores import Skip, code_of
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


#: What to do if the bucket has other content under a file's title.
OnConflict = Literal["ask", "replace", "as_new"]


@dataclass(frozen=True, slots=True)
class KnownSources:
    """The bucket's sources when the run began. `bucket_id` is None if there was no bucket."""

    bucket_id: str | None
    #: Sources by title, oldest first.
    by_title: Mapping[str, Sequence[JsonMapping]]


class Decision(NamedTuple):
    """What to do with a file, and which existing source it concerns, if any.

    created     send it as a new source
    replaced    send it to replace the source
    unchanged   the source has the same bytes
    retried     the source has the same bytes but failed; index it again
    conflict    the source has other bytes; send nothing
    """

    action: Literal["created", "replaced", "unchanged", "retried", "conflict"]
    source: JsonMapping | None = None


def decide(known: Sequence[JsonMapping], sha256: str, on_conflict: OnConflict) -> Decision:
    """Decide what to do with one file. `known` are the sources with the file's title, oldest first."""
    leaving = {source["replaces"] for source in known if source.get("replaces") and source["status"] != "failed"}
    staying = [source for source in known if source["id"] not in leaving]
    same = [source for source in staying if source["sha256"] == sha256]
    if same:
        # Prefer ready to pending, and pending to failed.
        best = max(same, key=lambda source: (bool(source["ready"]), source["status"] != "failed"))
        return Decision("retried" if best["status"] == "failed" else "unchanged", best)
    if not known or on_conflict == "as_new":
        return Decision("created")
    if on_conflict == "replace":
        # Replace the newest source that is not itself waiting to replace another.
        ids = {source["id"] for source in known}
        settled = [source for source in known if source.get("replaces") not in ids]
        return Decision("replaced", (settled or known)[-1])
    return Decision("conflict", (staying or known)[-1])


def title_conflict(source: JsonMapping, hint: str) -> Json:
    """Return the error for a file that was not sent because of a conflict."""
    return {
        "code": "svc_title_conflict",
        "message": f"the bucket has different content under this title ({source['id']}); nothing was sent.",
        "retryable": False,
        "details": {"source_id": source["id"], "sha256": source["sha256"]},
        "hint": hint,
    }
