"""Blobs: the stored bytes of each source, one file named by the source's id, or by one of its own after a refresh.

The durable order. Bytes gather in memory, and from `SPILL_BYTES` on in a staging file inside the data directory. `keep`
writes the rest, gives the file its name, syncs the file and then the folder; only then may the row be committed. After
a kill before the commit, the next start finds a blob without a row, and moves it aside; there is never a row without
its blob.

Folder syncs are shared: all that wait while one runs are served by the next.
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
from svc_daemon.directories import list_own
from svc_daemon.errors import StorageError
from svc_daemon.paths import DataFiles

log = logging.getLogger(__name__)

T = TypeVar("T")

#: A smaller file is written at once, after all of it has been checked.
SPILL_BYTES = 1024 * 1024
#: The names of staging files.
STAGED_NAME = re.compile("[0-9a-f]{32}")
#: The first bytes, kept for sniffing the media type.
HEAD_BYTES = 8192


def clear_away(path: Path) -> None:
    """Remove a file without an owner, during other work; errors of the disk are ignored.

    The next start finds what was left.
    """
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        log.warning("%s could not be removed: %s", path.name, error.strerror)


class FolderSync:
    """One fsync of a folder for all callers that asked before it began.

    A failed one is not tried again: the kernel may have dropped what it could not write, and would then report
    success for renames that are lost. All calls raise the error until the process is restarted.
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
        # If this fails, for example without free descriptors, the disk was not involved.
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
    """The folder of stored bytes. Blocking parts run in `executor`, so that fsyncs overlap."""

    def __init__(
        self,
        files: DataFiles,
        executor: Executor,
        random_name: Callable[[], str],
        on_broken: Callable[[OSError], None] = lambda _: None,
    ) -> None:
        """`on_broken` is called when the folder can't be synced: nothing can be kept until a restart."""
        self._blobs = files.blobs
        self._staging = files.staging
        self._damaged = files.damaged
        self._executor = executor
        self._random_name = random_name
        self._folder_sync = FolderSync(files.blobs, on_broken)

    def stage(self) -> "StagedFile":
        """A new staging file."""
        return StagedFile(self, self._staging / self._random_name())

    def path(self, source_id: str) -> Path:
        return self._blobs / source_id

    def find(self, source_id: str) -> Path | None:
        """The path of the stored bytes; None if there are none. Links are ignored, since they are never stored."""
        path = self.path(source_id)
        return path if path.is_file() and not path.is_symlink() else None

    def delete(self, source_id: str) -> None:
        """Idempotent: a blob that is gone already is no error."""
        self.path(source_id).unlink(missing_ok=True)

    def drop(self, source_id: str) -> None:
        """Remove a blob that no row owns; never fails."""
        clear_away(self.path(source_id))

    def list_ids(self) -> list[str]:
        return list_own(self._blobs, ids.BLOB_NAME)

    def list_staged(self) -> list[str]:
        """The names of staging files; while no upload is running, they are leftovers."""
        return list_own(self._staging, STAGED_NAME)

    def delete_staged(self, name: str) -> None:
        """Delete a staging file, without following links. Idempotent."""
        if not self._staging.is_symlink():
            (self._staging / name).unlink(missing_ok=True)

    def clear_staging(self) -> int:
        """Remove the files that a killed process left half-written; only at boot, when nobody stages."""
        leftovers = [] if self._staging.is_symlink() else self.list_staged()
        for leftover in leftovers:
            self.delete_staged(leftover)
        return len(leftovers)

    def move_damaged(self, name: str) -> None:
        """Move damaged bytes out of use without deleting them. Idempotent."""
        self._damaged.mkdir(mode=0o700, exist_ok=True)
        with suppress(FileNotFoundError):
            self.path(name).replace(self._damaged / name)

    def has_room(self, reserve_bytes: int) -> bool:
        """Whether more disk is free than the reserve: these bytes, or 2 % of the disk, at most 1 GB; 0 turns it off."""
        if not reserve_bytes:
            return True
        usage = shutil.disk_usage(self._blobs)
        return usage.free > max(reserve_bytes, min(usage.total // 50, 1024**3))

    def try_room(self, size_bytes: int) -> None:
        """Write this many bytes and remove them again; raises OSError if the disk refuses them."""
        path = self._staging / self._random_name()
        try:
            with path.open("xb", buffering=0) as file:
                _write_all(file, bytearray(size_bytes))
        finally:
            path.unlink(missing_ok=True)

    async def run(self, work: Callable[[], T]) -> T:
        """Run blocking disk work in the executor; a disk that refuses is a StorageError.

        A cancelled caller still waits for the end of the work, so that nothing is removed while a thread writes it.
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
        """Return when the names of all present blobs are durable."""
        self._folder_sync.sync()


class StagedFile:
    """The bytes of an upload: counted and hashed as they arrive, then kept under a source's name or discarded."""

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
        """Take the next bytes; raises StorageError when the disk refuses."""
        if len(self.head) < HEAD_BYTES:
            self.head += data[: HEAD_BYTES - len(self.head)]
        self.size_bytes += len(data)
        self._hash.update(data)
        self._buffer += data
        if len(self._buffer) >= SPILL_BYTES:
            await self._blobs.run(self._spill)

    async def read(self, offset_bytes: int, most_bytes: int) -> bytes:
        """At most this many of the bytes that have arrived, from the offset on; raises StorageError."""
        if self._file is None:
            return bytes(self._buffer[offset_bytes : offset_bytes + most_bytes])
        return await self._blobs.run(lambda: self._read(offset_bytes, most_bytes))

    async def keep(self, source_id: str) -> None:
        """Make the bytes durable under the source's id; after a failure or cancellation nothing is left of them."""
        try:
            await self._blobs.run(lambda: self._keep(source_id))
        except (StorageError, asyncio.CancelledError):
            self._blobs.drop(source_id)
            await self.discard()
            raise

    async def discard(self) -> None:
        """Forget the bytes. Idempotent, and never fails."""
        # A new buffer, since a failed write may still use the old one, which then can't be emptied.
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
        """Renamed before the sync, which then includes the rename; no row names the file yet."""
        self._spill()
        if self._file is None:
            raise AssertionError("spilling opens the file")
        self._path.rename(self._blobs.path(source_id))
        os.fsync(self._file.fileno())
        self._file.close()
        self._file = None
        self._blobs.sync_folder()


def _write_all(file: BinaryIO, data: bytearray) -> None:
    """Write all bytes, since an unbuffered write may write only a part."""
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]
