"""Removes the sources of deleted files from the bucket, if requested and safe."""

from collections import defaultdict
from collections.abc import Collection

from svc_cli.errors import ApiError
from svc_cli.sync.comparing import Comparison
from svc_cli.sync.index import State
from svc_cli.sync.mappings import Ownership
from svc_cli.sync.plan import Holdings, conflict_of
from svc_cli.sync.run_state import SyncRun
from svc_cli.sync.safety import Cause, Findings, Removal, Replacements, Withheld, causes_of_all, too_many
from svc_cli.transfer.reports import ReportItem


def remove(
    run: SyncRun, bucket_id: str | None, comparison: Comparison, known: Holdings, *, is_moved: bool, is_late: bool
) -> None:
    """Remove the sources of deleted files, or report why they stay. Raises SafetyStop if too many files are missing.

    Without `bucket_id`, nothing is removed. `is_moved`: the folder was replaced. `is_late`: not all is indexed yet.
    """
    run.report.withheld.clear()
    ours, others = _by_owner(run, comparison, known)
    owned = sum(row.source_id is not None and run.owns(row) for row in known.rows.values()) + len(known.surplus)
    found = Findings(
        items=list(run.report.items.values()),
        paths=known.rows.keys(),
        hashes={row.sha256 for row in known.rows.values() if row.source_id},
        is_complete=comparison.snapshot.is_complete,
        is_moved=is_moved,
        is_restless=run.options.is_restless,
        is_late=is_late,
        is_over=not run.client.deadline.left_s,
        lost_mounts=lost_mounts(run, comparison),
    )
    _withhold_untrusted(run, ours, owned)
    _withhold(run, Cause.OTHER_FOLDER, others)
    if run.options.prune == "none":
        return
    for cause, because in (causes := causes_of_all(found)).items():
        _withhold(run, cause, ours, because)
    if causes:
        return
    certain = _hold_back(run, ours, found)
    limit = run.options.max_delete.for_mapping(owned)
    if not limit.allows(len(certain), owned):
        _withhold(run, Cause.TOO_MANY, certain)
        raise too_many(len(certain), owned, limit)
    for number, each in enumerate(certain):
        try:
            _take_out(run, each, bucket_id)
        except BaseException:
            _withhold(run, Cause.ENDED_EARLY, certain[number:])
            raise


def lost_mounts(run: SyncRun, comparison: Comparison) -> list[str]:
    """Return the folders where another disk was mounted in the last run and is not now, unless that is accepted."""
    known, mounts = run.index.find_mounts(), comparison.snapshot.mounts
    return [] if run.options.accepts_missing else [each for each in known if mounts.get(each) != known[each]]


def note_mounts(run: SyncRun, comparison: Comparison) -> None:
    """Record where other disks begin in the folder.

    A disk that is missing stays known while its files are missing, unless there is another one in its place.
    """
    gone, snapshot, known = comparison.gone, comparison.snapshot, run.index.find_mounts()
    lost = {
        mount: known[mount]
        for mount in lost_mounts(run, comparison)
        if not snapshot.is_complete or any(row.path.startswith(mount) for row in gone)
    }
    run.index.set_mounts(lost | snapshot.mounts)


def _withhold_untrusted(run: SyncRun, ours: Collection[Removal], owned: int) -> None:
    """Report what a project's file that is not trusted asks for in vain, and which files stay unless prune is asked."""
    options = run.options
    asked = {**options.withheld, **options.max_delete.withheld(owned)}
    staying = ours if options.prune == "none" else ()
    if asked:
        files = len({each.path for each in staying}) if "prune" in asked else 0
        run.report.withheld.append(Withheld.untrusted(asked, files))
    _withhold(run, Cause.NOT_TRUSTED if "prune" in asked else Cause.PRUNE_NOT_ASKED, staying)


def _by_owner(run: SyncRun, comparison: Comparison, known: Holdings) -> tuple[list[Removal], list[Removal]]:
    """Split the sources of deleted files: first those of this folder, then those that may belong to another folder."""
    ours: list[Removal] = []
    others: list[Removal] = []
    for row in comparison.gone:
        is_silent = row.state == State.FAILED and len(row.source_ids) == 1
        for each in row.source_ids:
            removal = Removal(row.path, each, row.sha256, row.size_bytes, is_silent)
            (ours if run.owns_source(each, row) else others).append(removal)
    for source in known.surplus:
        removal = Removal(source["title"], source["id"], source["sha256"], source.get("size_bytes") or 0)
        (ours if run.owns_source(source["id"]) else others).append(removal)
    return ours, others


def _hold_back(run: SyncRun, removals: list[Removal], found: Findings) -> list[Removal]:
    """Return the sources to remove now.

    A source stays if its file was on a disk that is missing, or if a file in the folder may soon replace it.
    """
    replacements = Replacements(found.items)
    certain: list[Removal] = []
    kept: defaultdict[Cause, dict[Removal, str]] = defaultdict(dict)
    for each in removals:
        own = found.find_lost_mount(each) or replacements.find(each)
        if own is None:
            certain.append(each)
        else:
            kept[own[0]][each] = own[1]
    for cause, because in kept.items():
        _withhold(run, cause, because, tuple(dict.fromkeys(because.values())))
    return certain


def _withhold(run: SyncRun, cause: Cause, removals: Collection[Removal], because: tuple[str, ...] = ()) -> None:
    """Report each file whose source stays in the bucket, and why."""
    if not removals:
        return
    if cause is not Cause.NOT_TRUSTED:  # which is in the report already, even if no file is gone
        run.report.withheld.append(Withheld(cause, len({each.path for each in removals}), because))
    # A stranger's file that names the mapping of another folder is no reason to remove the sources of that folder.
    is_conflict = (
        cause is Cause.OTHER_FOLDER and run.mapping.ownership is Ownership.SENT and run.options.prune != "none"
    )
    for each in removals:
        item = ReportItem(path=each.path, action="gone", source_id=each.source_id, ready=True)
        if is_conflict and each.path not in run.report.items:
            item.conflict(each.source_id, conflict_of(run.mapping.name))
        _report(run, item)


def _take_out(run: SyncRun, removal: Removal, bucket_id: str | None) -> None:
    is_delete = run.options.prune == "delete"
    action = "deleted" if is_delete else "detached"
    item = ReportItem(path=removal.path, action=action, source_id=removal.source_id, ready=True)
    try:
        if bucket_id is not None and is_delete:
            run.client.delete_source(removal.source_id)
        elif bucket_id is not None:
            run.client.detach_source(bucket_id, removal.source_id)
    except ApiError as error:
        if error.code != "source_not_found":
            item.refuse(error)
    _report(run, item)
    run.on_item(item)


def _report(run: SyncRun, item: ReportItem) -> None:
    """Report a removal. If the path is already in the report, only a failure is added."""
    if item.error is not None or item.path not in run.report.items:
        run.report.add(item)
