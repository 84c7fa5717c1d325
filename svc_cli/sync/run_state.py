"""The options, the state and the report of one sync."""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from collections.abc import Mapping as Table
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

from svc_cli.errors import FileRefused, refused_by_system
from svc_cli.exits import Exit
from svc_cli.settings import NOT_TRUSTED
from svc_cli.sync.index import BUCKET_ID, REVISION, TAGS, FileRow, Index, State, unwritable
from svc_cli.sync.mappings import Mapping, Ownership, Prune, refuse_unreachable
from svc_cli.sync.plan import MERGED, Holdings, merge
from svc_cli.sync.safety import DEFAULT_MAX_DELETE, Cause, MaxDelete, Withheld
from svc_cli.transfer.reports import Report, ReportItem
from svc_cli.transfer.rooted_files import Root
from svc_cli.transfer.runs import TransferRun
from svc_cli.transfer.snapshots import Filters
from svc_daemon.wire import Json, JsonMapping
from svc_daemon.wire.light.parsing import parse_json

#: Outcomes that change the bucket.
CHANGES = frozenset({"created", "updated", "moved", "retried", "detached", "deleted"})


@dataclass(kw_only=True)
class SyncReport(Report):
    """The report of one sync of one mapping. `items` lacks the files that are unchanged and ready."""

    ACTIONS: ClassVar[tuple[str, ...]] = (
        *("created", "updated", "moved", "retried", "detached", "deleted", "unchanged", "gone", "skipped", "failed"),
        "conflict",
    )
    kind: Literal["upload", "import", "bucket.import", "sync"] = "sync"
    mapping: str
    unchanged: int = 0
    #: Bytes sent for failed files while finishing the batches of a killed run. These files are sent again.
    recovered_bytes: int = 0
    #: Remarks for the user, each a sentence.
    remarks: list[str] = field(default_factory=list)
    #: The patterns that were meant for this folder, but match nothing in it.
    idle: list[str] = field(default_factory=list)
    #: The error if nothing of the folder is sent or in the bucket already.
    nothing: FileRefused | None = None
    #: The links that were followed, and the places in the folder to which they lead.
    links: dict[str, str] = field(default_factory=dict)
    #: Deleted files whose sources stay in the bucket, by cause.
    withheld: list[Withheld] = field(default_factory=list)
    #: Exit with PENDING if the sync changed something, or would in a dry run.
    exits_pending: bool = False

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
    def done(self) -> int:
        return len(self.items) + self.unchanged

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of files for each outcome; `pending` counts the files that are not searchable yet."""
        counts = super().counts
        del counts["ready"]
        return counts | {"unchanged": counts["unchanged"] + self.unchanged}

    @property
    def sent_bytes(self) -> int:
        return self.recovered_bytes + super().sent_bytes

    @property
    def notes(self) -> list[str]:
        """Return all remarks."""
        return [*self.remarks, *map(_idle_sentence, self.idle), *map(str, self.withheld)]

    @property
    def no_effect(self) -> list[str]:
        """Return what was asked and has no effect, each a sentence."""
        sentences = list(map(_idle_sentence, self.idle))
        return sentences if self.nothing is None else [*sentences, self.nothing.message]

    @property
    def has_changes(self) -> bool:
        """Whether the sync changed the bucket, or would in a dry run."""
        return any(item.action in CHANGES for item in self.items.values())

    @property
    def is_partial(self) -> bool:
        return super().is_partial or self.untrusted is not None or bool(self.idle)

    @property
    def exit(self) -> Exit:
        is_pending = self.stopped_by is None and self.exits_pending and self.has_changes
        return Exit.PENDING if is_pending else super().exit or (self.nothing.exit if self.nothing else Exit.DONE)

    @property
    def untrusted(self) -> Withheld | None:
        """Return what is withheld because the project's file is not trusted; None if nothing is."""
        return next((each for each in self.withheld if each.cause is Cause.NOT_TRUSTED), None)

    @property
    def error(self) -> Json | None:
        error, troubles = super().error, self.troubles
        if self.stopped_by is not None or error is None:
            return error
        if self.nothing is not None and not troubles:
            return self.nothing.summarized()
        if len(troubles) > 1 and self.exit is Exit.CONFLICT:
            return {**troubles[0], "message": f"{len(troubles)} files: {troubles[0]['message']}"}
        if not troubles and self.untrusted is not None:
            return {**error, "code": NOT_TRUSTED, "message": str(self.untrusted)}
        if not troubles and self.idle:
            return {
                **error,
                "code": "svc_no_effect",
                "message": f"the pattern {self.idle[0]} matches nothing (--strict).",
            }
        return error

    def own_json(self) -> Json:
        withheld = [each.as_json() for each in self.withheld]
        own = {"mapping": self.mapping, "notes": self.notes, "withheld": withheld}
        return own | ({"remaining": self.remaining} if self.remaining else {})

    @property
    def of_many(self) -> str:
        return "files"


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncOptions:
    """The options of a sync, from flags, settings and the mapping."""

    filters: Filters
    #: Maximum number of tags of a source.
    max_tags: int
    #: Maximum length of a tag.
    max_tag_characters: int
    prune: Prune = "none"
    #: Prune the sources of files, too, that are still there but left out now.
    prunes_left_out: bool = False
    max_delete: MaxDelete = DEFAULT_MAX_DELETE
    #: What a project's file that is not trusted asks for in vain: the values by name, such as `delete` by `prune`.
    withheld: Table[str, str] = field(default_factory=dict)
    #: Remove nothing, because files were deleted a moment ago and may reappear.
    is_restless: bool = False
    #: Sync the folder even if a link leads to it now, or it has another owner, unlike in the last run.
    accepts_root: bool = False
    #: Whether to remove the sources of files of a disk that is missing inside the folder.
    accepts_missing: bool = False
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


@dataclass
class SyncRun(TransferRun):
    """One sync of one mapping while it runs."""

    report: SyncReport
    mapping: Mapping
    options: SyncOptions
    index: Index

    def note_tags(self) -> frozenset[str]:
        """Return the tags that this mapping has given so far, and record those that it gives now.

        Other tags of its sources are a person's.
        """
        known = self.index.find_fact(TAGS)
        before = frozenset(parse_json(known) if known else ())
        if not before.issuperset(self.mapping.tags):
            self.index.set_fact(TAGS, json.dumps(sorted(before.union(self.mapping.tags))))
        return before

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

    def note_doubles(self, bucket: JsonMapping | None, known: Table[str, FileRow]) -> None:
        """Remark which files of a first sync the bucket has as documents of others: the folder may have been moved."""
        new = {item.sha256 for item in self.report.items.values() if item.action == "created"}
        if bucket is None or known or not new or not bucket["counts"]["total"]:
            return
        held: defaultdict[str | None, set[str]] = defaultdict(set)
        for page in self.client.source_pages(bucket["id"], {"status": "all"}):
            for source in page["sources"]:
                if source["sha256"] in new and source.get("mapping") != self.mapping.name:
                    held[source.get("mapping")].add(source["sha256"])
        for name, hashes in held.items():
            files = "1 file is" if len(hashes) == 1 else f"{len(hashes)} files are"
            whose = "added by `svc upload`: a synced folder needs a bucket of its own."
            if name is not None:
                whose = f"of the folder {name!r}: if that is this one, moved or renamed, --name {name} goes on with it."
            self.report.remarks.append(f"{files} in the bucket also as documents {whose}")


def _idle_sentence(pattern: str) -> str:
    return f"the pattern {pattern} matches nothing in the folder."


@contextmanager
def reporting(run: SyncRun, index_path: Path) -> Iterator[None]:
    """Record how long the block took, and the error that ended it."""
    with run.caught():
        try:
            yield
        except sqlite3.Error as error:
            raise unwritable(index_path, error) from error
        except BrokenPipeError:
            raise  # the reader of our output has closed the pipe
        except OSError as error:
            raise refused_by_system(error) from error
    run.report.end()


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
