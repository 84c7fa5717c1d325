"""Backups: complete copies of a data directory. `docs/reference/backups.md` describes the folder that has them.

A backup has no hard links to files of the data directory, because damage to such a file would also damage the backup.
"""

import fcntl
import json
import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from svc_daemon.core.times import from_text
from svc_daemon.data_directory import DirectoryRefused, OpenFolder
from svc_daemon.databases.sqlite import log_bytes
from svc_daemon.paths import DataFiles, make_folder, sync_folder
from svc_daemon.store.files.copies import NAMES, Syncer
from svc_daemon.store.files.removals import BackupRunning
from svc_daemon.wire.light.parsing import NestedTooDeeply, parse_json
from svc_daemon.wire.requests import faults_of

PARTIAL, REMOVING, RECORD = "backup.partial", "backup.removing", "backup.json"
#: Version of the layout of backups. Later versions are refused.
LAYOUT = 1
_NAME = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ(?:-\d+)?")


class BackupRefused(DirectoryRefused):
    """The folder can't be used for backups, or contains no usable backup."""

    code = "svc_backup_refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupRecord:
    """The content of `backup.json`."""

    v: int = LAYOUT
    number: int
    installation_id: str
    version: str
    started_at: str
    finished_at: str
    sources: int
    #: Made by `stamp_of`.
    indexes: Mapping[str, Sequence[int]]
    #: SHA-256 of the files that no database has the hash of, by name. Backups of older releases have none.
    sums: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Backup:
    path: Path
    record: BackupRecord

    @property
    def files(self) -> DataFiles:
        return DataFiles(self.path)

    def refuse_inside(self, place: Path) -> None:
        """Raise BackupRefused if the data directory `place` is in this backup or in the folder of backups."""
        hint = "Set SVC_DATA_DIR to another folder."
        path, place = self.path.resolve(), place.resolve()
        if place.is_relative_to(path):
            # Removing the backup would remove the data directory.
            raise BackupRefused(f"{place} is inside of the backup.", hint)
        if place.is_relative_to(path.parent) and all(
            _is_own(each) or place.is_relative_to(each) for each in path.parent.iterdir()
        ):
            # The next backup would fail, because it refuses a folder that contains other files than backups.
            raise BackupRefused(f"{place} is among the backups.", hint)


class BackupFolder:
    """The folder with an installation's backups."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def partial(self) -> DataFiles:
        return DataFiles(self.root / PARTIAL)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Create the folder and lock it while the block runs.

        Raises BackupRefused if the folder contains files that aren't backups, BackupRunning if another process has
        locked the folder, or OSError.
        """
        make_folder(self.root)
        if others := sorted(path.name for path in self.root.iterdir() if not _is_own(path)):
            raise BackupRefused(
                f"{self.root} has files that are not backups, such as {others[0]}.", "Choose an empty or new folder."
            )
        # Backups contain the installation's secret.
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
        """List the complete backups, oldest first. Raises BackupRefused if one is unreadable, or a later release's."""
        with OpenFolder(self.root) as folder:
            names = filter(_NAME.fullmatch, folder.list_names())
            backups = [read_backup(self.root / name, folder) for name in names]
        return sorted(backups, key=lambda backup: backup.record.number)

    def begin(self) -> OpenFolder:
        """Open the folder for a new backup. Blobs of an interrupted backup are kept, because blobs never change."""
        self._remove_rest()
        with OpenFolder(self.root) as root, ExitStack() as stack:
            partial = stack.enter_context(root.make(PARTIAL))
            for name in partial.list_names():
                found = partial.stat(name)
                if found is None or not stat.S_ISDIR(found.st_mode):
                    partial.remove(name)
                elif name != NAMES.blobs.name:
                    shutil.rmtree(name, dir_fd=partial.descriptor)
            partial.make(NAMES.blobs.name).close()
            stack.pop_all()
            return partial

    def finish(self, record: BackupRecord, syncer: Syncer) -> Backup:
        """Sync the partial backup to disk, then complete it by renaming its folder. Raises OSError."""
        with (
            OpenFolder(self.partial.root) as partial,
            os.fdopen(partial.make_file(RECORD), "w", encoding="utf-8") as file,
        ):
            file.write(json.dumps(asdict(record), indent=1) + "\n")
        syncer.sync()
        name = record.started_at[:19].replace(":", "-") + "Z"
        place = self.root / name
        if place.exists():
            place = self.root / f"{name}-{record.number}"
        self.partial.root.rename(place)
        sync_folder(self.root)
        return Backup(place, record)

    def keep_last(self, count: int) -> int:
        """Remove all but the newest `count` backups, and return how many were removed."""
        old = self.list_backups()[:-count]
        for backup in old:
            # Rename first, so that `list_backups` doesn't list a half-deleted backup.
            backup.path.rename(self.root / REMOVING)
            # A power cut must not bring the old name back after files are gone.
            sync_folder(self.root)
            self._remove_rest()
        return len(old)

    def _remove_rest(self) -> None:
        if (self.root / REMOVING).exists():
            shutil.rmtree(self.root / REMOVING)


def read_backup(path: Path, parent: OpenFolder | None = None) -> Backup:
    """Read a backup's `backup.json`. Raises BackupRefused if it is unreadable or from a later release.

    A backup in a folder of backups, `parent`, must not be a link.
    """
    reason = f"{RECORD} is damaged: it is no JSON object"
    try:
        with OpenFolder(path, parent) as folder:
            text = folder.read_text(RECORD)
        fields = parse_json(text)
        if isinstance(fields, dict):
            layout = fields.get("v")
            if isinstance(layout, int) and layout > LAYOUT:
                made_by = str(fields.get("version"))[:100]
                raise BackupRefused(f"{path} was made by a later release ({made_by!r}).", "Install that release.")
            # Anybody can have written the file, so check the types of the fields.
            record = TypeAdapter(BackupRecord).validate_json(text, strict=True)
            reason = f"{RECORD} is damaged: started_at: is no time"
            from_text(record.started_at)
            return Backup(path, record)
    except OSError as error:
        reason = f"{RECORD} can't be read ({error.strerror})"
    except ValidationError as error:
        reason = f"{RECORD} is damaged: {': '.join(filter(None, faults_of(error)[0])).rstrip('.')}"
    except NestedTooDeeply as error:
        reason = f"{RECORD} is damaged: {error}"
    except ValueError:
        # The reason is set above: Python's own words say nothing about the file.
        pass
    raise BackupRefused(f"{path} is not a complete backup: {reason}.", "Remove it, or choose another.")


def find_backup(folder: Path) -> Backup:
    """Return the newest backup in this folder, or the folder itself if it is a backup. Raises BackupRefused."""
    if (folder / RECORD).exists():
        return read_backup(folder)
    backups = BackupFolder(folder).list_backups() if folder.is_dir() else []
    if not backups:
        raise BackupRefused(f"There is no backup in {folder}.", "Name a folder that `svc-daemon backup` has filled.")
    return backups[-1]


def _is_own(path: Path) -> bool:
    is_backup = path.name in (PARTIAL, REMOVING) or (_NAME.fullmatch(path.name) and (path / RECORD).exists())
    return bool(is_backup) and path.is_dir() and not path.is_symlink()


def stamp_of(path: Path) -> list[int]:
    """Return inode, sizes and times of an index and its log. Each change of the index changes one of these values."""
    found = path.stat()
    log = path.with_name(f"{path.name}-wal")
    # Reading a database can create an empty write-ahead log, which doesn't count as a change.
    ends = log.stat() if log_bytes(path) else None
    return [found.st_ino, found.st_size, found.st_mtime_ns, *([ends.st_size, ends.st_mtime_ns] if ends else [])]
