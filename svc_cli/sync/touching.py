"""A sync of a few touched paths: the engine of `runs` over a part of the folder, without asking about the rest.

It trusts the index for what it touches and leaves the index's idea of the bucket's revision as it is: the bucket has
moved on by what is sent here, so the next whole sync lists it and mends whatever was assumed wrongly. Nothing is taken
out of the bucket here: whether what is gone may leave it can only be judged with the whole folder in view.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from svc_cli.client.api import Client
from svc_cli.progress import Silent
from svc_cli.sync import ending, holdings, runs
from svc_cli.sync.comparing import Comparison, ReadPolicy
from svc_cli.sync.index import Index
from svc_cli.sync.locks import hold
from svc_cli.sync.mappings import Mapping
from svc_cli.sync.reports import Report
from svc_cli.sync.scenes import Options, Scene
from svc_cli.sync.scopes import Scope
from svc_cli.sync.snapshots import Snapshot
from svc_cli.uploads.items import ReportItem

#: What nobody who has just saved a file needs to be told.
EXPECTED = frozenset({"dotfile", "ignored", "not included", "link", "empty"})


@dataclass(slots=True)
class Touched:
    """What became of the touched paths."""

    report: Report
    #: Only a whole sync can do what is left.
    needs_sync: bool = False


def touch(
    client: Client,
    mapping: Mapping,
    options: Options,
    index_path: Path,
    paths: Iterable[str],
    on_item: Callable[[ReportItem], None],
) -> Touched:
    """Bring these paths, and what lies below them, into the bucket; what ended it early stands in the report.

    Without a change nothing is asked of the service. Raises SyncRunning, and UsageError where the index is refused.
    """
    touched = Touched(Report(mapping=mapping.name, bucket=mapping.bucket))
    with hold(index_path, str(mapping.folder)), Index(index_path) as index:
        scene = Scene(client, mapping, options, index, Silent(), touched.report, on_item)
        with runs.reporting(touched.report, index_path):
            touched.needs_sync = not _run(scene, Scope(paths))
    return touched


def _run(scene: Scene, scope: Scope) -> bool:
    """False where a whole sync is needed."""
    bucket_id = scene.index.find_fact(holdings.BUCKET_ID)
    if bucket_id is None or not _is_at_rest(scene):
        return False
    comparison = _compare(scene, scope)
    runs.apply(scene, bucket_id, comparison)
    for skip in comparison.snapshot.skips:
        if skip.reason not in EXPECTED:
            scene.tell(ReportItem.of_skip(skip))
    if scene.options.wait == "ready":
        ending.wait(scene, bucket_id)
    return _leave_gone(scene, comparison) and not _may_be_mended(scene)


def _is_at_rest(scene: Scene) -> bool:
    """Whether the folder is the one of the last sync, and that one came to its end."""
    root = runs.identify_root(scene.mapping.folder)
    return root is not None and root == scene.index.find_fact(holdings.ROOT) and not scene.index.list_batches()


def _compare(scene: Scene, scope: Scope) -> Comparison:
    options, folder = scene.options, scene.mapping.folder
    policy = ReadPolicy(max_bytes=options.filters.max_bytes, extensions=options.extensions)
    rows = scene.index.load_within(scope.paths)
    return Comparison(folder, Snapshot(folder, options.filters, scope), rows, policy)


def _leave_gone(scene: Scene, comparison: Comparison) -> bool:
    """Tell what is gone and still answers; False where it is to be taken out of the bucket."""
    scene.index.remove(row.path for row in comparison.gone if row.source_id is None)
    owned = [row for row in comparison.gone if row.source_id is not None]
    if owned and scene.options.prune != "none":
        return False
    for row in owned:
        scene.tell(ReportItem(path=row.path, action="gone", source_id=row.source_id, ready=True))
    return True


def _may_be_mended(scene: Scene) -> bool:
    """Whether a file failed for what the index knew wrongly, or for the moment: its row tells of no error."""
    troubled = [item.path for item in scene.report.items.values() if item.error]
    rows = scene.index.load_within(troubled)
    return any(path not in rows or rows[path].error is None for path in troubled)
