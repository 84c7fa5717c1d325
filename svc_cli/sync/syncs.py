"""Runs one sync, of the whole folder (full sync) or only of paths that changed (touched paths).

A full sync:
1. lock the mapping, open the folder, and look up the bucket
2. finish the batches that a killed run left
3. if the bucket has changed since the last run, list it and update the sync index
4. walk the folder and compare; meanwhile, send new and changed files, rename moved ones, and retry failed ones
5. wait until the sources of the files that were sent are ready
6. remove sources of deleted files, if requested and safe
7. if something changed, list the bucket again, so that the next run need not list it

A sync of touched paths trusts the sync index. It removes nothing from the bucket: that is safe only after a full walk.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from svc_cli.client.api import Client
from svc_cli.errors import HINTS, NOTHING, ApiError, FileRefused, PathMissing, WaitTimedOut
from svc_cli.progress import Progress, Silent
from svc_cli.sync.apply import SyncQueue, apply, record, wait
from svc_cli.sync.comparing import Comparison
from svc_cli.sync.index import BUCKET_ID, ROOT, FileRow, Index, hold
from svc_cli.sync.mappings import Mapping
from svc_cli.sync.plan import Holdings
from svc_cli.sync.removing import note_mounts, remove
from svc_cli.sync.run_state import SyncOptions, SyncReport, SyncRun, open_root, reporting
from svc_cli.sync.safety import Cause, Withheld, refuse_lost_root, refuse_new_way
from svc_cli.transfer.ignores import inherit
from svc_cli.transfer.reports import ReportItem
from svc_cli.transfer.rooted_files import Root
from svc_cli.transfer.skips import IN_UNREAD_FOLDER, LEFTOVER, PLACEHOLDER, Skip
from svc_cli.transfer.snapshots import FolderPart, Snapshot, why_nothing
from svc_cli.transfer.uploads import find_or_create
from svc_daemon.wire import JsonMapping

#: Reasons why files are expected to be skipped. Such files are only counted, not reported one by one.
EXPECTED = frozenset({"dotfile", "ignored", LEFTOVER, "not included", "link", "empty"})


class Touched(NamedTuple):
    """The result of a sync of only the paths that changed."""

    report: SyncReport
    #: Whether a full sync is needed to decide about these paths.
    needs_sync: bool


def sync(
    client: Client,
    mapping: Mapping,
    options: SyncOptions,
    index_path: Path,
    progress: Progress,
    on_item: Callable[[ReportItem], None] = lambda _: None,
) -> SyncReport:
    """Sync the whole folder. An error that ends the sync early is stored in the report.

    Errors before the first change are raised: SyncRunning if the mapping is locked, UsageError, PathMissing or
    ApiError.
    """
    mapping.check(options.filters.max_path_characters, options.max_tags, options.max_tag_characters)
    report = SyncReport(
        mapping=mapping.name,
        bucket=mapping.bucket,
        is_dry=options.is_dry,
        is_strict=options.is_strict,
        exits_pending=options.exits_pending,
        # This cause is reported if the run ends before the deleted files are counted. Otherwise, the actual causes
        # are reported.
        withheld=[] if options.prune == "none" else [Withheld(Cause.ENDED_EARLY)],
    )
    if options.withheld:
        report.withheld.append(Withheld.untrusted(options.withheld))
    with hold(index_path, str(mapping.folder)), Index(index_path) as index:
        run = SyncRun(client, progress, report, on_item, mapping, options, index)
        with reporting(run, index_path):
            _sync(run)
    if isinstance(report.stopped_by, ApiError | PathMissing) and not report.items:
        raise report.stopped_by
    return report


def touch(
    client: Client,
    mapping: Mapping,
    options: SyncOptions,
    index_path: Path,
    paths: Iterable[str],
    on_item: Callable[[ReportItem], None],
) -> Touched:
    """Sync these paths and everything below them. An error that ends the sync early is stored in the report.

    Raises SyncRunning if the mapping is locked, and UsageError if the index can't be opened.
    """
    report, is_whole = SyncReport(mapping=mapping.name, bucket=mapping.bucket), True
    with hold(index_path, str(mapping.folder)), Index(index_path) as index:
        run = SyncRun(client, Silent(), report, on_item, mapping, options, index)
        with reporting(run, index_path):
            is_whole = _touch(run, FolderPart(paths))
    return Touched(report, needs_sync=not is_whole)


def _sync(run: SyncRun) -> None:
    folder, options, index = run.mapping.folder, run.options, run.index
    root = open_root(run.mapping)
    if root is not None and not options.accepts_root:
        refuse_new_way(run.mapping.name, str(folder), index.find_way(), root.way)
    bucket, known = _find_bucket(run, root)
    if root is None:
        refuse_lost_root(folder, known.owned)
        raise PathMissing.of_folder(folder)
    if not options.is_dry:
        index.set_way(root.way)
    is_moved = bool(known.rows) and index.find_fact(ROOT) not in (None, root.identity)
    if is_moved:
        run.report.remarks.append(
            "this is not the folder of the last sync (device or inode changed): all files are read, nothing is pruned."
        )
    is_thorough = is_moved or options.is_thorough
    comparison = Comparison(Snapshot(root, options.filters), known.rows, run.report.keep, run.owns, is_thorough)
    if bucket is None or options.is_dry:
        for change in comparison:
            record(run, change)
    else:
        apply(run, bucket["id"], comparison)
    # If the walk found no files, nothing has been changed yet, so the sync can still be refused.
    refuse_lost_root(folder, known.owned, comparison.met, comparison.snapshot.skips)
    run.note_doubles(bucket, known.rows)
    _report_left_out(run, comparison)
    run.report.links = comparison.snapshot.links
    if comparison.snapshot.is_complete:
        run.report.idle = [each for each, its in comparison.snapshot.idle.items() if not its.is_in(folder)]
    if bucket is None or options.is_dry:
        is_moved = is_moved or not root.is_in_place
        remove(run, None, comparison, known, is_moved=is_moved, is_late=options.wait != "ready")
    else:
        _finish(run, bucket["id"], comparison, known, is_moved=is_moved)
    if not run.report.unchanged and all(item.action in ("skipped", "gone") for item in run.report.items.values()):
        skips = [Skip(item.path, item.reason) for item in run.report.items.values() if item.reason is not None]
        message = f"{folder}: {why_nothing(folder, skips)}."
        run.report.nothing = FileRefused(message, code=NOTHING, hint=HINTS[NOTHING])


def _find_bucket(run: SyncRun, root: Root | None) -> tuple[JsonMapping | None, Holdings]:
    """Return the bucket and the mapping's sources in it. Creates a missing bucket if that is allowed.

    In a dry run, or if the folder is missing too, no bucket is created, and None is returned for a missing bucket.
    """
    remarks, is_dry = run.report.remarks, run.options.is_dry
    is_here = root is not None
    with suppress(OSError):  # raised again when the files are compared
        # No bucket is created for a folder that a rule above it leaves out.
        is_here = is_here and inherit(run.mapping.folder)[1] is None
    bucket = find_or_create(
        run.client,
        run.mapping.bucket,
        remarks.append if is_here else lambda _: None,
        may_create=run.options.may_create,
        is_dry=is_dry or not is_here,
    )
    if bucket is None:
        return None, Holdings({}, [])
    if not is_dry:
        run.index.adopt_bucket(bucket["id"])
    # Don't finish the batches if the folder is missing: uploads whose files can't be read would be canceled.
    if not is_dry and root is not None and run.index.list_batches():
        remarks.append("an earlier run was interrupted; its batches were finished.")
        with SyncQueue(run, bucket["id"], run.report.recover) as queue:
            queue.recover(root)
        run.report.batch_ids.clear()  # only the batches of this run are reported
    return bucket, run.look(bucket)


def _report_left_out(run: SyncRun, comparison: Comparison) -> None:
    report = run.report
    for skip in comparison.snapshot.skips:
        item = ReportItem.of_skip(skip)
        report.add(item)
        # Ignored files, of which there may be thousands, are only counted.
        if skip.reason not in EXPECTED:
            run.on_item(item)
    unread = {skip.path for skip in comparison.snapshot.skips if skip.error_code is not None}
    folders = tuple(path for path in unread if path.endswith("/"))
    answering: list[FileRow] = []
    unseen: list[FileRow] = []
    for row in comparison.left_out:
        if row.source_id is not None:
            # Whether what can't be read is still there is unknown.
            (unseen if row.path in unread or row.path.startswith(folders) else answering).append(row)
    absent = [row for row in comparison.absent if row.source_id is not None]
    _report_staying(report, absent, PLACEHOLDER, "in the bucket, but only a placeholder here: nothing was changed.")
    _report_staying(report, unseen, IN_UNREAD_FOLDER, "in the bucket, but can't be read here: nothing was changed.")
    if run.options.prunes_left_out:
        comparison.gone += answering
        comparison.left_out = [row for row in comparison.left_out if row.source_id is None]
        for row in answering:  # what becomes of its source is reported later
            report.items.pop(row.path, None)
        return
    left_out = "now left out, but still in the bucket: --prune-left-out."
    _report_staying(report, answering, "left out with its folder", left_out)


def _report_staying(report: SyncReport, rows: Sequence[FileRow], reason: str, remark: str) -> None:
    """Report files that the walk has not met, and whose sources stay."""
    for row in rows:
        known = report.items.get(row.path)
        item = known or ReportItem(path=row.path, action="skipped", reason=reason)
        item.source_id, item.ready = row.source_id, True
        report.add(item)
    if rows:
        report.remarks.append(f"{'1 file is' if len(rows) == 1 else f'{len(rows)} files are'} {remark}")


def _finish(run: SyncRun, bucket_id: str, comparison: Comparison, known: Holdings, *, is_moved: bool) -> None:
    """Wait for the sources, remove those of deleted files, and update the index.

    Raises WaitTimedOut at the end if the wait timed out.
    """
    root = comparison.snapshot.root
    late: WaitTimedOut | None = None
    try:
        if run.options.wait == "ready":
            wait(run)
    except WaitTimedOut as error:
        late = error
    is_late = late is not None or run.options.wait != "ready"
    # If the disk was unmounted or the folder was replaced since the run began, files only look deleted.
    if not is_moved and not root.is_in_place:
        is_moved = True
        run.report.remarks.append("the folder was replaced during the sync: nothing is pruned, sync again.")
    remove(run, bucket_id, comparison, known, is_moved=is_moved, is_late=is_late)
    run.index.remove(row.path for row in (*comparison.gone, *comparison.left_out) if row.source_id is None)
    if run.report.has_changes and late is None:
        run.list_bucket(bucket_id, run.index.load())
    run.index.set_fact(ROOT, root.identity)
    note_mounts(run, comparison)
    if late is not None:
        raise late


def _touch(run: SyncRun, part: FolderPart) -> bool:
    """Sync the paths that changed. Returns False if the whole folder must be synced instead."""
    index = run.index
    bucket_id, root = index.find_fact(BUCKET_ID), open_root(run.mapping)
    # A full sync is needed if the index is new or of another folder, or if batches of a killed run are left.
    if bucket_id is None or root is None or root.identity != index.find_fact(ROOT) or root.way != index.find_way():
        return False
    if index.list_batches():
        return False
    snapshot = Snapshot(root, run.options.filters, part)
    comparison = Comparison(snapshot, index.load_within(part.paths), run.report.keep, run.owns)
    apply(run, bucket_id, comparison)
    for skip in comparison.snapshot.skips:
        if skip.reason not in EXPECTED:
            run.add(ReportItem.of_skip(skip))
    if run.options.wait == "ready":
        wait(run)
    index.remove(row.path for row in comparison.gone if row.source_id is None)
    owned = [row for row in comparison.gone if row.source_id is not None]
    if owned and (run.options.prune != "none" or run.options.withheld):
        return False
    for row in owned:
        run.add(ReportItem(path=row.path, action="gone", source_id=row.source_id, ready=True))
    # If a file was sent but can't be indexed, its row contains the error. Any other file with an error was not sent:
    # return False, so that a full sync sends it.
    troubled = [item.path for item in run.report.items.values() if item.error]
    rows = index.load_within(troubled)
    return all(path in rows and rows[path].error is not None for path in troubled)
