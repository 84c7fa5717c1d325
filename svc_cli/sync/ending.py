"""The end of a sync: wait until what was sent is searchable, then take out what is gone, where wanted and safe."""

from collections import defaultdict
from collections.abc import Collection

from svc_cli.client.waiting import Watch, wait_until_settled
from svc_cli.errors import ApiError
from svc_cli.sync import safety
from svc_cli.sync.comparing import Comparison
from svc_cli.sync.doubts import Cause, Findings, Leaving, Replacements, Withheld, causes_of_all
from svc_cli.sync.holdings import Holdings
from svc_cli.sync.index import Row, State
from svc_cli.sync.plan import row_of
from svc_cli.sync.scenes import Scene
from svc_cli.uploads.items import ReportItem


def wait(scene: Scene, bucket_id: str) -> None:
    """Wait until every accepted source is ready or has failed. Raises WaitTimedOut."""
    pending = {item.source_id: item for item in scene.report.items.values() if item.is_pending and item.source_id}
    if not pending:
        return
    scene.progress.begin("indexing", len(pending))
    watch = Watch(list(pending), bucket_id)
    try:
        wait_until_settled(
            scene.client,
            watch,
            timeout_s=scene.options.timeout_s,
            on_change=lambda seen: scene.progress.update(seen.settled_count),
        )
    finally:
        _take_over(scene, pending, watch)


def _take_over(scene: Scene, pending: dict[str, ReportItem], watch: Watch) -> None:
    """What is known of each source by now, in the report and in the index."""
    rows = scene.index.load_within(item.path for item in pending.values())
    changed = []
    for source_id, source in watch.seen.items():
        if not source:
            continue
        item = pending[source_id]
        item.follow(source)
        scene.on_item(item)
        row = rows.get(item.path)
        if row is not None and source["status"] != "gone":
            changed.append(row_of({**source, "title": row.path}, row, row.place_id))
    scene.index.save(changed)


def remove(
    scene: Scene, bucket_id: str | None, comparison: Comparison, known: Holdings, *, is_moved: bool, is_late: bool
) -> None:
    """Take what is gone out of the bucket; or report that it still answers, and why it was left.

    Without a bucket, or in a dry run, it is only reported. Raises SafetyStop where more is gone than may be.
    """
    scene.report.withheld.clear()
    ours, others = _by_owner(scene, comparison, known)
    _withhold(scene, Cause.OTHER_FOLDER, others)
    if scene.options.prune == "none":
        _withhold(scene, Cause.PRUNE_NOT_ASKED, ours)
        return
    found = Findings(
        items=list(scene.report.items.values()),
        paths=known.rows.keys(),
        hashes={row.sha256 for row in known.rows.values() if row.source_id},
        is_complete=comparison.snapshot.is_complete,
        is_moved=is_moved,
        is_restless=scene.options.is_restless,
        is_late=is_late,
    )
    causes = causes_of_all(found)
    for cause, because in causes.items():
        _withhold(scene, cause, ours, because)
    if not causes:
        _remove_certain(scene, bucket_id, _hold_back_own(scene, ours, found), owned(known) + len(known.surplus))


def _by_owner(scene: Scene, comparison: Comparison, known: Holdings) -> tuple[list[Leaving], list[Leaving]]:
    """What is gone: what may be removed, and what may be another folder's.

    A name that nobody chose is the folder's own, which others may have too: then only what was seen here counts.
    """
    ours: list[Leaving] = []
    others: list[Leaving] = []
    for row in comparison.gone:
        is_ours = scene.mapping.is_named or row.hashed_ns > 0
        (ours if is_ours else others).extend(_sources_of(row))
    doubled = [
        Leaving(source["title"], source["id"], source["sha256"], source.get("size_bytes") or 0)
        for source in known.surplus
    ]
    (ours if scene.mapping.is_named else others).extend(doubled)
    return ours, others


def _sources_of(row: Row) -> list[Leaving]:
    """The newest source of a row, and the one whose place it has not taken."""
    ids = list(dict.fromkeys(each for each in (row.source_id, row.place_id) if each))
    is_silent = row.state == State.FAILED and len(ids) == 1
    return [Leaving(row.path, each, row.sha256, row.size_bytes, is_silent) for each in ids]


def _hold_back_own(scene: Scene, leaving: list[Leaving], found: Findings) -> list[Leaving]:
    """What may go; a source that a file in trouble may replace stays, and that is reported."""
    replacements = Replacements(found.items)
    certain: list[Leaving] = []
    kept: defaultdict[Cause, dict[Leaving, str]] = defaultdict(dict)
    for each in leaving:
        own = replacements.find(each)
        if own is None:
            certain.append(each)
        else:
            kept[own[0]][each] = own[1]
    for cause, because in kept.items():
        _withhold(scene, cause, because, tuple(dict.fromkeys(because.values())))
    return certain


def _remove_certain(scene: Scene, bucket_id: str | None, leaving: list[Leaving], owned_count: int) -> None:
    """Raises SafetyStop where these are too many."""
    if not scene.options.max_delete.allows(len(leaving), owned_count):
        _withhold(scene, Cause.TOO_MANY, leaving)
        raise safety.too_many(len(leaving), owned_count, scene.options.max_delete)
    for number, each in enumerate(leaving):
        try:
            _take_out(scene, each.path, each.source_id, bucket_id)
        except BaseException:
            _withhold(scene, Cause.ENDED_EARLY, leaving[number:])
            raise


def owned(known: Holdings) -> int:
    """How many files the mapping has in the bucket."""
    return sum(row.source_id is not None for row in known.rows.values())


def _withhold(scene: Scene, cause: Cause, leaving: Collection[Leaving], because: tuple[str, ...] = ()) -> None:
    """Report what stays, file by file and once for all of them."""
    if not leaving:
        return
    scene.report.withheld.append(Withheld(cause, len({each.path for each in leaving}), because))
    for each in leaving:
        _tell(scene, ReportItem(path=each.path, action="gone", source_id=each.source_id, ready=True))


def _take_out(scene: Scene, path: str, source_id: str, bucket_id: str | None) -> None:
    is_delete = scene.options.prune == "delete"
    item = ReportItem(path=path, action="deleted" if is_delete else "detached", source_id=source_id, ready=True)
    if bucket_id is not None and not scene.options.is_dry:
        try:
            if is_delete:
                scene.client.delete_source(source_id)
            else:
                scene.client.detach_source(bucket_id, source_id)
        except ApiError as error:
            if error.code != "source_not_found":
                item.refuse(error)
    _tell(scene, item)
    scene.on_item(item)


def _tell(scene: Scene, item: ReportItem) -> None:
    """A title that was there once too often stands for its file already; a failure is told all the same."""
    if item.error is not None or item.path not in scene.report.items:
        scene.report.add(item)
