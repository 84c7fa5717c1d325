"""One sync of one mapping, from lock to report.

1. lock the mapping; ask for the bucket
2. bring to their end the batches that a killed run left
3. index and bucket agree again, where one of them has moved
4. walk, compare, and send while the walk goes on; moves and retries
5. wait until what was sent is ready
6. take out what is gone, if that was asked for and nothing speaks against it
7. list the bucket once more where something changed, so that the next run need not
"""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from svc_cli.client.api import Client
from svc_cli.errors import ApiError, PathMissing, SvcError, WaitTimedOut, refused_by_system
from svc_cli.progress import Progress
from svc_cli.sync import changing, ending, holdings, safety
from svc_cli.sync.comparing import Change, Comparison, ReadPolicy
from svc_cli.sync.doubts import Cause, Withheld
from svc_cli.sync.holdings import Holdings
from svc_cli.sync.index import Index, unwritable
from svc_cli.sync.locks import hold
from svc_cli.sync.mappings import Mapping
from svc_cli.sync.plan import Verb
from svc_cli.sync.reports import Report
from svc_cli.sync.scenes import Options, Scene
from svc_cli.sync.sending import Sending
from svc_cli.sync.snapshots import Snapshot
from svc_cli.uploads.items import ReportItem
from svc_cli.uploads.runs import elapsed_ms, interrupted, refuse_archived
from svc_daemon.wire import Json

#: Rows that are written to the index at a time.
SAVED_AT_ONCE = 1000


def sync(
    client: Client,
    mapping: Mapping,
    options: Options,
    index_path: Path,
    progress: Progress,
    on_item: Callable[[ReportItem], None] = lambda _: None,
) -> Report:
    """Bring the folder into the bucket; what ended it early stands in the report.

    Raises SyncRunning, UsageError for a mapping that no source can carry or an index that can't be opened, and while
    nothing was done yet PathMissing and ApiError, such as `bucket_not_found` where the bucket may not be made.
    """
    mapping.check(options.filters.max_path_characters, options.max_tags, options.max_tag_characters)
    # Until the run comes to removing, all that is gone is withheld.
    withheld = [] if options.prune == "none" else [Withheld(Cause.ENDED_EARLY)]
    report = Report(
        mapping=mapping.name,
        bucket=mapping.bucket,
        is_dry=options.is_dry,
        is_strict=options.is_strict,
        tells_pending=options.tells_pending,
        withheld=withheld,
    )
    with hold(index_path, str(mapping.folder)), Index(index_path) as index, reporting(report, index_path):
        _run(Scene(client, mapping, options, index, progress, report, on_item))
    if isinstance(report.stopped_by, ApiError | PathMissing) and not report.items:
        raise report.stopped_by
    return report


@contextmanager
def reporting(report: Report, index_path: Path) -> Iterator[None]:
    """Note in the report how long the block took and what ended it early."""
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
        raise  # whoever heard of the files has enough
    except OSError as error:
        report.stopped_by = refused_by_system(error)
    report.duration_ms = elapsed_ms(began_s)


def _run(scene: Scene) -> None:
    root = identify_root(scene.mapping.folder)
    bucket = _find_bucket(scene, is_here=root is not None)
    known = _know(scene, bucket, is_here=root is not None)
    _refuse_missing_root(scene.mapping.folder, root, known)
    is_moved = bool(known.rows) and scene.index.find_fact(holdings.ROOT) not in (None, root)
    if is_moved:
        scene.note("the folder is another one than last time: every file is read again, and nothing is pruned.")
    comparison = _compare(scene, known, is_thorough=is_moved)
    bucket_id = None if bucket is None or scene.options.is_dry else str(bucket["id"])
    if bucket_id is None:
        _foresee(scene, comparison)
    else:
        apply(scene, bucket_id, comparison)
    # A walk that met nothing has sent nothing either, so this is early enough.
    folder = str(scene.mapping.folder)
    safety.refuse_lost_root(folder, exists=True, is_empty=comparison.met == 0, owned=ending.owned(known))
    _report_left_out(scene, comparison)
    # A disk that was taken away in the middle of the walk looks as if the rest of its files were deleted.
    is_moved = is_moved or identify_root(scene.mapping.folder) != root
    waits = scene.options.wait == "ready"
    late = _wait(scene, bucket_id) if waits and bucket_id is not None else None
    ending.remove(scene, bucket_id, comparison, known, is_moved=is_moved, is_late=late is not None or not waits)
    if bucket_id is not None and root is not None:
        _remember(scene, bucket_id, comparison, root)
    if late is not None:
        raise late


def _wait(scene: Scene, bucket_id: str) -> WaitTimedOut | None:
    """Wait for what was sent. What takes too long withholds no more of what is gone than it has to."""
    try:
        ending.wait(scene, bucket_id)
    except WaitTimedOut as error:
        return error
    return None


def _find_bucket(scene: Scene, *, is_here: bool) -> Json | None:
    """The bucket, made where it is missing and may be made; None where a dry run, or a missing folder, finds none."""
    name = scene.mapping.bucket
    try:
        bucket = scene.client.bucket(name, members=False)
    except ApiError as error:
        may_make = scene.options.may_create and "_" not in name  # an id is not made, only a slug
        if error.code != "bucket_not_found" or not may_make:
            raise
    else:
        refuse_archived(bucket)
        return bucket
    if not is_here:
        return None
    if scene.options.is_dry:
        scene.note(f"the bucket {name} would be created.")
        return None
    scene.client.ensure_bucket(name)
    scene.note(f"created the bucket {name}.")
    return scene.client.bucket(name, members=False)


def identify_root(folder: Path) -> str | None:
    """Device and inode of the folder; None where there is none."""
    try:
        facts = folder.stat()
    except OSError:
        return None
    return f"{facts.st_dev}:{facts.st_ino}" if folder.is_dir() else None


def _know(scene: Scene, bucket: Json | None, *, is_here: bool) -> Holdings:
    """What index and bucket know together, once batches that were cut off have come to their end.

    Without the folder these would only be given up, and what arrived of them with it.
    """
    if bucket is None:
        return Holdings()
    if not scene.options.is_dry:
        holdings.adopt_bucket(scene.index, bucket["id"])
        if is_here:
            _recover(scene, bucket["id"])
    return holdings.look(
        scene.client,
        scene.index,
        bucket,
        scene.mapping.name,
        is_thorough=scene.options.verify_remote,
        saves=not scene.options.is_dry,
    )


def _recover(scene: Scene, bucket_id: str) -> None:
    if not scene.index.list_batches():
        return
    scene.note("an earlier run was cut off; its batches were brought to their end.")
    sending = _open_sending(scene, bucket_id, scene.report.recover)
    with sending.dispatch:
        sending.recover(scene.mapping.folder)


def _open_sending(scene: Scene, bucket_id: str, on_item: Callable[[ReportItem], None]) -> Sending:
    jobs = scene.options.jobs
    return Sending(scene.client, scene.index, bucket_id, jobs, on_item, on_sent=scene.flow.count, on_wait=scene.show)


def _refuse_missing_root(folder: Path, root: str | None, known: Holdings) -> None:
    """Raises SafetyStop where a folder that was there is missing, PathMissing where there never was one."""
    if root is not None:
        return
    safety.refuse_lost_root(str(folder), exists=False, is_empty=True, owned=ending.owned(known))
    raise PathMissing(f"{folder}: there is no such folder.", details={"path": str(folder)})


def _compare(scene: Scene, known: Holdings, *, is_thorough: bool) -> Comparison:
    options, folder = scene.options, scene.mapping.folder
    policy = ReadPolicy(
        max_bytes=options.filters.max_bytes,
        extensions=options.extensions,
        is_thorough=is_thorough or options.is_thorough,
    )
    return Comparison(folder, Snapshot(folder, options.filters), known.rows, policy)


def _foresee(scene: Scene, comparison: Comparison) -> None:
    """Say what would be done."""
    for change in comparison:
        if change.verb is Verb.KEEP:
            scene.report.keep(change.path)
        else:
            scene.tell(changing.item_of(change))


def apply(scene: Scene, bucket_id: str, comparison: Comparison) -> None:
    """Do it, while the walk goes on."""
    scene.progress.begin("syncing", None)
    sending = _open_sending(scene, bucket_id, scene.tell)
    scene.report.batch_ids = sending.dispatch.batch_ids
    with sending.dispatch:
        for change in comparison:
            _act(scene, sending, change)
            if len(comparison.refreshed) >= SAVED_AT_ONCE:
                _save_refreshed(scene, comparison)
        sending.finish()
    _save_refreshed(scene, comparison)


def _act(scene: Scene, sending: Sending, change: Change) -> None:
    if change.verb is Verb.KEEP:
        scene.report.keep(change.path)
    elif change.verb in (Verb.CREATE, Verb.UPDATE):
        changing.send(scene, sending, change)
    elif change.verb is Verb.MOVE:
        changing.move(scene, change)
    elif change.verb is Verb.RETRY:
        changing.retry(scene, change)
    else:
        scene.tell(changing.item_of(change))


def _save_refreshed(scene: Scene, comparison: Comparison) -> None:
    scene.index.save(comparison.refreshed)
    comparison.refreshed.clear()


def _report_left_out(scene: Scene, comparison: Comparison) -> None:
    for skip in comparison.snapshot.skips:
        scene.report.add(ReportItem.of_skip(skip))
    answering = [row for row in comparison.left_out if row.source_id is not None]
    for row in answering:
        told = scene.report.items.get(row.path)
        item = told or ReportItem(path=row.path, action="skipped", reason="left out with its folder")
        item.source_id, item.ready = row.source_id, True
        scene.report.add(item)
    if answering:
        scene.note(f"{len(answering)} files are left out now and still answer: `svc source rm` takes them out.")


def _remember(scene: Scene, bucket_id: str, comparison: Comparison, root: str) -> None:
    """Leave an index with which the next run has nothing to ask."""
    unsent = [row.path for row in (*comparison.gone, *comparison.left_out) if row.source_id is None]
    scene.index.remove(unsent)
    if scene.report.has_changes:
        holdings.refresh(scene.client, scene.index, bucket_id, scene.mapping.name)
    scene.index.set_fact(holdings.ROOT, root)
