"""Carries out the changes of a sync, and waits until the sources are ready."""

from collections.abc import Callable
from pathlib import PurePosixPath

from svc_cli.client.waiting import Watch, wait_until_settled
from svc_cli.errors import ApiError
from svc_cli.sync.comparing import Change, Comparison
from svc_cli.sync.index import State
from svc_cli.sync.plan import Verb, conflict_of, row_of
from svc_cli.sync.run_state import SyncRun
from svc_cli.sync.sending import SyncQueue
from svc_cli.uploads.items import ReportItem

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


def open_queue(run: SyncRun, bucket_id: str, on_item: Callable[[ReportItem], None]) -> SyncQueue:
    """Return the queue that sends files to the bucket."""
    jobs = run.options.jobs
    return SyncQueue(
        *(run.client, run.index, bucket_id, jobs, on_item),
        may_replace=run.owns_source,
        on_sent=run.flow.count,
        on_wait=run.show,
    )


def apply(run: SyncRun, bucket_id: str, comparison: Comparison) -> None:
    """Carry out the changes. Raises SvcError if an error affects every file."""
    run.progress.begin("syncing", None)
    queue = open_queue(run, bucket_id, run.add)
    run.report.batch_ids = queue.batch_ids
    with queue:
        for change in comparison:
            row, now = change.row, change.now
            if change.verb in (Verb.CREATE, Verb.UPDATE) and now is not None and change.content is not None:
                place_id = row.place_id if change.verb is Verb.UPDATE and row is not None else None
                queue.add_file(run.mapping, now, change.content, place_id)
            elif change.verb in (Verb.MOVE, Verb.RETRY):
                _update_source(run, change)
            else:
                record(run, change)
            if refreshed := comparison.take_refreshed(SAVED_AT_ONCE):
                run.index.save(refreshed)
        queue.finish()
    run.index.save(comparison.take_refreshed())


def record(run: SyncRun, change: Change) -> None:
    """Report a change without carrying it out."""
    if change.verb is Verb.KEEP:
        run.report.keep(change.path)
    else:
        run.add(_item_of(run, change))


def wait(run: SyncRun, bucket_id: str) -> None:
    """Wait until every accepted source is ready or has failed. Raises WaitTimedOut."""
    pending = {item.source_id: item for item in run.report.items.values() if item.is_pending and item.source_id}
    if not pending:
        return
    run.progress.begin("indexing", len(pending))
    batches = {source_id: item.batch_id for source_id, item in pending.items() if item.batch_id}
    watch = Watch(pending, bucket_id, batches)
    try:
        wait_until_settled(
            run.client,
            watch,
            timeout_s=run.options.timeout_s,
            on_change=lambda seen: run.progress.update(seen.settled_count),
        )
    finally:
        # Even after an error, save the last known state of each source.
        rows = run.index.load_within(item.path for item in pending.values())
        changed = []
        for source_id, source in ((each, source) for each, source in watch.seen.items() if source):
            item = pending[source_id]
            item.follow(source)
            run.on_item(item)
            row = rows.get(item.path)
            if row is not None and source["status"] != "gone":
                # The service lists the sources of a batch without their hashes, so use the hash in the row.
                changed.append(row_of({"sha256": row.sha256, **source, "title": row.path}, row, row.place_id))
        run.index.save(changed)


def _update_source(run: SyncRun, change: Change) -> None:
    """Rename the source of a moved file, or retry a failed source."""
    item, row, now = _item_of(run, change), change.row, change.now
    if row is None or row.source_id is None or now is None:
        raise AssertionError("a move and a retry have a source")
    try:
        if change.verb is Verb.MOVE:
            name = PurePosixPath(now.path).name
            item.follow(run.client.update_source(row.source_id, title=now.path, filename=name))
            moved = now._replace(source_id=row.source_id, place_id=row.place_id, state=row.state, reason=row.reason)
            run.index.move(row.path, moved)
        else:
            item.follow(run.client.retry_source(row.source_id))
            run.index.save([row._replace(state=State.SENT, reason=None)])
    except ApiError as error:
        item.refuse(error)
    run.add(item)


def _item_of(run: SyncRun, change: Change) -> ReportItem:
    """Convert the change to an item of the report."""
    now, row = change.now, change.row
    item = ReportItem(path=change.path, action=_ACTIONS[change.verb], source_id=row.source_id if row else None)
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
