"""`svc-daemon restore`: makes a data directory from a backup, in its folder `restoring`.

1. copy the state database, and check its schema and all names in it
2. copy the files, and compare their SHA-256 with those in the state database
3. copy the indexes, migrate the state database, and give its buckets new revisions
4. check and repair the copy, since the indexes may be newer than the state database
5. write the file `ready`
6. move everything to its place, the state database last

The backup may be a stranger's: no name in it leads out of these folders, no link in it is followed, and only what this
program could have written is taken from it.

While `restoring` exists, no daemon starts. The next restore of the same backup continues an interrupted restore.
"""

import errno
import json
import os
import shutil
import stat
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from svc_daemon.core.ids import Ids
from svc_daemon.core.problems import Problem
from svc_daemon.data_directory import NotEmpty, OpenFolder, hand_over, lock_directory, make_folders
from svc_daemon.databases.contract import Connection
from svc_daemon.databases.sqlite import SqliteDatabase, open_copy
from svc_daemon.errors import StorageError
from svc_daemon.offline.verify import Verdict, verify_directory
from svc_daemon.operations.index.rebuilding import queue_rebuild
from svc_daemon.operations.installations import check_admin_key, check_secret, mark_restored
from svc_daemon.paths import DataFiles, sync_folder
from svc_daemon.provider.embedded.checks import is_own_index
from svc_daemon.provider.embedded.files import is_index_name, list_teams
from svc_daemon.store.files import copies
from svc_daemon.store.files.backups import Backup, BackupRefused
from svc_daemon.store.foreign_states import read_any_text, refuse_foreign
from svc_daemon.store.migrations import migrate
from svc_daemon.store.rows import teams
from svc_daemon.store.rows.sessions import list_open_ids
from svc_daemon.store.rows.sources import sources
from svc_daemon.store.rows.tasks import is_in_maintenance
from svc_daemon.wire.light.parsing import parse_json

#: The file that names the backup, and the empty file that is written when the copy is complete.
ORIGIN, READY = "restoring.json", "ready"
#: How many of the problems that are left are listed. A forged state can have any number of them.
MOST_PROBLEMS = 100
#: The folder `restoring` gets this name when everything was moved out of it. From then on, a daemon can start.
DONE = "restored"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreOptions:
    now: Callable[[], datetime]
    report: copies.Report


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreSummary:
    backup: Backup
    root: Path
    counts: copies.CopyCounts = field(default_factory=copies.CopyCounts)
    #: The result of the check after the repair; None if an earlier, interrupted run has made the check.
    verdict: Verdict | None = None
    #: The problems with the backup's secret and its admin key.
    secret_problems: list[Problem]
    #: Names of the stored files that the backup lacks, or has in another form.
    missing: list[str] = field(default_factory=list)

    @property
    def lost(self) -> list[str]:
        """Messages about what could not be restored."""
        repaired = (self.verdict.repaired if self.verdict else None) or []
        lost = [problem.message for problem in repaired if problem.invariant in ("I2", "I3")]
        if self.verdict is not None and not self.verdict.findings.counts["sources"]:
            # The state is damaged, so its files were not compared with it.
            lost += [f"blob {name} is missing or damaged" for name in self.missing]
        return lost + [problem.message for problem in self.secret_problems]

    @property
    def is_whole(self) -> bool:
        return not self.lost and (self.verdict is None or self.verdict.is_whole)

    @property
    def problems(self) -> list[Problem]:
        """The problems that are left after the repair."""
        return self.verdict.findings.problems if self.verdict else []

    def as_json(self) -> dict[str, Any]:
        repaired = Counter(each.repair for each in (self.verdict.repaired if self.verdict else None) or [])
        return {
            "backup": str(self.backup.path),
            "started_at": self.backup.record.started_at,
            "data_dir": str(self.root),
            "whole": self.is_whole,
            "lost": self.lost,
            "problems": [
                {"invariant": each.invariant, "message": each.message} for each in self.problems[:MOST_PROBLEMS]
            ],
            "more_problems": max(0, len(self.problems) - MOST_PROBLEMS),
            "repaired": {str(repair): count for repair, count in repaired.items()},
            "sources": self.backup.record.sources,
            "files_copied": self.counts.copied,
            "bytes_copied": self.counts.bytes_copied,
        }

    def lines(self) -> list[str]:
        record = self.backup.record
        lost = [f"lost: {message}" for message in self.lost]
        problems = [f"{each.invariant}: {each.message}" for each in self.problems[:MOST_PROBLEMS]]
        if (more := len(self.problems) - MOST_PROBLEMS) > 0:
            problems.append(f"and {more} more problems: `svc-daemon verify` lists them all")
        return [*lost, *problems, f"{self.root}: {record.sources} sources, as of {record.started_at}"]


def restore(backup: Backup, files: DataFiles, options: RestoreOptions) -> RestoreSummary:
    """Make the data directory from the backup, or continue an interrupted restore of this backup.

    Raises BackupRefused, NotEmpty, DirectoryLocked, OSError, and StorageError if this release can't use the state.
    """
    backup.refuse_inside(files.root)
    origin = {"backup": str(backup.path), "started_at": backup.record.started_at}
    _make_folders_unless_filled(files, origin)
    with ExitStack() as stack:
        stack.enter_context(lock_directory(files))
        stack.callback(hand_over, files, files.root.stat())
        made = DataFiles(files.restoring)
        root, source = (stack.enter_context(OpenFolder(path)) for path in (files.root, backup.path))
        has_begun = _has_begun(files, root, origin)
        secret_problems = check_secret(backup.files) or _check_sum(source, backup, made.secret.name)
        summary = RestoreSummary(backup=backup, root=files.root, secret_problems=secret_problems)
        if not (made.root / READY).exists():
            with _leaving_nothing(made), root.make(made.root.name) as target:
                # Check the state first: if this fails, nothing is left, and another backup can be restored.
                stored, open_ids = _take_state(source, target, made, has_begun)
                make_folders(made)
                with os.fdopen(target.make_file(ORIGIN), "w", encoding="utf-8") as file:
                    file.write(json.dumps(origin))
                    file.flush()
                    os.fsync(file.fileno())
                # Before anything else is there: without it, files that a power cut left could not be known from others.
                sync_folder(made.root)
                syncer = stack.enter_context(closing(copies.Syncer(made.root)))
                copy = copies.DirectoryCopy(source, target)
                _take_files(copy, made, summary, stored, options.report)
                copy.copy_parts(open_ids)
                _take_indexes(source, target, made)
                _renew_state(made, options.now)
                verdict = verify_directory(made.root, read_data=False, repair=True)
                summary = replace(summary, counts=copy.counts, missing=copy.missing, verdict=verdict)
                syncer.sync()
                os.close(target.make_file(READY))
                sync_folder(made.root)
        _move_in(made, files)
        return summary


@contextmanager
def _leaving_nothing(made: DataFiles) -> Iterator[None]:
    """Remove what was made, whatever the error is. Only after an error of the system can a restore be continued."""
    try:
        yield
    except Exception as error:
        if getattr(error, "errno", None) in (None, errno.ENOTDIR, errno.ELOOP):
            shutil.rmtree(made.root, ignore_errors=True)
        raise


def _take_files(
    copy: copies.DirectoryCopy,
    made: DataFiles,
    summary: RestoreSummary,
    stored: dict[str, copies.StoredFacts],
    report: copies.Report,
) -> None:
    """Copy the stored files, the secret and the keys. Adds to the summary's problems. Raises BackupRefused."""
    copy.copy_blobs(stored, report)
    if len(copy.missing) == len(stored) > 0:
        raise BackupRefused(
            f"The backup has none of the {len(stored)} stored files that its state names.",
            "Is the copy of it complete? Restore another backup.",
        )
    with open_copy(made.state) as state:
        odd = check_admin_key(summary.backup.files, state) or _check_sum(
            copy.source, summary.backup, made.admin_key.name
        )
    # With a damaged secret, the daemon would refuse to start. Without a secret, it creates a new one.
    problems = {made.secret.name: [*summary.secret_problems], made.admin_key.name: odd}
    summary.secret_problems.extend(odd)
    copy.copy_rest([name for name, found in problems.items() if found])


def _check_sum(source: OpenFolder, backup: Backup, name: str) -> list[Problem]:
    """Report a file of the backup that is missing, or isn't the one that the backup was made with."""
    known = backup.record.sums.get(name)
    if known is None or copies.hash_file(source, name) == known:
        # A backup of an older release has no sums.
        return []
    return [Problem("sum", f"{name} of the backup is missing or damaged: its SHA-256 is not that of backup.json")]


def _make_folders_unless_filled(files: DataFiles, origin: dict[str, str]) -> None:
    """Create the folders. Raises NotEmpty, and leaves the directory as it is, if it contains what is not ours."""
    if files.root.exists():
        with OpenFolder(files.root) as found:
            _has_begun(files, found, origin)
    make_folders(files)


def _has_begun(files: DataFiles, root: OpenFolder, origin: dict[str, str]) -> bool:
    """Whether an interrupted restore of this backup is to be continued.

    Raises NotEmpty if the directory contains anything else but logs. Links count as files, so that nothing is restored
    to where a link leads.
    """
    top, kept, begun = files.root, files.log.parent, None
    if root.stat(files.restoring.name) is not None:
        top = kept = files.restoring
        # The file is missing or empty if the restore was interrupted before the check of the state.
        with root.enter(top.name) as folder, suppress(FileNotFoundError, ValueError):
            begun = parse_json(folder.read_text(ORIGIN))
        if begun not in (None, origin):
            raise NotEmpty(files.root, f"{top.name}, from an interrupted restore of another backup")
    for parent, folders, names in os.walk(top):
        for path in (Path(parent, name) for name in (*folders, *names)):
            found = path.lstat()
            is_kept = path.is_relative_to(kept) and stat.S_ISREG(found.st_mode) and found.st_nlink == 1
            is_early = top == files.root or begun is not None or path.name.startswith((files.state.name, ORIGIN))
            if not (is_kept and is_early) and not stat.S_ISDIR(found.st_mode):
                raise NotEmpty(files.root, str(path.relative_to(files.root)))
    return begun is not None


def _take_state(
    source: OpenFolder, target: OpenFolder, made: DataFiles, has_begun: bool
) -> tuple[dict[str, copies.StoredFacts], Collection[str]]:
    """Copy the backup's state database, and return what it names: the stored files, and the open upload sessions.

    Raises BackupRefused or StorageError, and leaves no copy, unless it is a database of this program.
    """
    # SQLite must not apply the write-ahead log of an interrupted restore to the new copy.
    for name in target.list_names():
        if name.startswith(made.state.name):
            target.remove(name)
    path = source.path / made.state.name
    with ExitStack() as undo:
        if not has_begun:
            undo.callback(shutil.rmtree, made.root)
        undo.callback(target.remove, made.state.name)
        if (excess := copies.find_excess(source, made.state.name)) is not None:
            raise BackupRefused(f"The state database has {excess}.", "Restore another backup.")
        copied = copies.copy_file(source, made.state.name, target)
        if copied is None or copied.size_bytes == 0:
            raise StorageError(f"{path} can't be read: it is missing, empty or not a file.")
        with open_copy(made.state, named=path) as state:
            state.text_factory = read_any_text
            refuse_foreign(state, copied.size_bytes)
            found = copies.list_stored(state), list_open_ids(state)
        undo.pop_all()
        return found


def _take_indexes(source: OpenFolder, target: OpenFolder, made: DataFiles) -> None:
    """Copy the search indexes of the backup. Those that this program has not made are left out, and then rebuilt."""
    shutil.rmtree(made.index)
    with target.make(made.index.name) as place, ExitStack() as stack:
        folder = copies.find_folder(stack, source, made.index.name)
        for name in folder.list_names() if folder is not None else ():
            if folder is not None and is_index_name(name) and not copies.find_excess(folder, name):
                copies.copy_file(folder, name, place)
                if not is_own_index(made.index / name):
                    place.remove(name)


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
    # A power cut must not bring the old name back after files are gone.
    sync_folder(files.root)
    shutil.rmtree(done)
    sync_folder(files.root)
