"""The data directory: its folders, and the lock that lets only one process use it."""

import fcntl
import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from svc_daemon.errors import StorageError
from svc_daemon.paths import DataFiles

if TYPE_CHECKING:
    from hashlib import _Hash


class DirectoryRefused(Exception):
    """The data directory can't be used. `message` says why, and `hint` what to do."""

    #: The error code, for programs.
    code: str
    retryable = False

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(f"{message} {hint}")
        self.message = message
        self.hint = hint


class NoDirectory(DirectoryRefused):
    """There is no installation in the data directory."""

    code = "svc_data_dir_not_found"

    def __init__(self, files: DataFiles) -> None:
        super().__init__(
            f"There is no data directory at {files.root}: it has no {files.state.name}.",
            "Set SVC_DATA_DIR to the right folder; `svc-daemon serve` creates a new one.",
        )


class DirectoryLocked(DirectoryRefused):
    """Another process owns the data directory."""

    code = "svc_data_dir_locked"

    def __init__(self, files: DataFiles) -> None:
        super().__init__(
            f"Another process is using {files.root}.",
            "Stop it with `svc daemon stop`, or set SVC_DATA_DIR to another folder.",
        )


class NotEmpty(DirectoryRefused):
    """The data directory is not empty. A restore never overwrites files."""

    code = "svc_data_dir_not_empty"

    def __init__(self, root: Path, found: str) -> None:
        super().__init__(
            f"{root} is not empty: it has {found}. A restore never replaces files.",
            "Move it away, or set SVC_DATA_DIR to a new folder.",
        )


def make_folders(files: DataFiles) -> None:
    """Create the missing folders of the data directory. Raises StorageError."""
    try:
        for folder in (
            files.root,
            files.blobs,
            files.staging,
            files.parts,
            files.held,
            files.scratch,
            files.index,
            files.log.parent,
        ):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # An existing directory may be accessible to others.
        files.root.chmod(0o700)
    except OSError as error:
        raise StorageError(f"Can't make the folder {error.filename}: {error.strerror}.") from error


@contextmanager
def lock_directory(files: DataFiles) -> Iterator[None]:
    """Lock the data directory. The lock ends with the process, even if it is killed.

    The directory itself is locked, since a lock file in it could be deleted. Raises DirectoryLocked or StorageError.
    """
    # A daemon of an earlier release locks the file `lock` instead of the directory.
    earlier = [path for path in [files.root / "lock"] if path.exists()]
    with ExitStack() as stack:
        for path in (files.root, *earlier):
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                stack.callback(os.close, descriptor)
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise DirectoryLocked(files) from error
            except OSError as error:
                raise StorageError(f"Can't lock {path}: {error.strerror}.") from error
        yield


def has_state(files: DataFiles) -> bool:
    """Return whether a state database exists. An empty file does not count.

    SQLite would treat an empty file as a new database, and delete the write-ahead log beside it.
    """
    return files.state.is_file() and files.state.stat().st_size > 0


def list_own(folder: Path, shape: re.Pattern[str]) -> list[str]:
    """List the files in a folder whose names match `shape`."""
    with os.scandir(folder) as entries:
        return [
            entry.name for entry in entries if shape.fullmatch(entry.name) and not entry.is_dir(follow_symlinks=False)
        ]


def sync_folder(folder: Path) -> None:
    """Fsync a folder, so that its directory entries are durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def hash_file(path: str | Path) -> "_Hash":
    """Return the SHA-256 hash object of a file, to which the caller can add more bytes. Raises OSError."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256")


def measure_files(files: DataFiles) -> dict[str, int]:
    """Return the sizes of the state and the indexes, and the free space, in bytes."""
    sizes = {"free": shutil.disk_usage(files.root).free}
    if has_state(files):
        sizes["state"] = sum(map(_size_bytes, files.root.glob(f"{files.state.name}*")))
        sizes["index"] = sum(map(_size_bytes, files.index.rglob("*")))
    return sizes


def _size_bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        # The file was just removed.
        return 0
