"""Copies the files of a data directory to another one, for backups and restores."""

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from svc_daemon.core import ids
from svc_daemon.data_directory import hash_file
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import StorageError
from svc_daemon.paths import DataFiles
from svc_daemon.store import file_systems
from svc_daemon.store.set_aside_files import SetAsideFiles

#: Number of bytes per read.
READ_BYTES = 1024 * 1024
#: Called with the number of copied files and the total number of files.
Report = Callable[[int, int], None]


class StoredFacts(NamedTuple):
    """Size and hash of a stored file, from the database."""

    size_bytes: int
    sha256: str


@dataclass(slots=True)
class CopyCounts:
    """How many files were copied, and how many were already in the target or the previous backup (`linked`)."""

    copied: int = 0
    linked: int = 0
    bytes_copied: int = 0


class Syncer:
    """Syncs all files of a folder: with one `syncfs` where that is safe, otherwise with an fsync per file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Opened before any write, because `syncfs` doesn't report write errors from before its descriptor was opened.
        self._descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def sync(self) -> None:
        """Sync the files. Raises OSError."""
        if file_systems.is_syncable(self.folder):
            file_systems.sync(self._descriptor)
            return
        for path in (Path(parent, name) for parent, _, names in os.walk(self.folder) for name in (*names, ".")):
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def close(self) -> None:
        os.close(self._descriptor)


class DirectoryCopy:
    """Copies a data directory, except its databases, to another one."""

    def __init__(
        self, source: DataFiles, target: DataFiles, previous: DataFiles | None = None, *, read_data: bool = False
    ) -> None:
        """Prepare a copy. Files that the backup `previous` also has become hard links to that backup's files.

        With `read_data`, a blob is linked only if its hash is correct.
        """
        self.counts = CopyCounts()
        self._reads_data = read_data
        self._source = source
        self._target = target
        self._previous = previous

    def copy_blobs(self, stored: Mapping[str, StoredFacts], report: Report) -> None:
        """Copy these blobs, and delete all others in the target.

        Blobs that are missing or don't match their hash are left out; a later check reports them.
        """
        self._target.blobs.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Strings are faster than paths, and this loop runs for each source.
        place, previous = str(self._target.blobs), str(self._previous.blobs) if self._previous else None
        there = {entry.name for entry in os.scandir(place)}
        for name in there - stored.keys():
            (self._target.blobs / name).unlink()
        for done, (name, facts) in enumerate(stored.items()):
            report(done, len(stored))
            if not ids.BLOB_NAME.fullmatch(name):
                continue
            # Names are never reused, so name and size identify the content.
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
        """Copy the secret, the admin key, the embedding model and the folder `aside`."""
        for path in (self._source.secret, self._source.admin_key):
            self._put(path, path.name)
        for folder in (self._source.models, self._source.aside):
            for parent, folders, names in os.walk(folder):
                # Files whose names begin with a dot are still being written.
                folders[:] = [name for name in folders if not name.startswith(".")]
                for path in (Path(parent, name) for name in names if not name.startswith(".")):
                    self._put(path, str(path.relative_to(self._source.root)))

    def _is_whole(self, origin: str, facts: StoredFacts) -> bool:
        try:
            found = os.lstat(origin)
        except FileNotFoundError:
            return False
        is_sized = stat.S_ISREG(found.st_mode) and found.st_size == facts.size_bytes
        return is_sized and (not self._reads_data or hash_file(origin).hexdigest() == facts.sha256)

    def _is_kept(self, place: str, origin: str | None, facts: StoredFacts) -> bool:
        """Whether an interrupted run has already copied or linked this file."""
        is_linked = origin is not None and Path(origin).samefile(place)
        if not is_linked and hash_file(place).hexdigest() != facts.sha256:
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
        """Yield the paths where the blob may be. Another process may move it meanwhile."""
        yield f"{self._source.blobs}/{name}"
        yield f"{self._source.held}/{name}"
        if (aside := SetAsideFiles(self._source.aside).find_all().get(name)) is not None:
            yield aside
        # Look here a second time, because a starting daemon moves files back from `aside`.
        yield f"{self._source.blobs}/{name}"

    def _put(self, path: Path, relative: str) -> bool:
        """Copy or link a file. Returns False if it is missing."""
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
        """Hard-link the previous backup's file of this name. Returns False if that isn't possible."""
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
            # The file system has no hard links, or this file has too many.
            return False
        self.counts.linked += 1
        return True


def list_stored(connection: Connection) -> dict[str, StoredFacts]:
    """Map the blob name of every source to its size and hash."""
    rows = connection.execute("SELECT COALESCE(blob, id) AS name, size_bytes, sha256 FROM sources ORDER BY id")
    return {row["name"]: StoredFacts(row["size_bytes"], row["sha256"]) for row in rows}


def _copy(path: str | Path, place: str | Path) -> StoredFacts | None:
    """Copy a file with its date, and return its size and hash. None if it is missing or isn't a regular file.

    Raises StorageError if the file can't be read, OSError if the copy can't be written.
    """
    try:
        # Don't block: opening a named pipe would wait for a writer.
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


def _is_same(one: os.stat_result, other: os.stat_result) -> bool:
    return (one.st_size, one.st_mtime_ns) == (other.st_size, other.st_mtime_ns)
