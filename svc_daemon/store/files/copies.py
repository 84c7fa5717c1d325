"""Copies the files of a data directory to another one, for backups and restores."""

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import filterfalse
from pathlib import Path
from typing import NamedTuple

from svc_daemon.core import ids
from svc_daemon.core.problems import Problem
from svc_daemon.data_directory import OpenFolder
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import StorageError
from svc_daemon.paths import DataFiles
from svc_daemon.store.files import syncing
from svc_daemon.store.files.inspections import DAY

#: Number of bytes per read.
READ_BYTES = 1024 * 1024
#: Size of the largest page of an SQLite file, in bytes.
MOST_PAGE_BYTES = 65536
#: The beginning of the year 10000.
END_OF_TIME_NS = 253_402_300_800 * 10**9
#: The names of the entries of a data directory.
NAMES = DataFiles(Path())
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
        if syncing.is_syncable(self.folder):
            syncing.sync(self._descriptor)
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
        self, source: OpenFolder, target: OpenFolder, previous: OpenFolder | None = None, *, read_data: bool = False
    ) -> None:
        """Prepare a copy. Files that the backup `previous` also has become hard links to that backup's files.

        With `read_data`, a blob is linked only if its hash is correct.
        """
        self.counts = CopyCounts()
        #: Names of blobs that are missing, or don't match their hash.
        self.missing: list[str] = []
        #: Why blobs could not be read, by name.
        self._unreadable: dict[str, str] = {}
        #: SHA-256 of the secret and the admin key, by name.
        self.sums: dict[str, str] = {}
        self._reads_data = read_data
        self.source = source
        self._target = target
        self._previous = previous

    def copy_blobs(self, stored: Mapping[str, StoredFacts], report: Report) -> None:
        """Copy these blobs, and delete all others in the target.

        Blobs that are missing or don't match their hash are left out; a later check reports them.
        """
        with self._target.make(NAMES.blobs.name) as target, ExitStack() as stack:
            previous = find_folder(stack, self._previous, NAMES.blobs.name)
            there = set(filter(ids.BLOB_NAME.fullmatch, target.list_names()))
            for name in there - stored.keys():
                target.remove(name)
            for done, (name, facts) in enumerate(stored.items()):
                report(done, len(stored))
                if not ids.BLOB_NAME.fullmatch(name):
                    continue
                # Names are never reused, so name and size identify the content.
                origin = previous if previous is not None and self._is_whole(previous, name, facts) else None
                if name in there:
                    if self._is_kept(target, name, origin, facts):
                        continue
                    target.remove(name)
                if origin is None or not self._link(origin, name, target):
                    self._copy_blob(name, facts, target)
            report(len(stored), len(stored))

    def explain(self, problems: Iterable[Problem]) -> list[Problem]:
        """Add to problems of the copy why a blob could not be read."""
        reasons = {name: f": {message}" for name, message in self._unreadable.items()}
        return [replace(each, message=each.message + reasons.get(each.about.get("blob", ""), "")) for each in problems]

    def copy_parts(self, session_ids: Iterable[str]) -> None:
        """Copy the bytes of open upload sessions."""
        with self._target.make(NAMES.parts.name) as target, ExitStack() as stack:
            previous = find_folder(stack, self._previous, NAMES.parts.name)
            folders = [find_folder(stack, self.source, name) for name in (NAMES.parts.name, NAMES.held.name)]
            for session_id in session_ids:
                name = ids.file_name(session_id, ids.PART_NAME, row="The id of an upload session")
                any(folder is not None and self._put(folder, name, target, previous) for folder in folders)

    def copy_rest(self, left_out: Collection[str] = ()) -> None:
        """Copy the secret and the admin key, except those in `left_out`, the embedding model and the folder `aside`."""
        for name in {NAMES.secret.name, NAMES.admin_key.name}.difference(left_out):
            # A link to a damaged file of the previous backup would keep the damage.
            previous = self._previous
            if previous is not None and hash_file(previous, name) != hash_file(self.source, name):
                previous = None
            if self._put(self.source, name, self._target, previous):
                self.sums[name] = hash_file(self._target, name) or ""
        for name in (NAMES.models.name, NAMES.aside.name):
            self._put_folder(self.source, name, self._target, self._previous)

    def _put_folder(
        self, source: OpenFolder, name: str, target: OpenFolder, previous: OpenFolder | None, levels: int = 2
    ) -> None:
        """Copy the files in a folder, if it exists, and those in its folders if `levels` is more than 1."""
        with ExitStack() as stack:
            inner, before = (find_folder(stack, folder, name) for folder in (source, previous))
            if inner is None:
                return
            place = stack.enter_context(target.make(name))
            # Files whose names begin with a dot are still being written.
            for each in filterfalse(lambda each: each.startswith("."), inner.list_names()):
                found = inner.stat(each)
                if found is not None and stat.S_ISDIR(found.st_mode) and levels > 1:
                    self._put_folder(inner, each, place, before, levels - 1)
                else:
                    self._put(inner, each, place, before)

    def _is_whole(self, folder: OpenFolder, name: str, facts: StoredFacts) -> bool:
        found = folder.stat(name)
        is_sized = found is not None and stat.S_ISREG(found.st_mode) and found.st_size == facts.size_bytes
        return is_sized and (not self._reads_data or hash_file(folder, name) == facts.sha256)

    def _is_kept(self, target: OpenFolder, name: str, origin: OpenFolder | None, facts: StoredFacts) -> bool:
        """Whether an interrupted run has already copied or linked this file."""
        found, linked = target.stat(name), origin.stat(name) if origin is not None else None
        is_linked = found is not None and linked is not None and os.path.samestat(found, linked)
        if not is_linked and hash_file(target, name) != facts.sha256:
            return False
        self.counts.linked += 1
        return True

    def _copy_blob(self, name: str, facts: StoredFacts, target: OpenFolder) -> None:
        for folder in self._places():
            found = folder.stat(name)
            if found is None or found.st_size != facts.size_bytes:
                continue
            try:
                copied = copy_file(folder, name, target)
            except StorageError as error:
                self._unreadable[name] = error.message
                continue
            if copied is not None and copied.sha256 == facts.sha256:
                self._count(copied)
                return
        target.remove(name)
        self.missing.append(name)

    def _places(self) -> Iterator[OpenFolder]:
        """Open each folder where a blob may be. Another process may move it meanwhile."""
        # Look among the blobs a second time, because a starting daemon moves files back from `aside`.
        for name in (NAMES.blobs.name, NAMES.held.name, NAMES.aside.name, NAMES.blobs.name):
            with ExitStack() as stack:
                folder = find_folder(stack, self.source, name)
                if folder is None:
                    continue
                if name != NAMES.aside.name:
                    yield folder
                    continue
                for day in sorted(filter(DAY.fullmatch, folder.list_names()), reverse=True):
                    found = folder.stat(day)
                    is_folder = found is not None and stat.S_ISDIR(found.st_mode)
                    if is_folder and (inner := find_folder(stack, folder, day)) is not None:
                        yield inner

    def _put(self, source: OpenFolder, name: str, target: OpenFolder, previous: OpenFolder | None) -> bool:
        """Copy or link a file. Returns False if it is missing, or isn't a regular file."""
        found, before = source.stat(name), previous.stat(name) if previous is not None else None
        if found is None or not stat.S_ISREG(found.st_mode):
            return False
        as_before = before is not None and (before.st_size, before.st_mtime_ns) == (found.st_size, found.st_mtime_ns)
        if previous is not None and as_before:
            target.remove(name)
            if self._link(previous, name, target):
                return True
        copied = copy_file(source, name, target)
        if copied is None:
            return False
        self._count(copied)
        return True

    def link_same(self, folder: str, name: str) -> bool:
        """Hard-link the previous backup's file of this name. Returns False if that isn't possible."""
        with ExitStack() as stack:
            previous = find_folder(stack, self._previous, folder)
            found = previous.stat(name) if previous is not None else None
            if previous is None or found is None or not stat.S_ISREG(found.st_mode):
                return False
            return self._link(previous, name, stack.enter_context(self._target.make(folder)))

    def _count(self, copied: StoredFacts) -> None:
        self.counts.copied += 1
        self.counts.bytes_copied += copied.size_bytes

    def _link(self, origin: OpenFolder, name: str, target: OpenFolder) -> bool:
        try:
            os.link(name, name, src_dir_fd=origin.descriptor, dst_dir_fd=target.descriptor, follow_symlinks=False)
        except OSError:
            # The file system has no hard links, or this file has too many.
            return False
        self.counts.linked += 1
        return True


def list_stored(connection: Connection) -> dict[str, StoredFacts]:
    """Map the blob name of every source to its size and hash."""
    rows = connection.execute("SELECT COALESCE(blob, id) AS name, size_bytes, sha256 FROM sources ORDER BY id")
    return {row["name"]: StoredFacts(row["size_bytes"], row["sha256"]) for row in rows}


def copy_file(source: OpenFolder, name: str, target: OpenFolder) -> StoredFacts | None:
    """Copy a file with its date, and return its size and hash. None if it is missing or isn't a regular file.

    Raises StorageError if the file can't be read, OSError if the copy can't be written.
    """
    path = source.path / name
    try:
        origin = source.open_file(name)
    except OSError as error:
        raise _unreadable(path, error) from error
    if origin is None:
        return None
    with ExitStack() as stack:
        stack.callback(os.close, origin)
        found = os.fstat(origin)
        room = os.fstatvfs(target.descriptor)
        if found.st_size > room.f_bavail * room.f_frsize:
            # A file may have any size and take no room where it is. Don't fill this disk with it in vain.
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target.path / name))
        copy = target.make_file(name)
        stack.callback(os.close, copy)
        hashed, size_bytes = hashlib.sha256(), 0
        while size_bytes < found.st_size and (data := _read(origin, path)):
            hashed.update(data)
            size_bytes += len(data)
            while data:
                data = data[os.write(copy, data) :]
        # Dates that no calendar has would end the daemon's next start.
        if 0 <= found.st_mtime_ns < END_OF_TIME_NS:
            os.utime(copy, ns=(found.st_mtime_ns, found.st_mtime_ns))
        return StoredFacts(size_bytes, hashed.hexdigest())


def find_excess(source: OpenFolder, name: str) -> str | None:
    """Return how much longer a database file is than its header says; None if it is by at most a page, or missing.

    Such a file may be a hole that takes no room where it is, and fills the disk when it is copied. Raises OSError.
    """
    descriptor = source.open_file(name)
    if descriptor is None:
        return None
    with os.fdopen(descriptor, "rb") as file:
        size_bytes, header = os.fstat(descriptor).st_size, file.read(100)
    page_bytes, pages = int.from_bytes(header[16:18]), int.from_bytes(header[28:32])
    # The largest size of a page has no room in its two bytes.
    used = (MOST_PAGE_BYTES if page_bytes == 1 else page_bytes) * pages
    return f"{size_bytes} bytes, and {used} are in use" if size_bytes > used + MOST_PAGE_BYTES else None


def find_folder(stack: ExitStack, parent: OpenFolder | None, name: str) -> OpenFolder | None:
    """Open a folder until the stack is closed; None if it is missing."""
    try:
        return stack.enter_context(parent.enter(name)) if parent is not None else None
    except FileNotFoundError:
        return None


def hash_file(folder: OpenFolder, name: str) -> str | None:
    """Return the hexadecimal SHA-256 of a file; None if it isn't a regular file."""
    descriptor = folder.open_file(name)
    if descriptor is None:
        return None
    with os.fdopen(descriptor, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read(source: int, path: Path) -> bytes:
    try:
        return os.read(source, READ_BYTES)
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> StorageError:
    return StorageError(f"{path} can't be read: {error.strerror}.", errno=error.errno)
