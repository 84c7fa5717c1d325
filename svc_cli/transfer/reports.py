"""What an upload, an import or a sync did with each file or URL, and the counts, exit code and error of the whole."""

import time
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from svc_cli.errors import HINTS, FileRefused, SvcError, WaitTimedOut, whole_error
from svc_cli.exits import Exit
from svc_cli.render import counted
from svc_cli.transfer.skips import EMPTY_PICTURE, Skip, code_of, is_empty_picture
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
    #: Whether the user named it. A file that was found in a folder may be skipped when its source has failed.
    is_named: bool = True
    #: What was done, such as `created` or `skipped`.
    action: str
    source_id: str | None = None
    #: The source's last known status.
    status: str | None = None
    ready: bool = False
    size_bytes: int | None = None
    sha256: str | None = None
    #: The title of the source that has an unchanged file's bytes, if it is a longer or shorter path than this one.
    as_title: str | None = None
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
            item.refuse(FileRefused(f"{skip.reason}.", code=skip.error_code, hint=HINTS.get(skip.error_code)))
        return item

    @property
    def is_pending(self) -> bool:
        """Whether the source is neither ready nor failed yet."""
        return self.source_id is not None and not self.ready and not self.error and self.action != "skipped"

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
        self.error = error.summarized()

    def fail(self, error: Json) -> None:
        """Record that the source failed or was deleted."""
        if not self.is_named and is_empty_picture(self.path, error):
            self.action, self.reason = "skipped", EMPTY_PICTURE
            return
        self.action, self.error, self.exit = "failed", error, Exit.FAILED

    def conflict(self, source_id: str | None, error: Json) -> None:
        """Record that the file has a conflict with this source; None if this key can't reach it."""
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
            "as_title": self.as_title,
            "warnings": self.warnings,
        }


def worst(exits: Iterable[Exit]) -> Exit:
    """Return the code that all failures share, FAILED if they differ, and DONE if there are none."""
    kinds = set(exits) - {Exit.DONE}
    return kinds.pop() if len(kinds) == 1 else Exit.FAILED if kinds else Exit.DONE


@dataclass(kw_only=True)
class Report:
    """The report of one upload or import. A sync adds its own facts; see `svc_cli.sync.run_state`."""

    #: All outcomes, in the order of a report.
    ACTIONS: ClassVar[tuple[str, ...]] = (
        *("created", "replaced", "retried", "refreshed", "unchanged", "conflict", "skipped", "failed"),
    )
    kind: Literal["upload", "import", "refresh", "bucket.import", "sync"] = "upload"
    bucket: str
    #: The outcomes by path, in the order of completion until the run ends.
    items: dict[str, ReportItem] = field(default_factory=dict)
    #: Number of files or URLs that were not processed.
    remaining: int = 0
    #: How many vectors an export has for the sent files, and how many the service kept; None if there are none.
    vectors: Json | None = None
    #: Batches in which files were sent.
    batch_ids: list[str] = field(default_factory=list)
    began_s: float = field(default_factory=time.monotonic)
    duration_ms: int = 0
    is_dry: bool = False
    is_strict: bool = False
    #: The error that ended the run early, such as Ctrl-C or a timeout.
    stopped_by: SvcError | None = None

    def add(self, item: ReportItem) -> None:
        """Record the outcome of a file. `unchanged` never replaces an earlier outcome."""
        earlier = self.items.get(item.path)
        if earlier is not None and item.action == "unchanged":
            return
        if earlier is not None and earlier is not item:
            item.sent_bytes += earlier.sent_bytes
        self.items[item.path] = item

    def end(self, paths: Collection[str] | None = None, skips: Iterable[Skip] = ()) -> None:
        """Record how long the run took. With `paths`, order the items like these, followed by the skipped files."""
        if paths is not None:
            self.items = {path: self.items[path] for path in paths if path in self.items}
            self.remaining = len(paths) - len(self.items)
        for skip in skips:
            self.items.setdefault(skip.path, ReportItem.of_skip(skip))
        self.duration_ms = elapsed_ms(self.began_s)
        if isinstance(self.stopped_by, WaitTimedOut):
            pending = [item.source_id for item in self.items.values() if item.is_pending]
            not_sent = f"{counted(self.remaining, self.noun)} not sent, " if self.remaining else ""
            self.stopped_by.message = f"The time is over: {not_sent}{len(pending)} not ready; the work continues."
            self.stopped_by.details = {"not_sent": self.remaining, "not_ready": len(pending), "source_ids": pending}
            if self.remaining:
                self.stopped_by.hint = "run the same command again: it goes on where it stopped."

    @property
    def noun(self) -> str:
        """Return what an item is called: `file`, `URL` or `source`."""
        return {"import": "URL", "refresh": "URL", "bucket.import": "source"}.get(self.kind, "file")

    @property
    def done(self) -> int:
        """The number of files or URLs that have an outcome."""
        return len(self.items)

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of items for each outcome, and the numbers of ready and of pending items."""
        counted_actions = Counter(item.action for item in self.items.values())
        return {action: counted_actions[action] for action in self.ACTIONS} | {
            "ready": sum(item.ready for item in self.items.values()),
            "pending": sum(item.is_pending for item in self.items.values()),
        }

    @property
    def sent_bytes(self) -> int:
        return sum(item.sent_bytes for item in self.items.values())

    @property
    def is_partial(self) -> bool:
        """Whether something was left out, which fails with `--strict`."""
        return any(item.action == "skipped" for item in self.items.values())

    @property
    def exit(self) -> Exit:
        """Return the exit code of the command."""
        if self.stopped_by is not None:
            return self.stopped_by.exit
        code = worst(item.exit for item in self.items.values())
        return code or (Exit.FAILED if self.is_strict and self.is_partial else Exit.DONE)

    @property
    def troubles(self) -> list[Json]:
        """Return the errors of the items."""
        return [item.error for item in self.items.values() if item.error]

    @property
    def error(self) -> Json | None:
        """Return the error for `--json`: the only item's, or a summary. None if the run succeeded."""
        if self.stopped_by is not None:
            return self.stopped_by.summarized()
        if self.exit in (Exit.DONE, Exit.PENDING):
            return None
        troubles = self.troubles
        if len(troubles) == 1:
            return troubles[0]
        message = f"{len(troubles)} {self.of_many} failed." if troubles else "files were skipped (--strict)."
        code = "svc_some_failed" if troubles else "svc_some_skipped"
        return {"code": code, "message": message, "retryable": False, "details": {}, "hint": None}

    def as_json(self) -> Json:
        """Return the value for `--json`, with an `error` if the run failed."""
        value = {
            "v": 1,
            "type": f"{self.kind}.summary",
            "bucket": self.bucket,
            "dry_run": self.is_dry,
            "items": [item.as_json(is_dry=self.is_dry and self.kind != "sync") for item in self.items.values()],
            "counts": self.counts,
            **self.own_json(),
            "batch_ids": self.batch_ids,
            "bytes_sent": self.sent_bytes,
            "duration_ms": self.duration_ms,
            "exit_code": int(self.exit),
        }
        error = self.error
        return value if error is None else {**value, "error": whole_error(error)}

    def own_json(self) -> Json:
        """Return the fields that only this kind of report has."""
        return {"remaining": self.remaining} | ({} if self.vectors is None else {"vectors": self.vectors})

    @property
    def of_many(self) -> str:
        """Complete the sentence "N … failed."."""
        return f"of {counted(len(self.items), self.noun)}"


def elapsed_ms(began_s: float) -> int:
    """Return the milliseconds since `began_s` on the monotonic clock."""
    return round((time.monotonic() - began_s) * 1000)
