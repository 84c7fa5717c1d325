"""Backups: complete copies of a data directory, in a folder that may be on another disk.

Each backup is a folder named after its time. It has the layout of a data directory, and the file `backup.json`, which
is written last. A file that the previous backup has too is a hard link to its copy, so it takes no space again. Nothing
is ever linked to the data directory, where damage to one would be damage to both.

A backup is made in the folder `backup.partial`, and renamed when it is complete and durable. If it is interrupted, the
previous backups are unchanged, and the next run continues in that folder.
"""

import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from svc_daemon.data_directory import DirectoryRefused, sync_folder
from svc_daemon.paths import DataFiles
from svc_daemon.store.copies import Syncer
from svc_daemon.store.removals import BackupRunning

PARTIAL, REMOVING, RECORD = "backup.partial", "backup.removing", "backup.json"
#: The version of the layout of backups. Backups of a later version are refused.
LAYOUT = 1
_NAME = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ(?:-\d+)?")


class BackupRefused(DirectoryRefused):
    """The folder can't be used for backups, or has none that can be used."""

    code = "svc_backup_refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupRecord:
    """The content of `backup.json`."""

    v: int = LAYOUT
    #: Counts the backups of a folder: the clock may have been set back between two of them.
    number: int
    installation_id: str
    #: Version of the program that made the backup.
    version: str
    #: The backup has everything that was acknowledged before this time.
    started_at: str
    finished_at: str
    sources: int
    #: What each search index looked like when it was copied, by file name. One that looks the same is linked.
    indexes: Mapping[str, Sequence[int]]


@dataclass(frozen=True, slots=True)
class Backup:
    path: Path
    record: BackupRecord

    @property
    def files(self) -> DataFiles:
        return DataFiles(self.path)


class BackupFolder:
    """The folder with the backups of one installation."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def partial(self) -> DataFiles:
        return DataFiles(self.root / PARTIAL)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Create the folder and lock it. Raises BackupRefused if it has other files, BackupRunning, and OSError."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        if others := sorted(path.name for path in self.root.iterdir() if not _is_own(path)):
            raise BackupRefused(
                f"{self.root} has files that are not backups, such as {others[0]}.", "Choose an empty or new folder."
            )
        # The backups have the installation's secret.
        self.root.chmod(0o700)
        descriptor = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        with ExitStack() as stack:
            stack.callback(os.close, descriptor)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise BackupRunning(self.root) from error
            yield

    def list_backups(self) -> list[Backup]:
        """List the complete backups, oldest first. Raises BackupRefused if one was made by a later release."""
        names = [path for path in self.root.iterdir() if _NAME.fullmatch(path.name)]
        return sorted(map(read_backup, names), key=lambda backup: backup.record.number)

    def begin(self) -> None:
        """Prepare the partial backup. Of an interrupted one, only the blobs are kept, since they never change."""
        self._remove_rest()
        self.partial.blobs.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in self.partial.root.iterdir():
            if path.is_dir() and not path.is_symlink() and path != self.partial.blobs:
                shutil.rmtree(path)
            elif path != self.partial.blobs:
                path.unlink()

    def finish(self, record: BackupRecord, syncer: Syncer) -> Backup:
        """Make the partial backup durable, then complete. Raises OSError."""
        path = self.partial.root / RECORD
        path.write_text(json.dumps(asdict(record), indent=1) + "\n", "utf-8")
        syncer.sync()
        name = record.started_at[:19].replace(":", "-") + "Z"
        place = self.root / name
        if place.exists():
            place = self.root / f"{name}-{record.number}"
        self.partial.root.rename(place)
        sync_folder(self.root)
        return Backup(place, record)

    def keep_last(self, count: int) -> int:
        """Remove all backups but the last ones, and return how many were removed."""
        old = self.list_backups()[:-count]
        for backup in old:
            # Renamed first, so that an interrupted removal leaves no incomplete backup under its name.
            backup.path.rename(self.root / REMOVING)
            self._remove_rest()
        return len(old)

    def _remove_rest(self) -> None:
        if (self.root / REMOVING).exists():
            shutil.rmtree(self.root / REMOVING)


def read_backup(path: Path) -> Backup:
    """Read the record of a backup; raises BackupRefused."""
    try:
        fields = json.loads((path / RECORD).read_text("utf-8"))
        if fields["v"] > LAYOUT:
            raise BackupRefused(f"{path} was made by a later release ({fields['version']}).", "Install that release.")
        return Backup(path, BackupRecord(**fields))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BackupRefused(f"{path} is not a complete backup: {error}.", "Remove it, or choose another.") from error


def find_backup(folder: Path) -> Backup:
    """Return the backup in this folder: itself, or the newest of several. Raises BackupRefused if there is none."""
    if (folder / RECORD).exists():
        return read_backup(folder)
    backups = BackupFolder(folder).list_backups() if folder.is_dir() else []
    if not backups:
        raise BackupRefused(f"There is no backup in {folder}.", "Name a folder that `svc-daemon backup` has filled.")
    return backups[-1]


def _is_own(path: Path) -> bool:
    is_backup = path.name in (PARTIAL, REMOVING) or (_NAME.fullmatch(path.name) and (path / RECORD).exists())
    return bool(is_backup) and path.is_dir() and not path.is_symlink()
