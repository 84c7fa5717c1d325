"""Lists and hashes the contents of byte stores, without changing anything."""

import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from svc_daemon.data_directory import hash_file
from svc_daemon.store.set_aside_files import DataFolders


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
