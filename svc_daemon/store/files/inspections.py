"""Lists and hashes the contents of byte stores, and moves files aside that no row names.

Such a file may be the only copy of its content, for example after an older database was restored. Its new path contains
the day on which it was moved: `aside/2026-11-22/src_01k2…`.
"""

import re
import stat
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from svc_daemon.core import ids
from svc_daemon.data_directory import hash_file, list_own
from svc_daemon.paths import make_folder, sync_folder
from svc_daemon.store.files.blobs import Blobs
from svc_daemon.store.files.contract import ByteStores, FileCounts
from svc_daemon.store.files.parts import Parts

#: The names of the folders, one for each day.
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_SHAPE = re.compile(f"{ids.BLOB_NAME.pattern}|{ids.PART_NAME.pattern}")


class SetAsideFiles:
    """The folder to which files without a database row are moved. All methods block."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        #: Number of files in the folder, as last counted.
        self.counts = FileCounts()

    def find_all(self) -> dict[str, Path]:
        """Map the name of each file to its path. If several have the same name, the one moved last is used."""
        return {name: day / name for day in self._days() for name in list_own(day, _SHAPE) if _is_plain(day / name)}

    def list_names(self) -> Collection[str]:
        return self.find_all()

    def put(self, path: Path, today: str) -> bool:
        """Move the file to this day's folder. Returns False if the target exists, or if a path has a symbolic link."""
        place = self.folder / today / path.name
        is_led_away = any(folder.is_symlink() for folder in (path.parent, self.folder, place.parent))
        if is_led_away or not _is_plain(path) or place.exists():
            return False
        make_folder(place.parent)
        path.rename(place)
        return True

    def sync(self) -> None:
        """Make the moves to this folder durable. Nothing may sync the folders that the files came from before this."""
        for day in self._days():
            sync_folder(day)

    def remove(self, names: Collection[str]) -> None:
        """Delete all files with these names."""
        _remove([day / name for day in self._days() for name in list_own(day, _SHAPE) if name in names])

    def remove_before(self, day: str) -> int:
        """Delete the files that were moved here before this day, and return their number."""
        old = [folder / name for folder in self._days() if folder.name < day for name in list_own(folder, _SHAPE)]
        _remove(old)
        return len(old)

    def _days(self) -> list[Path]:
        if self.folder.is_symlink() or not self.folder.is_dir():
            return []
        return sorted(
            path
            for path in self.folder.iterdir()
            if DAY.fullmatch(path.name) and path.is_dir() and not path.is_symlink()
        )


@dataclass(frozen=True, slots=True)
class DataFolders(ByteStores):
    """The folders of a data directory for blobs, for upload parts, and for files without a database row."""

    blobs: Blobs
    parts: Parts
    set_aside_files: SetAsideFiles


def _remove(paths: Collection[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
    for folder in {path.parent for path in paths}:
        # This fails, as intended, if the folder still contains other files.
        with suppress(OSError):
            folder.rmdir()


def _is_plain(path: Path) -> bool:
    """Whether this is a regular file rather than a symbolic link."""
    return path.is_file() and not path.is_symlink()


@dataclass(frozen=True, slots=True)
class StoredBytes:
    """The stored bytes of a blob or an upload session."""

    #: Name of the blob, or id of the session.
    name: str
    #: Path of the file, or key of the object.
    place: str
    size_bytes: int
    #: False for symbolic links and other special files, which count as lost.
    is_plain: bool = True
    #: Whether these bytes may exist without a database row that names them.
    may_wait: bool = False


class BytesInspector(Protocol):
    """Inspects an installation's byte stores. All methods block, and raise OSError or StorageError."""

    #: How many blobs can be hashed at once.
    readers: int

    def list_blobs(self) -> Mapping[str, StoredBytes]:
        """Map the name of each blob to its bytes. Includes files that the daemon has moved to the folder `aside`."""
        ...

    def list_parts(self) -> Mapping[str, StoredBytes]:
        """Map the ids of upload sessions to their bytes."""
        ...

    def list_staged(self) -> list[str]:
        """List staging files left by interrupted uploads."""
        ...

    def hash(self, name: str, stored: StoredBytes) -> str:
        """Return the hexadecimal SHA-256 of a blob's bytes."""
        ...


class FolderInspector:
    """Inspects the files of a data directory that no process uses."""

    readers = 1

    def __init__(self, folders: DataFolders) -> None:
        self._folders = folders

    def list_blobs(self) -> Mapping[str, StoredBytes]:
        aside = self._folders.set_aside_files.find_all()
        found = {name: _describe(path, may_wait=True) for name, path in aside.items()}
        blobs = self._folders.blobs
        return found | {name: _describe(blobs.path(name)) for name in _names(blobs.list_ids)}

    def list_parts(self) -> Mapping[str, StoredBytes]:
        parts = self._folders.parts
        return {name: _describe(parts.path(name)) for name in _names(parts.list_ids)}

    def list_staged(self) -> list[str]:
        return sorted(_names(self._folders.blobs.list_staged))

    def hash(self, name: str, stored: StoredBytes) -> str:  # noqa: ARG002 - `stored` is enough
        return hash_file(stored.place).hexdigest()


def _describe(path: Path, *, may_wait: bool = False) -> StoredBytes:
    found = path.lstat()
    return StoredBytes(path.name, str(path), found.st_size, stat.S_ISREG(found.st_mode), may_wait)


def _names(list_names: Callable[[], Iterable[str]]) -> set[str]:
    """Return the names in a folder, or none if it is missing."""
    try:
        return set(list_names())
    except FileNotFoundError:
        return set()
