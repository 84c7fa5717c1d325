"""Backups: complete copies of a data directory, in a folder that may be on another disk.

Each backup is a folder named after its time. It has the layout of a data directory, and the file `backup.json`, which
is written last. A file that the previous backup has too is a hard link to its copy, so it takes no space again. Nothing
is ever linked to the data directory, where damage to one would be damage to both.

A backup is made in the folder `backup.partial`, and renamed when it is complete and durable. If it is interrupted, the
previous backups are unchanged, and the next run continues in that folder.
"""

import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from svc_daemon.core import ids
from svc_daemon.data_directory import DirectoryRefused, sync_folder
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import StorageError
from svc_daemon.paths import DataFiles
from svc_daemon.store import file_systems
from svc_daemon.store.asides import Asides
from svc_daemon.store.removals import BackupRunning

PARTIAL, REMOVING, RECORD = "backup.partial", "backup.removing", "backup.json"
#: The version of the layout of backups. Backups of a later version are refused.
LAYOUT = 1
#: Number of bytes that are read at a time.
READ_BYTES = 1024 * 1024
_NAME = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ(?:-\d+)?")

#: Called with the number of files that are done and the number of all files.
Report = Callable[[int, int], None]


class BackupRefused(DirectoryRefused):
    """The folder can't be used for backups, or has none that can be used."""


class StoredFacts(NamedTuple):
    """What the state knows of a stored file."""

    size_bytes: int
    sha256: str


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


@dataclass(slots=True)
class CopyCounts:
    """How many files were copied, and how many were there already or in the previous backup."""

    copied: int = 0
    linked: int = 0
    bytes_copied: int = 0


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
            if path != self.partial.blobs:
                _remove(path)

    def finish(self, record: BackupRecord, syncer: "Syncer") -> Backup:
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


class Syncer:
    """Makes the files of a folder durable: by one call of `syncfs`, or an fsync of each where that isn't enough."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Opened before the first file is written: a later descriptor would not report earlier errors.
        self._descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def sync(self) -> None:
        """Raises OSError if anything could not be written."""
        if file_systems.is_syncable(self.folder):
            file_systems.sync(self._descriptor)
            return
        for parent, _, names in os.walk(self.folder):
            for path in (*(Path(parent, name) for name in names), Path(parent)):
                sync_folder(path) if path.is_dir() else _sync_file(path)

    def close(self) -> None:
        os.close(self._descriptor)


class DirectoryCopy:
    """Copies the files of a data directory to another one, except the databases."""

    def __init__(
        self, source: DataFiles, target: DataFiles, previous: DataFiles | None = None, *, read_data: bool = False
    ) -> None:
        """`previous` is an older copy, to whose files the same files are linked; `read_data` reads its blobs before."""
        self.counts = CopyCounts()
        self._reads_data = read_data
        self._source = source
        self._target = target
        self._previous = previous

    def copy_blobs(self, stored: Mapping[str, StoredFacts], report: Report) -> None:
        """Copy the stored files. Those that are missing, or don't have their hash, are left out: a check finds them.

        Files of the target that have none of these names are removed.
        """
        self._target.blobs.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Plain strings, since this loop runs for each source.
        place, previous = str(self._target.blobs), str(self._previous.blobs) if self._previous else None
        there = {entry.name for entry in os.scandir(place)}
        for name in there - stored.keys():
            (self._target.blobs / name).unlink()
        for done, (name, facts) in enumerate(stored.items()):
            report(done, len(stored))
            if not ids.BLOB_NAME.fullmatch(name):
                continue
            # A name is never used twice, so a file of this name and size has the same content.
            origin = f"{previous}/{name}" if previous else None
            if origin is not None and not self._is_whole(origin, facts):
                origin = None
            if name in there:
                if self._is_kept(f"{place}/{name}", origin, facts):
                    continue
                (self._target.blobs / name).unlink()
            if origin is None or not self._link(origin, f"{place}/{name}"):
                self._copy_blob(name, facts)
        report(len(stored), len(stored))

    def copy_parts(self, session_ids: Iterable[str]) -> None:
        """Copy the bytes of open upload sessions."""
        for session_id in session_ids:
            for folder in (self._source.parts, self._source.held):
                if self._put(folder / session_id, f"parts/{session_id}"):
                    break

    def copy_rest(self) -> None:
        """Copy the secret, the admin key, the embedding model, and the files that were set aside."""
        for path in (self._source.secret, self._source.admin_key):
            self._put(path, path.name)
        for folder in (self._source.models, self._source.aside):
            for parent, folders, names in os.walk(folder):
                # Names that begin with a dot are files and folders that are being written.
                folders[:] = [name for name in folders if not name.startswith(".")]
                for path in (Path(parent, name) for name in names if not name.startswith(".")):
                    self._put(path, str(path.relative_to(self._source.root)))

    def _is_whole(self, origin: str, facts: StoredFacts) -> bool:
        try:
            found = os.lstat(origin)
        except FileNotFoundError:
            return False
        is_sized = stat.S_ISREG(found.st_mode) and found.st_size == facts.size_bytes
        return is_sized and (not self._reads_data or _hash(origin) == facts.sha256)

    def _is_kept(self, place: str, origin: str | None, facts: StoredFacts) -> bool:
        """Whether an interrupted run has copied or linked this file completely."""
        is_linked = origin is not None and Path(origin).samefile(place)
        if not is_linked and _hash(place) != facts.sha256:
            return False
        self.counts.linked += 1
        return True

    def _copy_blob(self, name: str, facts: StoredFacts) -> None:
        place = f"{self._target.blobs}/{name}"
        for path in self._places_of(name):
            with suppress(StorageError):
                if (copied := _copy(path, place)) is not None and copied.sha256 == facts.sha256:
                    self._count(copied)
                    return
        Path(place).unlink(missing_ok=True)

    def _places_of(self, name: str) -> Iterator[str | Path]:
        """Iterate over the paths at which the blob may be. It may be moved from one to the next meanwhile."""
        yield f"{self._source.blobs}/{name}"
        yield f"{self._source.held}/{name}"
        if (aside := Asides(self._source.aside).find_all().get(name)) is not None:
            yield aside
        # A start of the daemon takes back what is set aside.
        yield f"{self._source.blobs}/{name}"

    def _put(self, path: Path, relative: str) -> bool:
        """Copy or link a file. Returns False if it doesn't exist."""
        place, origin = self._target.root / relative, self._previous_path(relative)
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            found = path.lstat()
        except FileNotFoundError:
            return False
        if origin is not None and _is_same(origin.lstat(), found) and self._link(origin, place):
            return True
        copied = _copy(path, place)
        if copied is None:
            return False
        self._count(copied)
        return True

    def link_same(self, relative: str) -> bool:
        """Link a file to that of the previous backup, if there is one."""
        origin, place = self._previous_path(relative), self._target.root / relative
        return origin is not None and self._link(origin, place)

    def _count(self, copied: StoredFacts) -> None:
        self.counts.copied += 1
        self.counts.bytes_copied += copied.size_bytes

    def _previous_path(self, relative: str) -> Path | None:
        path = self._previous.root / relative if self._previous else None
        return path if path is not None and path.is_file() and not path.is_symlink() else None

    def _link(self, origin: str | Path, place: str | Path) -> bool:
        try:
            os.link(origin, place)
        except OSError:
            # The file system has no hard links, or the file has as many as it can have.
            return False
        self.counts.linked += 1
        return True


def list_stored(connection: Connection) -> dict[str, StoredFacts]:
    """Map the blob name of every source to what the state knows of the file."""
    rows = connection.execute("SELECT COALESCE(blob, id) AS name, size_bytes, sha256 FROM sources ORDER BY id")
    return {row["name"]: StoredFacts(row["size_bytes"], row["sha256"]) for row in rows}


def _copy(path: str | Path, place: str | Path) -> StoredFacts | None:
    """Copy a file with its date, and return its size and hash; None if it doesn't exist or is no regular file.

    Raises StorageError if the file can't be read, and OSError if the copy can't be written.
    """
    try:
        # Not blocking: opening a pipe would wait for its writer.
        source = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP):
            return None
        raise _unreadable(path, error) from error
    with ExitStack() as stack:
        stack.callback(os.close, source)
        found = os.fstat(source)
        if not stat.S_ISREG(found.st_mode):
            return None
        copy = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        stack.callback(os.close, copy)
        hashed, size_bytes = hashlib.sha256(), 0
        while size_bytes < found.st_size and (data := _read(source, path)):
            hashed.update(data)
            size_bytes += len(data)
            while data:
                data = data[os.write(copy, data) :]
        os.utime(copy, ns=(found.st_atime_ns, found.st_mtime_ns))
        return StoredFacts(size_bytes, hashed.hexdigest())


def _read(source: int, path: str | Path) -> bytes:
    try:
        return os.read(source, READ_BYTES)
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: str | Path, error: OSError) -> StorageError:
    return StorageError(f"{path} can't be read: {error.strerror}.", errno=error.errno)


def _hash(path: str | Path) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_same(one: os.stat_result, other: os.stat_result) -> bool:
    return (one.st_size, one.st_mtime_ns) == (other.st_size, other.st_mtime_ns)


def _is_own(path: Path) -> bool:
    is_backup = path.name in (PARTIAL, REMOVING) or (_NAME.fullmatch(path.name) and (path / RECORD).exists())
    return bool(is_backup) and path.is_dir() and not path.is_symlink()


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _sync_file(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
