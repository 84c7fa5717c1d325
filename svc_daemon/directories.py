"""The data directory as a whole: its folders, and the lock that one process at a time holds."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from svc_daemon.errors import StorageError
from svc_daemon.paths import DataFiles


class DirectoryRefused(Exception):
    """The data directory can't be worked on: what is wrong, and the way out."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(f"{message} {hint}")
        self.message = message
        self.hint = hint


class NoDirectory(DirectoryRefused):
    """There is no installation where one was looked for."""

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
    """Make what is missing of the data directory; raises StorageError where that can't be."""
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
    """Hold the data directory; the kernel lets go of the lock however the process ends."""
    with files.lock.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise DirectoryLocked(files) from error
        yield


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
