"""The options, the state and the report of one sync."""

import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Mapping as Table
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from svc_cli.client.api import Client
from svc_cli.errors import FileRefused, SvcError, refused_by_system, whole_error
from svc_cli.exits import Exit
from svc_cli.progress import Flow, Progress
from svc_cli.sync.index import BUCKET_ID, REVISION, FileRow, Index, State, unwritable
from svc_cli.sync.mappings import Mapping, Ownership, Prune, refuse_unreachable
from svc_cli.sync.plan import MERGED, Holdings, merge
from svc_cli.sync.safety import DEFAULT_MAX_DELETE, Cause, MaxDelete, Withheld
from svc_cli.transfer.items import ReportItem, worst
from svc_cli.transfer.rooted_files import Root
from svc_cli.transfer.runs import elapsed_ms, interrupted
from svc_cli.transfer.snapshots import Filters
from svc_cli.trust import NOT_TRUSTED
from svc_daemon.wire import JsonMapping

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


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncOptions:
    """The options of a sync, from flags, settings and the mapping."""

    filters: Filters
    #: Maximum number of tags of a source.
    max_tags: int
    #: Maximum length of a tag.
    max_tag_characters: int
    prune: Prune = "none"
    max_delete: MaxDelete = DEFAULT_MAX_DELETE
    #: What a project's file that is not trusted asks for in vain: the values by name, such as `delete` by `prune`.
    withheld: Table[str, str] = field(default_factory=dict)
    #: Remove nothing, because files were deleted a moment ago and may reappear.
    is_restless: bool = False
    #: Sync the folder even if a link leads to it now, or it has another owner, unlike in the last run.
    accepts_root: bool = False
    wait: Literal["ready", "accepted"] = "ready"
    timeout_s: float | None = None
    #: Number of files sent at a time.
    jobs: int = 4
    #: Hash every file, even if its size and times are unchanged.
    is_thorough: bool = False
    #: List the bucket, even if its revision is unchanged.
    verify_remote: bool = False
    is_strict: bool = False
    is_dry: bool = False
    #: Exit with PENDING if the sync changed something, or would in a dry run.
    exits_pending: bool = False
    may_create: bool = True


@dataclass(slots=True)
class SyncRun:
    """One sync of one mapping while it runs."""

    client: Client
    mapping: Mapping
    options: SyncOptions
    index: Index
    progress: Progress
    report: Report
    on_item: Callable[[ReportItem], None]
    flow: Flow = field(default_factory=Flow)

    def add(self, item: ReportItem) -> None:
        """Report the result for a file."""
        self.report.add(item)
        self.show()
        self.on_item(item)

    def show(self) -> None:
        """Show the progress."""
        report, note = self.report, self.flow.note(self.client.waiting_creates)
        self.progress.update(len(report.items) + report.unchanged, note)

    def owns(self, row: FileRow) -> bool:
        """Whether this sync may update, move and retry the sources of the row."""
        return all(self.owns_source(each, row) for each in row.source_ids)

    def owns_source(self, source_id: str, row: FileRow | None = None) -> bool:
        """Whether this sync may replace and remove the source. `row` is its row in the index, if it has one."""
        known = self.mapping.ownership
        if known is Ownership.NAMED or (known is Ownership.SEEN and row is not None and row.hashed_ns > 0):
            return True
        if row is None or row.source_id != source_id:
            return self.index.has_sent(source_id)
        return self.index.has_sent(source_id, row.path, row.sha256)

    def look(self, bucket: JsonMapping) -> Holdings:
        """Return the mapping's sources in the bucket. The bucket is listed only if something may have changed."""
        rows = self.index.load()
        was_seen = self.index.find_fact(REVISION) == str(bucket["revision"])
        is_known = was_seen and self.index.find_fact(BUCKET_ID) == bucket["id"] and not self.options.verify_remote
        if is_known and not any(row.state == State.SENT for row in rows.values()):
            return Holdings(rows, [])
        return self.list_bucket(bucket["id"], rows)

    def list_bucket(self, bucket_id: str, rows: dict[str, FileRow]) -> Holdings:
        """List the mapping's sources, and update the index; a dry run saves nothing."""
        revisions: set[int] = set()
        sources: list[JsonMapping] = []
        for page in self.client.source_pages(bucket_id, {"status": "all", "mapping": self.mapping.name}):
            revisions.add(page["revision"])
            # Keep only the fields needed: all fields of a large bucket's sources would take hundreds of megabytes.
            sources += ({name: source.get(name) for name in MERGED} for source in page["sources"])
        holdings = merge(rows, sources)
        if not self.options.is_dry:
            # If the bucket changed between two pages of the list, the next run must list it again.
            is_settled = len(revisions) == 1 and not holdings.surplus
            self.index.replace_all(holdings.rows.values(), {source["id"] for source in sources})
            self.index.set_fact(REVISION, str(revisions.pop()) if is_settled else "")
        return holdings


@contextmanager
def reporting(report: Report, index_path: Path) -> Iterator[None]:
    """Record how long the block took, and the error that ended it."""
    began_s = time.monotonic()
    try:
        yield
    except KeyboardInterrupt:
        report.stopped_by = interrupted()
    except SvcError as error:
        report.stopped_by = error
    except sqlite3.Error as error:
        report.stopped_by = unwritable(index_path, error)
    except BrokenPipeError:
        raise  # the reader of our output has closed the pipe
    except OSError as error:
        report.stopped_by = refused_by_system(error)
    report.duration_ms = elapsed_ms(began_s)


def open_root(mapping: Mapping) -> Root | None:
    """Open the folder of a mapping; None if there is no such folder.

    Raises FileRefused if access is denied, and UsageError if a link leads the mapping out of its bounds.
    """
    try:
        root = Root(mapping.folder)
    except PermissionError as error:
        raise FileRefused(f"{mapping.folder} can't be read: {error.strerror}.", code="svc_file_unreadable") from error
    except OSError:
        return None
    refuse_unreachable(mapping, root)
    return root
