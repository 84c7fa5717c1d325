"""The end of a sync: wait until what was sent is searchable, then take out what is gone, where wanted and safe."""

from svc_cli.client.waiting import Watch, wait_until_settled
from svc_cli.errors import ApiError
from svc_cli.sync import safety
from svc_cli.sync.comparing import Comparison
from svc_cli.sync.holdings import Holdings
from svc_cli.sync.index import Row
from svc_cli.sync.plan import row_of
from svc_cli.sync.safety import Findings
from svc_cli.sync.scenes import Scene
from svc_cli.uploads.summaries import Item

#: A path, and a source that it has in the bucket.
Gone = tuple[str, str]


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


def _take_over(scene: Scene, pending: dict[str, Item], watch: Watch) -> None:
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


def remove(scene: Scene, bucket_id: str | None, comparison: Comparison, known: Holdings, *, is_moved: bool) -> None:
    """Take what is gone out of the bucket; or say that it still answers, and why it was left.

    Without a bucket, or in a dry run, it is only said. Raises SafetyStop where more is gone than may be.
    """
    ours, others = _by_owner(scene, comparison, known)
    if others:
        _leave(
            scene, others, "they came from elsewhere under this folder's name; give the mapping a name to prune them"
        )
    if ours:
        _remove_ours(scene, bucket_id, ours, comparison, known, is_moved=is_moved)


def _by_owner(scene: Scene, comparison: Comparison, known: Holdings) -> tuple[list[Gone], list[Gone]]:
    """What is gone, as paths and sources: what may be removed, and what may be another folder's.

    A name that nobody chose is the folder's own, which others may have too: then only what was seen here counts.
    """
    ours: list[Gone] = []
    others: list[Gone] = []
    for row in comparison.gone:
        is_ours = scene.mapping.is_named or row.hashed_ns > 0
        (ours if is_ours else others).extend((row.path, source_id) for source_id in _ids(row))
    doubled = [(source["title"], source["id"]) for source in known.surplus]
    (ours if scene.mapping.is_named else others).extend(doubled)
    return ours, others


def _remove_ours(
    scene: Scene,
    bucket_id: str | None,
    gone: list[Gone],
    comparison: Comparison,
    known: Holdings,
    *,
    is_moved: bool,
) -> None:
    found = Findings(
        gone=len(gone),
        owned=owned(known) + len(known.surplus),
        is_complete=comparison.snapshot.is_complete,
        is_moved=is_moved,
        failed=sum(item.error is not None for item in scene.report.items.values()),
    )
    if scene.options.prune == "none":
        _leave(scene, gone, "--prune detach")
    elif (reason := safety.reason_to_keep(found)) is not None:
        _leave(scene, gone, reason)
    elif not scene.options.max_delete.allows(found.gone, found.owned):
        _tell_gone(scene, gone)
        raise safety.too_many(found, scene.options.max_delete)
    else:
        for path, source_id in gone:
            _take_out(scene, path, source_id, bucket_id)


def owned(known: Holdings) -> int:
    """How many files the mapping has in the bucket."""
    return sum(row.source_id is not None for row in known.rows.values())


def _tell_gone(scene: Scene, gone: list[Gone]) -> None:
    for path, source_id in gone:
        _tell(scene, Item(path=path, action="gone", source_id=source_id, ready=True))


def _leave(scene: Scene, gone: list[Gone], why: str) -> None:
    _tell_gone(scene, gone)
    scene.note(f"{len(gone)} files are gone here and still answer: {why}.")


def _take_out(scene: Scene, path: str, source_id: str, bucket_id: str | None) -> None:
    is_delete = scene.options.prune == "delete"
    item = Item(path=path, action="deleted" if is_delete else "detached", source_id=source_id, ready=True)
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


def _tell(scene: Scene, item: Item) -> None:
    """A title that was there once too often stands for its file already; a failure is told all the same."""
    if item.error is not None or item.path not in scene.report.items:
        scene.report.add(item)


def _ids(row: Row) -> list[str]:
    """The sources of a row: the newest, and the one whose place it has not taken."""
    return list(dict.fromkeys(each for each in (row.source_id, row.place_id) if each))
