"""`svc-daemon backup`: copies a data directory, even while its daemon serves requests.

1. make the daemon keep the files that it would delete, until step 4 is done (`store.files.removals`)
2. copy the state database in one snapshot
3. copy the search indexes; they may be newer than the copied state, so a restore checks and repairs them
4. copy the files that the copied state names, or link them to the previous backup
5. check the copy, make it durable, and rename it to its final name
6. remove the oldest backups

Apart from step 1, a backup only reads the data directory. The daemon may start and stop meanwhile.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from svc_daemon.core.problems import Problem
from svc_daemon.core.times import to_text
from svc_daemon.data_directory import NoDirectory, OpenFolder, has_state
from svc_daemon.databases.sqlite import copy_database, open_copy
from svc_daemon.errors import StorageError
from svc_daemon.offline.verify import check_files
from svc_daemon.operations.installations import INSTALLATION_ID, check_secret
from svc_daemon.paths import DataFiles
from svc_daemon.provider.embedded.files import list_teams
from svc_daemon.store.files.backups import Backup, BackupFolder, BackupRecord, BackupRefused, stamp_of
from svc_daemon.store.files.copies import CopyCounts, DirectoryCopy, Report, Syncer, list_stored
from svc_daemon.store.files.removals import Removals
from svc_daemon.store.rows.sessions import list_open_ids
from svc_daemon.store.rows.teams import find_fact
from svc_daemon.wire.light.versions import VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupOptions:
    #: Number of backups to keep, including this one.
    keep: int
    #: Whether to check all stored files, including those of the previous backup.
    read_data: bool
    now: Callable[[], datetime]
    report: Report


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupSummary:
    backup: Backup
    counts: CopyCounts
    problems: list[Problem]
    #: Number of removed old backups.
    removed: int

    def as_json(self) -> dict[str, Any]:
        return {
            "backup": str(self.backup.path),
            "started_at": self.backup.record.started_at,
            "finished_at": self.backup.record.finished_at,
            "whole": not self.problems,
            "problems": [{"invariant": each.invariant, "message": each.message} for each in self.problems],
            "sources": self.backup.record.sources,
            "files_copied": self.counts.copied,
            "files_linked": self.counts.linked,
            "bytes_copied": self.counts.bytes_copied,
            "backups_removed": self.removed,
        }

    def lines(self) -> list[str]:
        counts = self.counts
        shared = f"{counts.copied} files copied ({counts.bytes_copied} bytes), {counts.linked} shared with earlier ones"
        problems = [f"{each.invariant}: {each.message}" for each in self.problems]
        return [*problems, f"{self.backup.path}: {self.backup.record.sources} sources; {shared}"]


def back_up(files: DataFiles, folder: BackupFolder, options: BackupOptions) -> BackupSummary:
    """Make a backup in the folder. Raises NoDirectory, BackupRunning, BackupRefused, StorageError and OSError."""
    if not has_state(files):
        raise NoDirectory(files)
    root, own = folder.root.resolve(), files.root.resolve()
    if root.is_relative_to(own) or own.is_relative_to(root):
        raise BackupRefused(f"{folder.root} and the data directory {files.root} overlap.", "Choose another folder.")
    started_at = to_text(options.now())
    with ExitStack() as stack:
        stack.enter_context(folder.locked())
        previous = next(reversed(folder.list_backups()), None)
        stack.enter_context(held := ExitStack())
        held.enter_context(Removals(files.held).pausing())
        target = stack.enter_context(folder.begin())
        syncer = stack.enter_context(closing(Syncer(folder.partial.root)))
        source = stack.enter_context(OpenFolder(files.root, follows_links=True))
        earlier = stack.enter_context(OpenFolder(previous.path)) if previous else None
        copy = DirectoryCopy(source, target, earlier, read_data=options.read_data)
        copied_indexes = _copy_databases(files, folder.partial, copy, previous)
        installation_id, count = _copy_files(folder, copy, previous, options.report)
        # All files are copied, so the daemon may now delete those that it kept for the backup.
        held.close()
        problems = copy.explain(check_files(folder.partial, read_data=options.read_data, has_indexes=False).problems)
        problems += check_secret(folder.partial)
        record = BackupRecord(
            number=previous.record.number + 1 if previous else 1,
            installation_id=installation_id,
            version=VERSION,
            started_at=started_at,
            finished_at=to_text(options.now()),
            sources=count,
            indexes=copied_indexes,
            sums=copy.sums,
        )
        backup = folder.finish(record, syncer)
        # After a backup with problems, keep all older backups.
        removed = 0 if problems else folder.keep_last(options.keep)
        return BackupSummary(backup=backup, counts=copy.counts, problems=problems, removed=removed)


def _copy_files(folder: BackupFolder, copy: DirectoryCopy, previous: Backup | None, report: Report) -> tuple[str, int]:
    """Copy the files that the copied database names. Returns the installation's id and the number of sources."""
    with open_copy(folder.partial.state) as state:
        stored, open_ids = list_stored(state), list_open_ids(state)
        installation_id = find_fact(state, INSTALLATION_ID) or ""
    if previous is not None and previous.record.installation_id != installation_id:
        raise BackupRefused(f"{folder.root} has backups of another installation.", "Choose another folder.")
    copy.copy_blobs(stored, report)
    copy.copy_parts(open_ids)
    copy.copy_rest()
    return installation_id, len(stored)


def _copy_databases(
    files: DataFiles, partial: DataFiles, copy: DirectoryCopy, previous: Backup | None
) -> dict[str, Sequence[int]]:
    """Copy the state and the indexes. Returns the stamp of each index, by which the next backup detects changes."""
    copy_database(files.state, partial.state)
    partial.index.mkdir(mode=0o700, exist_ok=True)
    known = previous.record.indexes if previous else {}
    stamps: dict[str, Sequence[int]] = {}
    for team_id in list_teams(files.index):
        name = f"{team_id}.db"
        try:
            stamp = stamp_of(files.index / name)
            if known.get(name) != stamp or not copy.link_same(files.index.name, name):
                copy_database(files.index / name, partial.index / name)
            stamps[name] = stamp
        except (StorageError, FileNotFoundError):
            # The index is damaged or being rebuilt. Leave it out: a restore rebuilds it.
            (partial.index / name).unlink(missing_ok=True)
    return stamps
