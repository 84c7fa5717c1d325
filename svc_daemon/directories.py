"""The data directory as a whole: its folders, and the lock that one process at a time holds."""

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from svc_daemon.errors import StorageError
from svc_daemon.paths import DataFiles


class DirectoryRefused(Exception):
    """The data directory can't be used: the reason, and a hint."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(f"{message} {hint}")
        self.message = message
        self.hint = hint


class NoDirectory(DirectoryRefused):
    """There is no installation in the data directory."""

    def __init__(self, files: DataFiles) -> None:
        super().__init__(
            f"There is no data directory at {files.root}: it has no {files.state.name}.",
            "Name the right one in SVC_DATA_DIR; `svc-daemon serve` makes a new one.",
        )


class DirectoryLocked(DirectoryRefused):
    """Another process owns the data directory."""

    def __init__(self, files: DataFiles) -> None:
        super().__init__(
            f"Another process owns {files.root}.", "Stop it with `svc daemon stop`, or name another in SVC_DATA_DIR."
        )


def make_folders(files: DataFiles) -> None:
    """Create the missing folders of the data directory; raises StorageError."""
    try:
        for folder in (
            files.root,
            files.blobs,
            files.staging,
            files.parts,
            files.scratch,
            files.index,
            files.log.parent,
        ):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # One that somebody made beforehand may be open to all.
        files.root.chmod(0o700)
    except OSError as error:
        raise StorageError(f"Can't make the folder {error.filename}: {error.strerror}.") from error


@contextmanager
def lock_directory(files: DataFiles) -> Iterator[None]:
    """Hold the data directory; the kernel releases the lock however the process ends.

    The lock is on the directory itself, which can't be removed without the data in it. Raises DirectoryLocked, and
    StorageError where the directory can't be locked at all.
    """
    # A daemon of an earlier release, which may still run, holds a file of this name instead.
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
    """Whether there is a state database. SQLite takes an empty file for a new one, and removes the log beside it."""
    return files.state.is_file() and files.state.stat().st_size > 0


def list_own(folder: Path, shape: re.Pattern[str]) -> list[str]:
    """The names of this shape in a folder; folders, and whatever has another name, are not ours."""
    with os.scandir(folder) as entries:
        return [
            entry.name for entry in entries if shape.fullmatch(entry.name) and not entry.is_dir(follow_symlinks=False)
        ]


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
