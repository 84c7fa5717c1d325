"""Blobs: the stored bytes of each source, in a file named after the source's id or, after a refresh, a new blob id.

A blob is stored before its row, so that there is never a row without its blob:

1. Bytes are buffered in memory. Once there are `SPILL_BYTES`, they are written to a staging file in the data directory.
2. `StagedFile.keep` writes the bytes that are still buffered, renames the file, and syncs the file and then the folder.
3. The caller commits the row. If the process is killed before that, the next start moves the blob aside.

Folder syncs are shared: one sync serves all callers that were waiting while the previous one ran.
"""

import asyncio
import hashlib
import logging
import os
import re
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, TypeVar

from svc_daemon.core import ids
from svc_daemon.data_directory import list_own
from svc_daemon.errors import StorageError
from svc_daemon.paths import DataFiles

log = logging.getLogger(__name__)

T = TypeVar("T")

#: Files smaller than this are kept in memory until they have been received and checked; larger ones are written to a
#: staging file as they arrive.
SPILL_BYTES = 1024 * 1024
#: The names of staging files.
STAGED_NAME = re.compile("[0-9a-f]{32}")
#: Number of leading bytes to keep for sniffing the media type.
HEAD_BYTES = 8192


def clear_away(path: Path) -> None:
    """Delete a file that belongs to no row. An error is logged, not raised.

    A file that could not be deleted is cleaned up at the next start.
    """
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        log.warning("%s could not be removed: %s", path.name, error.strerror)


class FolderSync:
    """Syncs a folder, with one fsync for all callers that asked before it began.

    A failed fsync is not retried: the kernel may have dropped what it could not write, and would then report
    success although renames are lost. All later calls raise the error until the process is restarted.
    """

    def __init__(self, folder: Path, on_broken: Callable[[OSError], None] = lambda _: None) -> None:
        self._folder = folder
        self._on_broken = on_broken
        self._count_lock = threading.Lock()
        self._sync_lock = threading.Lock()
        self._asked = 0
        self._synced = 0
        self._failure: OSError | None = None

    def sync(self) -> None:
        """Return when every rename done before this call is durable; raises OSError."""
        with self._count_lock:
            self._asked += 1
            ticket = self._asked
        with self._sync_lock:
            if self._synced >= ticket:
                return
            self._sync_all()

    def _sync_all(self) -> None:
        if self._failure is not None:
            raise OSError(*self._failure.args) from self._failure
        covered = self._asked
        # Errors of `open`, such as too many open files, are not recorded as a failed sync: a later call may succeed.
        descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        except OSError as error:
            self._failure = error
            self._on_broken(error)
            raise
        finally:
            os.close(descriptor)
        self._synced = covered


class Blobs:
    """The folder of blobs. Blocking work runs in `executor`, so that fsyncs overlap."""

    def __init__(
        self,
        files: DataFiles,
        executor: Executor,
        random_name: Callable[[], str],
        on_broken: Callable[[OSError], None] = lambda _: None,
    ) -> None:
        """`on_broken` is called if an fsync of the folder fails: no blob can be stored until a restart."""
        self._blobs = files.blobs
        self._staging = files.staging
        self._damaged = files.damaged
        self._executor = executor
        self._random_name = random_name
        self._folder_sync = FolderSync(files.blobs, on_broken)

    def stage(self) -> "StagedFile":
        """Create a staged file; nothing is written to the disk yet."""
        return StagedFile(self, self._staging / self._random_name())

    def path(self, source_id: str) -> Path:
        return self._blobs / source_id

    def find(self, source_id: str) -> Path | None:
        """Return the blob's path, or None if there is no blob. Symbolic links are ignored: blobs are never links."""
        path = self.path(source_id)
        return path if path.is_file() and not path.is_symlink() else None

    def delete(self, source_id: str) -> None:
        """Delete the blob. Idempotent: it is not an error if the blob doesn't exist."""
        self.path(source_id).unlink(missing_ok=True)

    def drop(self, source_id: str) -> None:
        """Delete a blob that belongs to no row. A disk error is logged, not raised."""
        clear_away(self.path(source_id))

    def list_ids(self) -> list[str]:
        return list_own(self._blobs, ids.BLOB_NAME)

    def list_staged(self) -> list[str]:
        """List the names of staging files; while no upload is running, they are leftovers."""
        return list_own(self._staging, STAGED_NAME)

    def delete_staged(self, name: str) -> None:
        """Delete a staging file, without following links. Idempotent."""
        if not self._staging.is_symlink():
            (self._staging / name).unlink(missing_ok=True)

    def clear_staging(self) -> int:
        """Delete the staging files that a killed process left, and return how many. Call it only at startup."""
        leftovers = [] if self._staging.is_symlink() else self.list_staged()
        for leftover in leftovers:
            self.delete_staged(leftover)
        return len(leftovers)

    def move_damaged(self, name: str) -> None:
        """Move a damaged blob to the folder for damaged files instead of deleting it. Idempotent."""
        self._damaged.mkdir(mode=0o700, exist_ok=True)
        with suppress(FileNotFoundError):
            self.path(name).replace(self._damaged / name)

    def has_room(self, reserve_bytes: int) -> bool:
        """Whether the free disk space exceeds the reserve.

        The reserve is `reserve_bytes` or 2 % of the disk (at most 1 GB), whichever is more; 0 disables the check.
        """
        if not reserve_bytes:
            return True
        usage = shutil.disk_usage(self._blobs)
        return usage.free > max(reserve_bytes, min(usage.total // 50, 1024**3))

    def try_room(self, size_bytes: int) -> None:
        """Check that the disk has room for this many bytes by writing a temporary file; raises OSError."""
        path = self._staging / self._random_name()
        try:
            with path.open("xb", buffering=0) as file:
                _write_all(file, bytearray(size_bytes))
        finally:
            path.unlink(missing_ok=True)

    async def run(self, work: Callable[[], T]) -> T:
        """Run blocking disk work in the executor; raises StorageError if it raises OSError.

        If the caller is cancelled, this still waits until the work has ended, so that no file is deleted while a
        thread writes it.
        """
        running = asyncio.get_running_loop().run_in_executor(self._executor, work)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait([running])
            raise
        except OSError as error:
            raise StorageError("The disk refused the file; nothing was stored.", errno=error.errno) from error

    def sync_folder(self) -> None:
        """Sync the folder, so that the names of all existing blobs are durable. Blocking; raises OSError."""
        self._folder_sync.sync()


class StagedFile:
    """The bytes of an upload: counted and hashed as they arrive, then kept as a source's blob or discarded."""

    def __init__(self, blobs: Blobs, path: Path) -> None:
        self.size_bytes = 0
        self.head = b""
        self._blobs = blobs
        self._path = path
        self._hash = hashlib.sha256()
        self._buffer = bytearray()
        self._file: BinaryIO | None = None

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    async def append(self, data: bytes) -> None:
        """Append the next bytes; raises StorageError if they can't be written."""
        if len(self.head) < HEAD_BYTES:
            self.head += data[: HEAD_BYTES - len(self.head)]
        self.size_bytes += len(data)
        self._hash.update(data)
        self._buffer += data
        if len(self._buffer) >= SPILL_BYTES:
            await self._blobs.run(self._spill)

    async def read(self, offset_bytes: int, most_bytes: int) -> bytes:
        """Read up to `most_bytes` of the received bytes, starting at the offset; raises StorageError."""
        if self._file is None:
            return bytes(self._buffer[offset_bytes : offset_bytes + most_bytes])
        return await self._blobs.run(lambda: self._read(offset_bytes, most_bytes))

    async def keep(self, source_id: str) -> None:
        """Make the bytes durable as the source's blob; if this fails or is cancelled, they are deleted."""
        try:
            await self._blobs.run(lambda: self._keep(source_id))
        except (StorageError, asyncio.CancelledError):
            self._blobs.drop(source_id)
            await self.discard()
            raise

    async def discard(self) -> None:
        """Discard the bytes and delete the staging file. Idempotent; disk errors are not raised."""
        # Replace the buffer instead of clearing it. It can't be resized while the traceback of a failed write still
        # refers to a view of it.
        self._buffer = bytearray()
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None
            clear_away(self._path)

    def _spill(self) -> None:
        if self._file is None:
            self._file = self._path.open("xb", buffering=0)
        _write_all(self._file, self._buffer)
        self._buffer.clear()

    def _read(self, offset_bytes: int, most_bytes: int) -> bytes:
        self._spill()
        with self._path.open("rb") as file:
            file.seek(offset_bytes)
            return file.read(most_bytes)

    def _keep(self, source_id: str) -> None:
        """Rename the file before syncing it, which is safe because no row refers to it yet."""
        self._spill()
        if self._file is None:
            raise AssertionError("spilling opens the file")
        self._path.rename(self._blobs.path(source_id))
        os.fsync(self._file.fileno())
        self._file.close()
        self._file = None
        self._blobs.sync_folder()


def _write_all(file: BinaryIO, data: bytearray) -> None:
    """Write all bytes, since an unbuffered write may write only some of them."""
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]
