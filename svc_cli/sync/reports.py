"""The report of a sync: the outcome of each file, the counts, and the exit code."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from svc_cli.errors import SvcError, whole_error
from svc_cli.exits import Exit
from svc_cli.sync.safety import Cause, Withheld
from svc_cli.trust import NOT_TRUSTED
from svc_cli.uploads.items import ReportItem, worst

#: All outcomes, in the order of a report.
ACTIONS = (
    *("created", "updated", "moved", "retried", "detached", "deleted", "unchanged", "gone", "skipped", "failed"),
    "conflict",
)
#: Outcomes that change the bucket.
CHANGES = frozenset({"created", "updated", "moved", "retried", "detached", "deleted"})


@dataclass(slots=True, kw_only=True)
class Report:
    """The report of one sync of one mapping."""

    mapping: str
    bucket: str
    #: The outcomes by path, without files that are unchanged and ready.
    items: dict[str, ReportItem] = field(default_factory=dict)
    unchanged: int = 0
    #: Bytes sent for failed files while finishing the batches of a killed run. These files are sent again.
    recovered_bytes: int = 0
    #: Remarks for the user, each a sentence.
    remarks: list[str] = field(default_factory=list)
    #: Deleted files whose sources stay in the bucket, by cause.
    withheld: list[Withheld] = field(default_factory=list)
    batch_ids: Sequence[str] = ()
    duration_ms: int = 0
    is_dry: bool = False
    is_strict: bool = False
    #: Exit with PENDING if the sync changed something, or would in a dry run.
    exits_pending: bool = False
    #: The error that ended the sync early, such as Ctrl-C.
    stopped_by: SvcError | None = None

    def add(self, item: ReportItem) -> None:
        """Record the outcome of a file. `unchanged` never replaces an earlier outcome."""
        earlier = self.items.get(item.path)
        if earlier is not None and item.action == "unchanged":
            return
        if earlier is not None and earlier is not item:
            item.sent_bytes += earlier.sent_bytes
        self.items[item.path] = item

    def keep(self, path: str) -> None:
        """Count a file that is unchanged and ready."""
        self.unchanged += path not in self.items

    def recover(self, item: ReportItem) -> None:
        """Record the outcome of a file that a killed run was sending.

        A file that failed is sent again, so only its bytes are counted.
        """
        if item.source_id is None or item.error is not None:
            self.recovered_bytes += item.sent_bytes
        else:
            self.add(item)

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of files for each outcome; `pending` counts the files that are not searchable yet."""
        counted = Counter(item.action for item in self.items.values())
        counted["unchanged"] += self.unchanged
        pending = sum(item.is_pending for item in self.items.values())
        return {action: counted[action] for action in ACTIONS} | {"pending": pending}

    @property
    def sent_bytes(self) -> int:
        return self.recovered_bytes + sum(item.sent_bytes for item in self.items.values())

    @property
    def notes(self) -> list[str]:
        """Return all remarks."""
        return [*self.remarks, *map(str, self.withheld)]

    @property
    def has_changes(self) -> bool:
        """Whether the sync changed the bucket, or would in a dry run."""
        return any(item.action in CHANGES for item in self.items.values())

    @property
    def exit(self) -> Exit:
        if self.stopped_by is not None:
            return self.stopped_by.exit
        if self.exits_pending and self.has_changes:
            return Exit.PENDING
        is_partial = self.counts["skipped"] or self.untrusted is not None
        return worst(item.exit for item in self.items.values()) or (
            Exit.FAILED if self.is_strict and is_partial else Exit.DONE
        )

    @property
    def untrusted(self) -> Withheld | None:
        """Return what is withheld because the project's file is not trusted; None if nothing is."""
        return next((each for each in self.withheld if each.cause is Cause.NOT_TRUSTED), None)

    @property
    def error(self) -> dict[str, Any] | None:
        """Return the error of a failed sync for `--json`; None if it succeeded."""
        if self.stopped_by is not None:
            return {**self.stopped_by.body(), "request_id": self.stopped_by.request_id}
        if self.exit in (Exit.DONE, Exit.PENDING):
            return None
        troubled = [item.error for item in self.items.values() if item.error]
        if len(troubled) == 1:
            return troubled[0]
        if troubled and self.exit is Exit.CONFLICT:
            return {**troubled[0], "message": f"{len(troubled)} files: {troubled[0]['message']}"}
        message, code = f"{len(troubled)} files failed.", "svc_some_failed"
        if not troubled and self.untrusted is not None:
            message, code = str(self.untrusted), NOT_TRUSTED
        elif not troubled:
            message, code = "files were skipped (--strict).", "svc_some_skipped"
        return {"code": code, "message": message, "retryable": False, "details": {}, "hint": None}

    def as_json(self) -> dict[str, Any]:
        """Return the value that `--json` prints for a mapping."""
        value = {
            "v": 1,
            "type": "sync.summary",
            "mapping": self.mapping,
            "bucket": self.bucket,
            "dry_run": self.is_dry,
            "items": [item.as_json() for item in self.items.values()],
            "counts": self.counts,
            "notes": self.notes,
            "withheld": [each.as_json() for each in self.withheld],
            "batch_ids": list(self.batch_ids),
            "bytes_sent": self.sent_bytes,
            "duration_ms": self.duration_ms,
            "exit_code": int(self.exit),
        }
        return value if self.error is None else {**value, "error": whole_error(self.error)}
