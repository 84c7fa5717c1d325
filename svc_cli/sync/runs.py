"""One sync of one mapping, from lock to report.

1. lock the mapping; ask for the bucket
2. bring to their end the batches that a killed run left
3. index and bucket agree again, where one of them has moved
4. walk, compare, and send while the walk goes on
5. moves and retries
6. wait until what was sent is ready
7. take out what is gone, if that was asked for and nothing speaks against it
8. list the bucket once more where something changed, so that the next run need not
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from svc_cli.client.api import Client
from svc_cli.client.waiting import Watch, wait_until_settled
from svc_cli.errors import ApiError, PathMissing, SvcError
from svc_cli.progress import Progress
from svc_cli.sync import holdings, safety
from svc_cli.sync.comparing import Change, Comparison, Reading
from svc_cli.sync.holdings import Holdings
from svc_cli.sync.index import Index, Row, State
from svc_cli.sync.locks import hold
from svc_cli.sync.mappings import Mapping, Prune
from svc_cli.sync.plan import Verb, row_of
from svc_cli.sync.reports import Report
from svc_cli.sync.safety import Findings, MaxDelete
from svc_cli.sync.sending import Sending
from svc_cli.sync.snapshots import Filters, Snapshot
from svc_cli.uploads.runs import elapsed_ms, interrupted
from svc_cli.uploads.summaries import Item

Json = dict[str, Any]
#: Rows that are written to the index at a time.
SAVED_AT_ONCE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to sync."""

    filters: Filters
    #: Extensions that the service can read.
    extensions: frozenset[str]
    prune: Prune = "none"
    max_delete: MaxDelete = safety.DEFAULT_MAX_DELETE
    wait: Literal["ready", "accepted"] = "ready"
    timeout_s: float | None = None
    jobs: int = 4
    #: Hash every file, whatever its times say.
    is_thorough: bool = False
    #: List the bucket, whatever its revision says.
    verify_remote: bool = False
    is_strict: bool = False
    is_dry: bool = False
    tells_pending: bool = False
    may_create: bool = True


def sync(
    client: Client,
    mapping: Mapping,
    options: Options,
    index_path: Path,
    progress: Progress,
    on_item: Callable[[Item], None] = lambda _: None,
) -> Report:
    """Bring the folder into the bucket; what ended it early stands in the report.

    Raises SyncRunning, PathMissing, and ApiError `bucket_not_found` where the bucket may not be made.
    """
    began_s = time.monotonic()
    report = Report(
        mapping=mapping.name,
        bucket=mapping.bucket,
        is_dry=options.is_dry,
        is_strict=options.is_strict,
        tells_pending=options.tells_pending,
    )
    with hold(index_path, str(mapping.folder)), Index(index_path) as index:
        run = _Run(client, mapping, options, index, progress, report, on_item)
        try:
            run.go()
        except KeyboardInterrupt:
            report.stopped_by = interrupted()
        except (ApiError, PathMissing) as error:
            if not report.items:
                raise
            report.stopped_by = error
        except SvcError as error:
            report.stopped_by = error
    report.duration_ms = elapsed_ms(began_s)
    return report


@dataclass(slots=True)
class _Run:
    """The state of one sync."""

    client: Client
    mapping: Mapping
    options: Options
    index: Index
    progress: Progress
    report: Report
    on_item: Callable[[Item], None]
    retries: list[Change] = field(default_factory=list)

    def go(self) -> None:
        bucket = self._find_bucket()
        root_identity = self._identify_root()
        known = self._know(bucket)
        self._refuse_lost_root(root_identity is not None, known)
        is_moved = self.index.find_fact(holdings.ROOT) not in (None, root_identity)
        if is_moved:
            self._note("the folder is another one than last time: every file is read again, and nothing is pruned.")
        comparison = self._compare(known, is_thorough=is_moved)
        if bucket is None or self.options.is_dry:
            self._foresee(comparison)
        else:
            self._apply(bucket["id"], comparison)
        self._refuse_emptied_root(comparison, known)
        self._finish(bucket, comparison, known, is_moved=is_moved)
        if not self.options.is_dry and root_identity is not None:
            self.index.set_fact(holdings.ROOT, root_identity)

    # 1 to 3: what is known

    def _find_bucket(self) -> Json | None:
        """The bucket, made where it is missing and may be made; None where a dry run finds none."""
        name = self.mapping.bucket
        try:
            return self.client.bucket(name)
        except ApiError as error:
            may_make = self.options.may_create and "_" not in name  # an id is not made, only a slug
            if error.code != "bucket_not_found" or not may_make:
                raise
        if self.options.is_dry:
            self._note(f"the bucket {name} would be created.")
            return None
        self.client.ensure_bucket(name)
        self._note(f"created the bucket {name}.")
        return self.client.bucket(name)

    def _identify_root(self) -> str | None:
        """Device and inode of the folder; None where there is none."""
        try:
            facts = self.mapping.folder.stat()
        except OSError:
            return None
        return f"{facts.st_dev}:{facts.st_ino}" if self.mapping.folder.is_dir() else None

    def _know(self, bucket: Json | None) -> Holdings:
        if bucket is None:
            return Holdings()
        if not self.options.is_dry:
            holdings.adopt_bucket(self.index, bucket["id"])
            self._recover(bucket["id"])
        return holdings.look(
            self.client,
            self.index,
            bucket,
            self.mapping.name,
            is_thorough=self.options.verify_remote,
            saves=not self.options.is_dry,
        )

    def _recover(self, bucket_id: str) -> None:
        if self.index.list_batches():
            self._note("an earlier run was cut off; its batches were brought to their end.")
            sending = Sending(self.client, self.index, bucket_id, self.options.jobs, lambda _: None)
            with sending.dispatch:
                sending.recover(self.mapping.folder)

    def _refuse_lost_root(self, exists: bool, known: Holdings) -> None:
        """Raises SafetyStop where a folder that was there is missing, PathMissing where there never was one."""
        if exists:
            return
        safety.refuse_lost_root(str(self.mapping.folder), exists=False, is_empty=True, owned=_owned(known))
        folder = str(self.mapping.folder)
        raise PathMissing(f"{folder}: there is no such folder.", details={"path": folder})

    def _refuse_emptied_root(self, comparison: Comparison, known: Holdings) -> None:
        """A walk that met nothing at all has sent nothing either, so this is early enough."""
        is_empty = comparison.met == 0
        safety.refuse_lost_root(str(self.mapping.folder), exists=True, is_empty=is_empty, owned=_owned(known))

    # 4: what is to be done

    def _compare(self, known: Holdings, *, is_thorough: bool) -> Comparison:
        reading = Reading(
            max_bytes=self.options.filters.max_bytes,
            extensions=self.options.extensions,
            is_thorough=is_thorough or self.options.is_thorough,
        )
        snapshot = Snapshot(self.mapping.folder, self.options.filters)
        return Comparison(self.mapping.folder, snapshot, known.rows, reading)

    def _foresee(self, comparison: Comparison) -> None:
        """Say what would be done."""
        for change in comparison:
            if change.verb is Verb.KEEP:
                self.report.unchanged += 1
            else:
                self._tell(_item(change))

    def _apply(self, bucket_id: str, comparison: Comparison) -> None:
        self.progress.begin("syncing", None)
        sending = Sending(self.client, self.index, bucket_id, self.options.jobs, self._tell)
        self.report.batch_ids = sending.dispatch.batch_ids
        with sending.dispatch:
            for change in comparison:
                self._act(change, sending)
                if len(comparison.refreshed) >= SAVED_AT_ONCE:
                    self._save_refreshed(comparison)
            sending.dispatch.finish()
        self._save_refreshed(comparison)
        for change in self.retries:
            self._retry(change)

    def _act(self, change: Change, sending: Sending) -> None:
        if change.verb is Verb.KEEP:
            self.report.unchanged += 1
        elif change.verb in (Verb.CREATE, Verb.UPDATE) and change.now is not None and change.content is not None:
            place_id = change.row.place_id if change.verb is Verb.UPDATE and change.row is not None else None
            action = "created" if place_id is None else "updated"
            sending.add(self.mapping, action, change.now, change.content, place_id)
        elif change.verb is Verb.MOVE:
            self._move(change)
        elif change.verb is Verb.RETRY:
            self.retries.append(change)
        else:
            self._tell(_item(change))

    def _save_refreshed(self, comparison: Comparison) -> None:
        self.index.save(comparison.refreshed)
        comparison.refreshed.clear()

    # 5: what needs no bytes

    def _move(self, change: Change) -> None:
        """Give the source of a file that moved its new title; its bytes are where they were."""
        item, was, now = _item(change), change.row, change.now
        if was is None or now is None or was.source_id is None:
            raise AssertionError("a move has a source")
        try:
            names = {"title": now.path, "filename": PurePosixPath(now.path).name}
            item.follow(self.client.update_source(was.source_id, names))
            moved = now._replace(source_id=was.source_id, place_id=was.place_id, state=was.state, reason=was.reason)
            self.index.save([moved])
            self.index.remove([was.path])
        except ApiError as error:
            item.refuse(error)
        self._tell(item)

    def _retry(self, change: Change) -> None:
        item, row = _item(change), change.row
        if row is None or row.source_id is None:
            raise AssertionError("a retry has a source")
        item.error = None
        try:
            item.follow(self.client.retry_source(row.source_id))
            self.index.save([row._replace(state=State.SENT, reason=None)])
        except ApiError as error:
            item.refuse(error)
        self._tell(item)

    def _tell(self, item: Item) -> None:
        self.report.add(item)
        self.progress.update(
            len(self.report.items), f"{self.report.unchanged} unchanged" if self.report.unchanged else ""
        )
        self.on_item(item)

    def _note(self, text: str) -> None:
        self.report.notes.append(text)

    # 6 to 8: the end

    def _finish(self, bucket: Json | None, comparison: Comparison, known: Holdings, *, is_moved: bool) -> None:
        for skip in comparison.snapshot.skips:
            self.report.add(Item(path=skip.path, action="skipped", reason=skip.reason))
        if comparison.left_out:
            count = len([row for row in comparison.left_out if row.source_id])
            if count:
                self._note(f"{count} files are left out now and still answer: `svc source rm` takes them out.")
        is_live = bucket is not None and not self.options.is_dry
        if is_live and bucket is not None and self.options.wait == "ready":
            self._wait(bucket["id"])
        self._remove(bucket, comparison, known, is_moved=is_moved)
        self._forget_nothing_sent(comparison)
        if is_live and bucket is not None and self.report.has_changes:
            holdings.refresh(self.client, self.index, bucket["id"], self.mapping.name)

    def _wait(self, bucket_id: str) -> None:
        """Wait until every accepted source is ready or has failed."""
        pending = {item.source_id: item for item in self.report.items.values() if item.is_pending and item.source_id}
        if not pending:
            return
        self.progress.begin("indexing", len(pending))
        watch = Watch(list(pending), bucket_id)
        try:
            wait_until_settled(
                self.client,
                watch,
                timeout_s=self.options.timeout_s,
                on_change=lambda seen: self.progress.update(seen.settled_count),
            )
        finally:
            self._take_over(pending, watch)

    def _take_over(self, pending: dict[str, Item], watch: Watch) -> None:
        rows = self.index.load()
        changed = []
        for source_id, source in watch.seen.items():
            if not source:
                continue
            item = pending[source_id]
            item.follow(source)
            self.on_item(item)
            row = rows.get(item.path)
            if row is not None and source["status"] != "gone":
                changed.append(row_of({**source, "title": row.path}, row, row.place_id))
        self.index.save(changed)

    def _remove(self, bucket: Json | None, comparison: Comparison, known: Holdings, *, is_moved: bool) -> None:
        """Take what is gone out of the bucket, where that was asked for and is safe; else say that it still answers."""
        gone = [(row.path, source_id) for row in comparison.gone for source_id in _ids(row)]
        gone += [(source["title"], source["id"]) for source in known.surplus]
        if not gone:
            return
        found = Findings(
            gone=len(gone),
            owned=_owned(known) + len(known.surplus),
            is_complete=comparison.snapshot.is_complete,
            is_moved=is_moved,
            failed=sum(item.error is not None for item in self.report.items.values()),
        )
        reason = "" if self.options.prune == "none" else safety.reason_to_keep(found)
        if reason is not None:
            for path, source_id in gone:
                self.report.items.setdefault(path, Item(path=path, action="gone", source_id=source_id, ready=True))
            why = f": {reason}" if reason else ": --prune detach"
            self._note(f"{len(gone)} files are gone here and still answer{why}.")
            return
        safety.refuse_too_many(found, self.options.max_delete)
        for path, source_id in gone:
            self._take_out(path, source_id, bucket)

    def _take_out(self, path: str, source_id: str, bucket: Json | None) -> None:
        action = "deleted" if self.options.prune == "delete" else "detached"
        item = Item(path=path, action=action, source_id=source_id, ready=True)
        if bucket is not None and not self.options.is_dry:
            try:
                if self.options.prune == "delete":
                    self.client.delete_source(source_id)
                else:
                    self.client.detach_source(bucket["id"], source_id)
            except ApiError as error:
                if error.code != "source_not_found":
                    item.refuse(error)
        self.report.items.setdefault(path, item)
        self.on_item(item)

    def _forget_nothing_sent(self, comparison: Comparison) -> None:
        """Rows of files that never had a source go with their files."""
        if not self.options.is_dry:
            unsent = [row.path for row in (*comparison.gone, *comparison.left_out) if row.source_id is None]
            self.index.remove(unsent)


_ACTIONS = {
    Verb.CREATE: "created",
    Verb.UPDATE: "updated",
    Verb.MOVE: "moved",
    Verb.RETRY: "retried",
    Verb.WAIT: "unchanged",
    Verb.KEEP: "unchanged",
    Verb.FAIL: "failed",
    Verb.SKIP: "skipped",
}


def _item(change: Change) -> Item:
    """The change as a report shows it."""
    now, row = change.now, change.row
    item = Item(path=change.path, action=_ACTIONS[change.verb], source_id=row.source_id if row else None)
    if now is not None:
        item.size_bytes, item.sha256 = now.size_bytes, now.sha256
    if change.error is not None:
        item.refuse(change.error)
    elif change.verb is Verb.FAIL and row is not None:
        item.fail(row.error or {"code": "svc_source_failed", "message": "indexing failed.", "retryable": False})
    elif change.verb is Verb.SKIP and row is not None:
        item.reason = row.reason
    return item


def _ids(row: Row) -> list[str]:
    """The sources of a row: the newest, and the one whose place it has not taken."""
    return list(dict.fromkeys(each for each in (row.source_id, row.place_id) if each))


def _owned(known: Holdings) -> int:
    return sum(row.source_id is not None for row in known.rows.values())
