"""Carries out the changes of a sync: sends files in recorded batches, and waits until the sources are ready.

The next run sends the batches of a killed run again with the same idempotency keys, so nothing is created twice.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from svc_cli.client.api import Client
from svc_cli.client.new_files import Description
from svc_cli.errors import UNFORESEEN, ApiError, WaitTimedOut
from svc_cli.sync.comparing import Change, Comparison
from svc_cli.sync.index import UNSTORABLE, FileRow, Journaled, State
from svc_cli.sync.plan import Verb, conflict_of, row_of
from svc_cli.sync.run_state import SyncRun
from svc_cli.transfer.contents import FileContent
from svc_cli.transfer.queues import TransferQueue
from svc_cli.transfer.reports import ReportItem
from svc_cli.transfer.rooted_files import Root
from svc_cli.transfer.transfers import Transfer, TransferGroup
from svc_daemon.wire import JsonMapping

if TYPE_CHECKING:
    from svc_cli.client.types import SourceDict

#: Maximum number of sources to look up: a replaced source, the source that replaced it, and so on.
MOST_SUCCESSORS = 20


class SyncQueue(TransferQueue):
    """The upload queue of one sync. Not thread-safe."""

    def __init__(self, run: SyncRun, bucket_id: str, on_item: Callable[[ReportItem], None] | None = None) -> None:
        """`on_item` is called with the outcome of each file, instead of reporting it."""
        super().__init__(run, bucket_id, run.options.jobs)
        self.sync = run
        self._on_item = on_item or run.add
        self._given_tags = run.note_tags()
        #: The index row to write after a file was sent, by path.
        self._rows: dict[str, FileRow] = {}
        #: Files to send once more, because the sources to replace no longer exist. None during the second attempt.
        self._displaced: list[tuple[FileRow, Transfer]] | None = []

    def add_file(self, row: FileRow, content: FileContent, before: FileRow | None = None) -> None:
        """Send a file, which replaces the source of the row `before` if given, and keeps what a person set on it.

        Raises SvcError for errors that every file would get, such as a revoked key.
        """
        tags, metadata = self.sync.mapping.tags, {}
        old = find_source(self.run.client, before.source_id or before.place_id) if before is not None else None
        if old is not None:
            by_hand = (tag for tag in old["tags"] if tag not in self._given_tags)
            tags, metadata = tuple(dict.fromkeys((*by_hand, *tags))), old["metadata"]
        description = Description(
            filename=PurePosixPath(row.path).name,
            title=row.path,
            tags=tags,
            metadata=metadata,
            sha256=row.sha256,
            replaces=before.place_id if before is not None else None,
            mapping=self.sync.mapping.name,
        )
        self._rows[row.path] = row
        self.add(_transfer(row, content, description))

    def finish(self) -> None:
        """Send the remaining files.

        If the source that a file should replace no longer exists, the file is sent again, to replace that source's
        successor, if any. Raises SvcError like `add_file`.
        """
        super().finish()
        displaced, self._displaced = self._displaced or [], None
        for row, before in displaced:
            found = find_source(self.run.client, before.description.replaces)
            place_id = found["id"] if found is not None else None
            after = _transfer(row, before.content, before.description)
            after.item.sent_bytes = before.item.sent_bytes
            if place_id is not None and not self.sync.owns_source(place_id):
                after.item.conflict(place_id, conflict_of(str(before.description.mapping)))
                self._on_item(after.item)
                continue
            self._rows[row.path] = row
            self.add(replace(after, description=replace(before.description, replaces=place_id)))
        super().finish()

    def recover(self, root: Root) -> None:
        """Finish the batches of an earlier run. Raises SvcError like `add_file`."""
        for batch in self.sync.index.list_batches():
            try:
                transfers = []
                for name, row in batch.rows.items():
                    # Use the size and time that the killed run recorded: if the file has changed since, reading fails.
                    stamp = (row.device, row.inode, row.size_bytes, row.mtime_ns)
                    place = Path(root.find(row.raw) or row.raw)
                    content = FileContent(place, row.sha256, row.size_bytes, stamp=stamp, root=root)
                    transfers.append(_transfer(row, content, Description(**batch.body[name])))
                keys = {_key(TransferGroup("batch", tuple(transfers)))}
            except UNFORESEEN as error:
                self._set_aside(batch.key, error)
                continue
            if keys != {batch.key}:
                self._set_aside(batch.key, ValueError("its rows are damaged"))
                continue
            self._rows |= {row.path: row for row in batch.rows.values()}
            self.send(TransferGroup("batch", tuple(transfers)))
        self.finish()

    def _set_aside(self, key: str, error: Exception) -> None:
        """Finish a recorded batch never, since that fails. The files are compared with the bucket like all others."""
        self.sync.index.set_aside(key)
        why = f"{type(error).__name__}: {error}"
        self.sync.report.remarks.append(
            f"the record of a batch could not be used, and was set aside ({why}); its files are compared again."
        )

    def begin(self, group: TransferGroup) -> None:
        batch: Journaled | None = None
        if group.kind == "batch":
            transfers = {each.member.client_file_id: each for each in group.transfers}
            bodies = {name: each.description.body() for name, each in transfers.items()}
            rows = {name: self._rows[each.item.path] for name, each in transfers.items()}
            batch = Journaled(_key(group), bodies, rows)
        self.sync.index.begin([self._rows[each.item.path] for each in group.transfers], batch)

    def end(self, group: TransferGroup) -> None:
        """Write the rows of the sync index for a group that was sent, and report its files.

        A file without a source gets no row, so the next run sends it again.
        """
        ended, again = [], []
        for transfer in group.transfers:
            item, row, replaces = transfer.item, self._rows.pop(transfer.item.path), transfer.description.replaces
            if item.source_id is not None:
                state = State.READY if item.ready else State.FAILED if item.status == "failed" else State.SENT
                place_id = item.source_id if item.ready else replaces or item.source_id
                reason = json.dumps(item.error) if item.error else None
                ended.append(row._replace(source_id=item.source_id, place_id=place_id, state=state, reason=reason))
            is_gone = item.error is not None and item.error["code"] == "source_not_found"
            if self._displaced is not None and is_gone and replaces is not None:
                again.append((row, transfer))
        try:
            self.sync.index.finish(_key(group), ended)
        except UNSTORABLE as error:
            self._set_aside(_key(group), error)
        if self._displaced is not None:
            self._displaced += again
        displaced = [transfer for _, transfer in again]
        for transfer in group.transfers:
            if transfer not in displaced:
                self._on_item(transfer.item)


def find_source(client: Client, source_id: str | None) -> "SourceDict | None":
    """Return the source, or the one that has replaced it; None if there is none."""
    for _ in range(MOST_SUCCESSORS):
        if source_id is None:
            return None
        try:
            return client.source(source_id)
        except ApiError as error:
            if error.code != "source_not_found":
                raise
            source_id = error.details.get("replaced_by")
    return None


def _transfer(row: FileRow, content: FileContent, description: Description) -> Transfer:
    action = "updated" if description.replaces else "created"
    item = ReportItem(path=row.path, is_named=False, action=action, size_bytes=row.size_bytes, sha256=row.sha256)
    return Transfer(item, content, description)


def _key(group: TransferGroup) -> str:
    return " ".join(sorted(each.member.client_file_id for each in group.transfers))


#: Index rows written in one transaction.
SAVED_AT_ONCE = 1000
_ACTIONS = {
    Verb.CREATE: "created",
    Verb.UPDATE: "updated",
    Verb.MOVE: "moved",
    Verb.RETRY: "retried",
    Verb.WAIT: "unchanged",
    Verb.KEEP: "unchanged",
    Verb.FAIL: "failed",
    Verb.SKIP: "skipped",
    Verb.CONFLICT: "conflict",
}


def apply(run: SyncRun, bucket_id: str, comparison: Comparison) -> None:
    """Carry out the changes. Raises SvcError if an error affects every file."""
    run.progress.begin("syncing", None)
    updates = list[Change]()
    try:
        with SyncQueue(run, bucket_id) as queue:
            for change in comparison:
                row, now = change.row, change.now
                if change.verb in (Verb.CREATE, Verb.UPDATE) and now is not None and change.content is not None:
                    queue.add_file(now, change.content, row if change.verb is Verb.UPDATE else None)
                elif change.verb in (Verb.MOVE, Verb.RETRY):
                    updates.append(change)
                else:
                    record(run, change)
                if refreshed := comparison.take_refreshed(SAVED_AT_ONCE):
                    run.index.save(refreshed)
            queue.finish()
        _update_sources(run, updates)
    except WaitTimedOut:
        run.report.remaining = comparison.count_rest(run.report.done)
        raise
    run.index.save(comparison.take_refreshed())


def record(run: SyncRun, change: Change) -> None:
    """Report a change without carrying it out."""
    if change.verb is Verb.KEEP:
        run.report.keep(change.path)
    else:
        run.add(_item_of(run, change))


def wait(run: SyncRun) -> None:
    """Wait until every accepted source is ready or has failed. Raises WaitTimedOut."""

    def save(seen: Mapping[str, JsonMapping]) -> None:
        items = [item for item in run.report.items.values() if item.source_id in seen]
        rows, changed = run.index.load_within(item.path for item in items), []
        for item, source in ((item, seen[str(item.source_id)]) for item in items):
            row = rows.get(item.path)
            if row is not None and source["status"] != "gone":
                changed.append(row_of({**source, "title": row.path}, row, row.place_id))
        run.index.save(changed)

    run.wait(run.options.timeout_s, save)


def _update_sources(run: SyncRun, changes: Sequence[Change]) -> None:
    """Rename the sources of moved files, and retry failed sources, several at a time.

    Raises SvcError if an error affects all of them.
    """
    by_path, updated = {change.path: change for change in changes}, set[str]()

    def note(item: ReportItem) -> None:
        row, now = by_path[item.path].row, by_path[item.path].now
        if item.path not in updated or row is None or now is None:
            return
        if by_path[item.path].verb is Verb.MOVE:
            moved = now._replace(source_id=row.source_id, place_id=row.place_id, state=row.state, reason=row.reason)
            run.index.move(row.path, moved)
        else:
            run.index.save([row._replace(state=State.SENT, reason=None)])

    run.do_all([partial(_update_source, run, change, updated) for change in changes], run.options.jobs, note)
    if run.report.stopped_by:
        raise run.report.stopped_by


def _update_source(run: SyncRun, change: Change, updated: set[str]) -> ReportItem:
    """Rename the source or retry it, and add the file's path to `updated` if this was done."""
    item, row, now = _item_of(run, change), change.row, change.now
    if row is None or row.source_id is None or now is None:
        raise AssertionError("a move and a retry have a source")
    try:
        if change.verb is Verb.MOVE:
            name = PurePosixPath(now.path).name
            item.follow(run.client.update_source(row.source_id, title=now.path, filename=name))
        else:
            item.follow(run.client.retry_source(row.source_id))
        updated.add(change.path)
    except ApiError as error:
        item.refuse(error)
    return item


def _item_of(run: SyncRun, change: Change) -> ReportItem:
    """Convert the change to an item of the report."""
    now, row = change.now, change.row
    source_id = row.source_id if row else None
    item = ReportItem(path=change.path, is_named=False, action=_ACTIONS[change.verb], source_id=source_id)
    item.ready = row is not None and row.state == State.READY
    if now is not None:
        item.size_bytes, item.sha256 = now.size_bytes, now.sha256
    if change.error is not None:
        item.size_bytes = change.size_bytes
        item.refuse(change.error)
    elif change.verb is Verb.FAIL and row is not None:
        item.status = "failed"
        item.fail(row.error or {"code": "svc_source_failed", "message": "indexing failed.", "retryable": False})
    elif change.verb is Verb.CONFLICT and row is not None:
        item.conflict(str(row.place_id), conflict_of(run.mapping.name))
    elif change.verb is Verb.SKIP and row is not None:
        item.reason = row.reason
    return item
