"""Blobs: files with the stored bytes of sources, whose names begin with the id of their source.

A blob is stored before its row in the database, so that no row is ever without its blob:

1. Bytes are received into a staging file (`store.files.staging`).
2. `StagedBlob.keep` renames the file, then syncs it and its folder.
3. The caller commits the row. If the process crashes before that, the next start moves the blob to the folder `aside`.
"""

import asyncio
import errno
import hashlib
import os
import stat
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from concurrent.futures import Executor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from svc_daemon.core import ids
from svc_daemon.data_directory import GONE, list_own, measure_disk
from svc_daemon.errors import StorageError, StoreUnavailable
from svc_daemon.paths import DataFiles, make_folder, sync_folder
from svc_daemon.store.files.contract import BlobFacts
from svc_daemon.store.files.removals import Removals
from svc_daemon.store.files.staging import StagedFile, Staging
from svc_daemon.store.files.syncing import FolderSync
from svc_daemon.wire.light.local_daemons import least_free_bytes

#: Number of bytes per read of a stream.
READ_BYTES = 256 * 1024


class Blobs(Staging):
    """The folder of blobs. Blocking work runs in `executor`."""

    def __init__(
        self,
        files: DataFiles,
        executor: Executor,
        random_name: Callable[[], str],
        on_broken: Callable[[OSError], None] = lambda _: None,
    ) -> None:
        """`on_broken` is called when an fsync of the folder fails. No blob can then be stored until a restart."""
        super().__init__(files.staging, executor, random_name)
        self._blobs = files.blobs
        self._damaged = files.damaged
        self._folder_sync = FolderSync(files.blobs, on_broken)
        self.removals = Removals(files.held)

    def stage(self) -> "StagedBlob":
        """Create a staged file. Nothing is written yet."""
        return StagedBlob(self)

    def path(self, name: str) -> Path:
        return self._blobs / ids.file_name(name, row="A stored file")

    def blob(self, name: str) -> "BlobFile":
        return BlobFile(self.path(name))

    async def delete(self, names: Sequence[str]) -> dict[str, Exception]:
        """Delete blobs durably. Idempotent. Returns the error of each blob that could not be deleted."""
        return await self.run(lambda: self._delete(names))

    async def drop(self, names: Sequence[str]) -> None:
        """Delete blobs that no source uses. Disk errors are logged, not raised."""
        self.removals.clear_away([self.path(name) for name in names])

    async def find_stored(self, source_ids: Collection[str]) -> set[str]:
        """Return which of these sources have a stored blob, even if the database has lost the source."""
        names = await asyncio.to_thread(self.list_ids)
        return {source_id for name in names if (source_id := ids.source_of(name)) in source_ids and source_id}

    def list_ids(self) -> list[str]:
        return list_own(self._blobs, ids.BLOB_NAME)

    async def move_damaged(self, name: str) -> None:
        await self.run(lambda: self._move_damaged(name))

    def has_room(self, reserve_bytes: int) -> bool:
        """Whether the free disk space exceeds the reserve. Always true if `reserve_bytes` is 0."""
        if not reserve_bytes:
            return True
        usage = measure_disk(self._blobs)
        return usage.free > least_free_bytes(reserve_bytes, usage.total)

    def sync_folder(self) -> None:
        """Make the names of all existing blobs durable. Blocking; raises OSError."""
        self._folder_sync.sync()

    def _move_damaged(self, name: str) -> None:
        make_folder(self._damaged)
        # A name that can't be a file's has no file.
        with suppress(FileNotFoundError, StorageError):
            self.path(name).replace(self._damaged / name)
            sync_folder(self._damaged)

    def _delete(self, names: Sequence[str]) -> dict[str, Exception]:
        paths, errors = [], dict[str, Exception]()
        for name in names:
            try:
                paths.append(self.path(name))
            except StorageError as error:
                errors[name] = error
        errors |= self.removals.remove(paths)
        # Make the deletions durable before the caller records that they are done.
        self.sync_folder()
        return errors


class StagedBlob(StagedFile):
    """The bytes of an upload. `keep` turns them into a blob by renaming their staging file."""

    def __init__(self, blobs: Blobs) -> None:
        super().__init__(blobs)
        self._blobs = blobs

    async def keep(self, name: str) -> None:
        try:
            await self._blobs.run(lambda: self._keep(name))
        except (StorageError, asyncio.CancelledError):
            await self._blobs.drop([name])
            await self.discard()
            raise

    def _keep(self, name: str) -> None:
        """Rename the file, then sync it. This order is safe because no row names the blob yet."""
        file = self._spill()
        self._path.rename(self._blobs.path(name))
        os.fsync(file.fileno())
        file.close()
        self._file = None
        self._blobs.sync_folder()


@dataclass(frozen=True, slots=True)
class BlobFile:
    """A blob in the data directory. A symbolic link counts as a lost blob."""

    path: Path

    async def find(self) -> BlobFacts | None:
        try:
            found = self._look()
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(found.st_mode):
            return None
        return BlobFacts(found.st_size, datetime.fromtimestamp(found.st_mtime, UTC))

    async def read(self, offset_bytes: int, most_bytes: int) -> bytes:
        # Read on this thread, because switching to another thread takes longer than a small read.
        descriptor = self._open()
        try:
            return os.pread(descriptor, most_bytes, offset_bytes)
        finally:
            os.close(descriptor)

    async def stream(self) -> AsyncIterator[bytes]:
        async with self.open_file() as descriptor:
            while data := await asyncio.to_thread(os.read, descriptor, READ_BYTES):
                yield data

    async def hash(self) -> str:
        async with self.open_file() as descriptor:
            return await asyncio.to_thread(_hash, descriptor)

    @asynccontextmanager
    async def open_file(self) -> AsyncIterator[int]:
        descriptor = self._open()
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _look(self) -> os.stat_result:
        try:
            return os.lstat(self.path)
        except FileNotFoundError as error:
            # Without their folder, all blobs would seem to be lost.
            if not self.path.parent.is_dir():
                raise StoreUnavailable(GONE) from error
            raise

    def _open(self) -> int:
        # Check the type first, because opening a named pipe would wait for a writer.
        if not stat.S_ISREG(self._look().st_mode):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.path.name)
        return os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)


def _hash(descriptor: int) -> str:
    with os.fdopen(descriptor, "rb", closefd=False) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
