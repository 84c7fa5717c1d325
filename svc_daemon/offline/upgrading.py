"""Upgrades an installation, or reports what an upgrade would do."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from svc_daemon.data_directory import DirectoryLocked, NoDirectory, hand_over, has_state, lock_directory, make_folders
from svc_daemon.operations.installations import refuse_lost_state
from svc_daemon.paths import DataFiles
from svc_daemon.server.engines import choose_engines, open_sqlite
from svc_daemon.settings.servers import ClusterSettings
from svc_daemon.store.migrations import PendingMigration, copy_place, list_copies, list_pending
from svc_daemon.wire.light.versions import VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeReport:
    """What an upgrade would do, or has done."""

    #: The data directory's path, or a description of the cluster.
    name: str
    pending: Sequence[PendingMigration]
    is_done: bool
    #: The copy of the state that the upgrade makes first. If nothing is pending, the last upgrade's copy, if it exists.
    copy: Path | None = None
    #: The size of the state database, which its copy will need too, and the free space on the disk.
    state_bytes: int | None = None
    free_bytes: int | None = None
    #: Number of connected nodes; all must be stopped first.
    nodes: int = 0

    def as_json(self) -> dict[str, Any]:
        return {
            "v": 1,
            "type": "migrate.summary",
            "installation": self.name,
            "version": VERSION,
            "migrations": [{"name": each.name, "purpose": each.purpose} for each in self.pending],
            "done": self.is_done,
            "copy": str(self.copy) if self.copy else None,
            "state_bytes": self.state_bytes,
            "free_bytes": self.free_bytes,
            "nodes": self.nodes,
            "exit_code": 0,
        }

    def lines(self) -> Iterator[str]:
        if not self.pending:
            yield f"{self.name} is up to date"
            if self.copy is not None:
                yield f"the state from before the last upgrade is kept in {self.copy}"
            return
        yield f"{self.name} {'was upgraded' if self.is_done else 'would be upgraded'} to {VERSION}:"
        yield from (f"  {each.name}: {each.purpose}" for each in self.pending)
        if self.copy is not None and self.is_done:
            yield f"the state from before is kept in {self.copy}"
        elif self.copy is not None:
            yield f"the state would be copied to {self.copy} ({self.state_bytes} bytes; {self.free_bytes} are free)"
        if self.nodes:
            yield f"{self.nodes} nodes are connected; stop them all before the upgrade"


def plan_upgrade(files: DataFiles) -> UpgradeReport:
    """Report what an upgrade would do to the data directory, which an older daemon may be using.

    Raises NoDirectory, and StorageError if this release can't upgrade it.
    """
    refuse_lost_state(files)
    if not has_state(files):
        raise NoDirectory(files)
    try:
        with lock_directory(files):
            return _report(files, list_pending(files.state), is_done=False)
    except DirectoryLocked:
        return _report(files, list_pending(files.state, is_in_use=True), is_done=False)


def upgrade(files: DataFiles) -> UpgradeReport:
    """Upgrade the data directory. Raises NoDirectory, DirectoryLocked or StorageError."""
    refuse_lost_state(files)
    if not has_state(files):
        raise NoDirectory(files)
    with lock_directory(files):
        pending = list_pending(files.state)
        make_folders(files)
        open_sqlite(files, lambda _: None).close()
        hand_over(files)
        return _report(files, pending, is_done=bool(pending))


def _report(files: DataFiles, pending: Sequence[PendingMigration], *, is_done: bool) -> UpgradeReport:
    return UpgradeReport(
        name=str(files.root),
        pending=pending,
        is_done=is_done,
        copy=copy_place(files.state) if pending else next(iter(list_copies(files.state)), None),
        state_bytes=files.state.stat().st_size,
        free_bytes=shutil.disk_usage(files.root).free,
    )


def upgrade_cluster(
    cluster: ClusterSettings, environ: Mapping[str, str], files: DataFiles, *, dry_run: bool
) -> UpgradeReport:
    """Upgrade the cluster's database, or only report what an upgrade would do.

    Raises NotFound if the database has no installation, and StorageError if the upgrade fails or nodes prevent it.
    """
    from svc_daemon.cluster.engines import plan_shared_upgrade  # noqa: PLC0415 - only a cluster needs it

    pending, nodes = plan_shared_upgrade(cluster, environ)
    if not dry_run:
        choose_engines(cluster, environ).open_state(files, lambda _: None).close()
    return UpgradeReport(name=cluster.name, pending=pending, is_done=bool(pending) and not dry_run, nodes=nodes)
