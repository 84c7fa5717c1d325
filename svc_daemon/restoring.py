"""`svc-daemon restore`: makes a data directory from a backup, in its folder `restoring`.

1. copy the files, and compare their SHA-256 with those in the state database
2. copy the databases, migrate the state database, and give its buckets new revisions
3. check and repair the copy, since the indexes may be newer than the state database
4. write the file `ready`
5. move everything to its place, the state database last

While `restoring` exists, no daemon starts. The next restore of the same backup continues an interrupted restore.
"""

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from svc_daemon.core.ids import Ids
from svc_daemon.core.problems import Problem
from svc_daemon.data_directory import NotEmpty, lock_directory, make_folders, sync_folder
from svc_daemon.databases.contract import Connection
from svc_daemon.databases.sqlite import SqliteDatabase, open_copy
from svc_daemon.offline_verify import Verdict, verify_directory
from svc_daemon.operations.installations import check_secret
from svc_daemon.operations.rebuilding import queue_rebuild
from svc_daemon.operations.restore_marks import mark_restored
from svc_daemon.paths import DataFiles
from svc_daemon.provider.embedded.files import list_teams
from svc_daemon.store import sources, teams
from svc_daemon.store.backups import Backup
from svc_daemon.store.copies import CopyCounts, DirectoryCopy, Report, Syncer, list_stored
from svc_daemon.store.migrations import migrate
from svc_daemon.store.tasks import is_in_maintenance
from svc_daemon.store.uploads import list_open_ids
from svc_daemon.wire.parsing import parse_json

#: The file that names the backup, and the empty file that is written when the copy is complete.
ORIGIN, READY = "restoring.json", "ready"
#: The folder `restoring` gets this name when everything was moved out of it. From then on, a daemon can start.
DONE = "restored"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreOptions:
    now: Callable[[], datetime]
    report: Report


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreSummary:
    backup: Backup
    root: Path
    counts: CopyCounts
    #: The result of the check after the repair; None if an earlier, interrupted run has made the check.
    verdict: Verdict | None
    #: The problem with the backup's secret, if any.
    secret_problems: list[Problem]

    @property
    def lost(self) -> list[str]:
        """Messages about what could not be restored."""
        repaired = (self.verdict.repaired if self.verdict else None) or []
        lost = [problem.message for problem in repaired if problem.invariant in ("I2", "I3")]
        return lost + [problem.message for problem in self.secret_problems]

    @property
    def is_whole(self) -> bool:
        return not self.lost and (self.verdict is None or self.verdict.is_whole)

    def as_json(self) -> dict[str, Any]:
        found = self.verdict.findings.problems if self.verdict else []
        repaired = Counter(each.repair for each in (self.verdict.repaired if self.verdict else None) or [])
        return {
            "backup": str(self.backup.path),
            "started_at": self.backup.record.started_at,
            "data_dir": str(self.root),
            "whole": self.is_whole,
            "lost": self.lost,
            "problems": [{"invariant": each.invariant, "message": each.message} for each in found],
            "repaired": {str(repair): count for repair, count in repaired.items()},
            "sources": self.backup.record.sources,
            "files_copied": self.counts.copied,
            "bytes_copied": self.counts.bytes_copied,
        }

    def lines(self) -> list[str]:
        record, found = self.backup.record, self.verdict.findings.problems if self.verdict else []
        lost = [f"lost: {message}" for message in self.lost]
        problems = [f"{each.invariant}: {each.message}" for each in found]
        return [*lost, *problems, f"{self.root}: {record.sources} sources, as of {record.started_at}"]


def restore(backup: Backup, files: DataFiles, options: RestoreOptions) -> RestoreSummary:
    """Make the data directory from the backup, or continue an interrupted restore of this backup.

    Raises BackupRefused, NotEmpty, DirectoryLocked, OSError, and StorageError if this release can't use the state.
    """
    backup.refuse_inside(files.root)
    make_folders(files)
    with ExitStack() as stack:
        stack.enter_context(lock_directory(files))
        made = DataFiles(files.restoring)
        origin = {"backup": str(backup.path), "started_at": backup.record.started_at}
        _refuse_others(files, origin)
        copy, verdict, secret_problems = DirectoryCopy(backup.files, made), None, check_secret(backup.files)
        if not (made.root / READY).exists():
            # Read the state first: if this fails, nothing was written, and an older backup can be restored.
            with open_copy(backup.files.state) as state:
                stored, open_ids = list_stored(state), list_open_ids(state)
            make_folders(made)
            (made.root / ORIGIN).write_text(json.dumps(origin), "utf-8")
            syncer = stack.enter_context(closing(Syncer(made.root)))
            copy.copy_blobs(stored, options.report)
            copy.copy_parts(open_ids)
            copy.copy_rest()
            if secret_problems:
                # With a damaged secret, the daemon would refuse to start. Without a secret, it creates a new one.
                made.secret.unlink(missing_ok=True)
            _copy_databases(backup, made)
            _renew_state(made, options.now)
            verdict = verify_directory(made.root, read_data=False, repair=True)
            syncer.sync()
            (made.root / READY).touch()
            sync_folder(made.root)
        _move_in(made, files)
        return RestoreSummary(
            backup=backup, root=files.root, counts=copy.counts, verdict=verdict, secret_problems=secret_problems
        )


def _refuse_others(files: DataFiles, origin: dict[str, str]) -> None:
    """Raise NotEmpty unless the directory contains only logs, or an interrupted restore of this backup."""
    if files.restoring.exists():
        written = files.restoring / ORIGIN
        if written.exists() and parse_json(written.read_text("utf-8")) != origin:
            raise NotEmpty(files.root, f"{files.restoring.name}, from an interrupted restore of another backup")
        return
    for parent, folders, names in os.walk(files.root):
        folders[:] = [name for name in folders if Path(parent, name) != files.log.parent]
        if names:
            raise NotEmpty(files.root, str(Path(parent, names[0]).relative_to(files.root)))


def _copy_databases(backup: Backup, made: DataFiles) -> None:
    # SQLite must not apply the write-ahead log of an interrupted restore to the new copy.
    for leftover in made.root.glob("state.db*"):
        leftover.unlink()
    shutil.rmtree(made.index)
    made.index.mkdir(mode=0o700)
    for team_id in list_teams(backup.files.index):
        shutil.copyfile(backup.files.index / f"{team_id}.db", made.index / f"{team_id}.db")
    shutil.copyfile(backup.files.state, made.state)


def _renew_state(made: DataFiles, now: Callable[[], datetime]) -> None:
    """Migrate the state, give its buckets new revisions, and queue the rebuild of missing indexes."""
    make_ids, known = Ids(now=now, random=os.urandom), set(list_teams(made.index))

    def work(connection: Connection) -> None:
        mark_restored(connection, make_ids)
        for team_id in teams.list_team_ids(connection):
            is_lost = team_id not in known and sources.has_active(connection, team_id)
            if is_lost and not is_in_maintenance(connection, team_id):
                queue_rebuild(connection, make_ids, team_id)

    with closing(SqliteDatabase(made.state, prepare=migrate)) as database:
        database.write(work)


def _move_in(made: DataFiles, files: DataFiles) -> None:
    """Move everything from `restoring` to its place. The database comes last, so that no daemon starts too early."""
    stays = (made.root / ORIGIN, made.root / READY)
    for path in sorted(made.root.iterdir(), key=lambda path: path == made.state):
        # Skip empty folders, which the data directory already has.
        if path not in stays and (not path.is_dir() or any(path.iterdir())):
            path.rename(files.root / path.name)
    sync_folder(files.root)
    done = files.root / DONE
    made.root.rename(done)
    shutil.rmtree(done)
    sync_folder(files.root)
