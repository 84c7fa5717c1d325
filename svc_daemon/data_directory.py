"""The data directory: its folders, and the lock that lets only one process use it."""

import errno
import fcntl
import hashlib
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from svc_daemon.errors import StorageError, StoreUnavailable
from svc_daemon.paths import DataFiles, make_folder, sync_folder

#: What is wrong if a folder is missing that a running daemon needs.
GONE = "A folder of the data directory is gone. Is a volume not mounted?"
#: Maximum size in characters of files such as the record of a backup, which are read into memory.
SMALL_BYTES = 1024 * 1024

if TYPE_CHECKING:
    from hashlib import _Hash
    from shutil import _ntuple_diskusage as _DiskUsage


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
    folders = (files.blobs, files.staging, files.parts, files.held, files.scratch, files.index, files.log.parent)
    try:
        make_folder(files.root)
        missing = [folder for folder in folders if not folder.is_dir()]
        for folder in missing:
            folder.mkdir(mode=0o700, exist_ok=True)
        if missing:
            sync_folder(files.root)
        # An existing directory may be accessible to others.
        files.root.chmod(0o700)
    except OSError as error:
        way = "Set SVC_DATA_DIR to a folder that this user may write."
        raise StorageError(f"Can't make the folder {error.filename}: {error.strerror}. {way}") from error


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


def hand_over(files: DataFiles, owner: os.stat_result | None = None) -> None:
    """Give what root has made in the data directory to the user of the service, who could not open it otherwise.

    That is the owner of the state database, unless another is given.
    """
    if os.geteuid() != 0 or (owner is None and not has_state(files)):
        return
    owner = owner or files.state.stat()
    for _, folders, names, descriptor in os.fwalk(files.root) if owner.st_uid else ():
        for name in (*folders, *names):
            # A running daemon may have removed it.
            with suppress(FileNotFoundError):
                found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                # A second name could be that of a file elsewhere.
                if found.st_uid == 0 and (stat.S_ISDIR(found.st_mode) or found.st_nlink == 1):
                    os.chown(name, owner.st_uid, owner.st_gid, dir_fd=descriptor, follow_symlinks=False)


def has_state(files: DataFiles) -> bool:
    """Return whether a state database exists. An empty file does not count.

    SQLite would treat an empty file as a new database, and delete the write-ahead log beside it.
    """
    return files.state.is_file() and files.state.stat().st_size > 0


class OpenFolder:
    """An open folder, whose entries are used by their names and not by paths.

    So nothing outside of it is read, written or removed, even if somebody has put links there, or does so meanwhile. A
    name is one that was listed, or that has passed `ids.file_name`.
    """

    def __init__(self, path: Path, parent: "OpenFolder | None" = None, *, follows_links: bool = False) -> None:
        """Open a folder. Without a parent, `path` may lead through links, since the user has named it.

        `follows_links` is for the data directory of this installation, whose folders may be on other disks. Raises
        OSError.
        """
        self.path = path
        self.follows_links = follows_links
        name, place = (path, None) if parent is None else (path.name, parent.descriptor)
        link_flag = 0 if parent is None or parent.follows_links else os.O_NOFOLLOW
        with _named(path):
            self.descriptor: int = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | link_flag, dir_fd=place)

    def __enter__(self) -> "OpenFolder":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        os.close(self.descriptor)

    def list_names(self) -> list[str]:
        return os.listdir(self.descriptor)  # noqa: PTH208 - a path could lead elsewhere by now

    def stat(self, name: str) -> os.stat_result | None:
        """Return what is known about an entry, such as a link; None if it is missing."""
        try:
            return os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def enter(self, name: str) -> "OpenFolder":
        """Open a folder in this one. Raises OSError, for example if it is a link."""
        return OpenFolder(self.path / name, self)

    def make(self, name: str) -> "OpenFolder":
        """Open a folder in this one, and create it if it is missing. Raises OSError."""
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=self.descriptor)
        return self.enter(name)

    def open_file(self, name: str) -> int | None:
        """Open a file for reading; None if it is missing, or is a link, a device or anything else but a file."""
        # Look first: opening a named pipe would wait for a writer, and opening a device can have effects.
        found = self.stat(name)
        if found is None or not stat.S_ISREG(found.st_mode):
            return None
        try:
            descriptor = os.open(
                name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self.descriptor
            )
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ELOOP):
                return None
            raise
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            return None
        return descriptor

    def read_text(self, name: str) -> str:
        """Read a small file. Raises OSError or UnicodeDecodeError."""
        descriptor = self.open_file(name)
        if descriptor is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self.path / name))
        with os.fdopen(descriptor, encoding="utf-8") as file:
            return file.read(SMALL_BYTES)

    def make_file(self, name: str) -> int:
        """Create a file, in place of any other entry with this name, and open it for writing. Raises OSError."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with _named(self.path / name):
            with suppress(FileExistsError):
                return os.open(name, flags, 0o600, dir_fd=self.descriptor)
            os.unlink(name, dir_fd=self.descriptor)
            return os.open(name, flags, 0o600, dir_fd=self.descriptor)

    def remove(self, name: str) -> None:
        """Remove a file, or a link but not its target, if it is there. Raises OSError."""
        with suppress(FileNotFoundError), _named(self.path / name):
            os.unlink(name, dir_fd=self.descriptor)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Name the whole path in errors of calls that know only the last part of it."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


def list_own(folder: Path, shape: re.Pattern[str]) -> list[str]:
    """List the files in a folder whose names match `shape`."""
    with os.scandir(folder) as entries:
        return [
            entry.name for entry in entries if shape.fullmatch(entry.name) and not entry.is_dir(follow_symlinks=False)
        ]


def hash_file(path: str | Path) -> "_Hash":
    """Return the SHA-256 hash object of a file, to which the caller can add more bytes. Raises OSError."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256")


def measure_disk(folder: Path) -> "_DiskUsage":
    """Return the sizes of the folder's disk, in bytes. Raises OSError, and StoreUnavailable if the folder is gone."""
    try:
        return shutil.disk_usage(folder)
    except FileNotFoundError as error:
        raise StoreUnavailable(GONE) from error


def measure_files(files: DataFiles) -> dict[str, int]:
    """Return the sizes of the state, the indexes and the whole disk, and the free space, in bytes."""
    usage = measure_disk(files.root)
    sizes = {"free": usage.free, "total": usage.total}
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
