"""Lists the contents of byte stores and computes their hashes, without changing anything."""

import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from svc_daemon.data_directory import hash_file
from svc_daemon.store.asides import DataFolders


@dataclass(frozen=True, slots=True)
class StoredBytes:
    """The stored bytes of a blob, or of an upload session."""

    #: The name of the blob, or the id of the session.
    name: str
    #: The path of the file, or the key of the object.
    place: str
    size_bytes: int
    #: False for symbolic links and anything else that isn't a regular file; such blobs count as lost.
    is_plain: bool = True
    #: True if bytes without a row are normal in this store, because they are only deleted once they are old.
    may_wait: bool = False


class BytesInspector(Protocol):
    """Inspects the byte stores of an installation. All methods are blocking, and raise OSError or StorageError."""

    #: How many blobs can be hashed at the same time.
    readers: int

    def list_blobs(self) -> Mapping[str, StoredBytes]:
        """Return all blobs by name.

        Files that were moved aside are included, unless there is a blob of the same name.
        """
        ...

    def list_parts(self) -> Mapping[str, StoredBytes]:
        """Return the bytes of each upload session by session id."""
        ...

    def list_staged(self) -> list[str]:
        """List staging files left over from uploads that were interrupted and can't be continued."""
        ...

    def hash(self, name: str, stored: StoredBytes) -> str:
        """Read the bytes of a blob, and return their SHA-256, in hexadecimal."""
        ...


class FolderInspector:
    """Inspects the files of a data directory while no process uses the directory."""

    readers = 1

    def __init__(self, folders: DataFolders) -> None:
        self._folders = folders

    def list_blobs(self) -> Mapping[str, StoredBytes]:
        aside = self._folders.asides.find_all()
        found = {name: _describe(path, may_wait=True) for name, path in aside.items()}
        blobs = self._folders.blobs
        return found | {name: _describe(blobs.path(name)) for name in _names(blobs.list_ids)}

    def list_parts(self) -> Mapping[str, StoredBytes]:
        parts = self._folders.parts
        return {name: _describe(parts.path(name)) for name in _names(parts.list_ids)}

    def list_staged(self) -> list[str]:
        return sorted(_names(self._folders.blobs.list_staged))

    def hash(self, name: str, stored: StoredBytes) -> str:  # noqa: ARG002 - its place is enough
        return hash_file(stored.place).hexdigest()


def _describe(path: Path, *, may_wait: bool = False) -> StoredBytes:
    found = path.lstat()
    return StoredBytes(path.name, str(path), found.st_size, stat.S_ISREG(found.st_mode), may_wait)


def _names(list_names: Callable[[], Iterable[str]]) -> set[str]:
    """Return the names in a folder; empty if the folder is missing."""
    try:
        return set(list_names())
    except FileNotFoundError:
        return set()
