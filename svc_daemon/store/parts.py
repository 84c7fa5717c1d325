"""Parts: the bytes of open upload sessions, one file each. The size on the disk is the offset.

What was acknowledged was synced before. A kill leaves bytes behind that nobody synced, and a full disk does; so each
part's synced size is remembered, and a part of another size is synced before anything is said of it. A finished part
becomes a blob by a second name: the session keeps its bytes until the source is committed, so that a kill in between
loses nothing.
"""

import asyncio
import hashlib
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from svc_daemon.errors import StorageError
from svc_daemon.store.blobs import HEAD_BYTES, Blobs, FolderSync

log = logging.getLogger(__name__)

#: Bytes gathered before they are written in one go.
WRITE_BYTES = 1024 * 1024


class Parts:
    """The folder of unfinished uploads."""

    def __init__(self, folder: Path, blobs: Blobs, on_broken: Callable[[OSError], None] = lambda _: None) -> None:
        """`blobs` is where finished parts go, and whose threads do the blocking work."""
        self._folder = folder
        self._blobs = blobs
        self._on_broken = on_broken
        self._folder_sync = FolderSync(folder, on_broken)
        #: Bytes of each part that this process has synced.
        self._synced: dict[str, int] = {}

    def size_bytes(self, session_id: str) -> int:
        """How many bytes are stored; 0 before the first."""
        try:
            return self._path(session_id).stat().st_size
        except FileNotFoundError:
            return 0

    async def settle(self, session_id: str) -> None:
        """Make durable what is stored, so that it may be acknowledged; costs nothing where it is."""
        size_bytes = self.size_bytes(session_id)
        if size_bytes != self._synced.get(session_id, 0):
            await self._blobs.run(lambda: self._settle(session_id, size_bytes))

    async def head(self, session_id: str) -> bytes:
        """The first bytes, for sniffing."""
        return await self._blobs.run(lambda: _head(self._path(session_id)))

    async def open(self, session_id: str) -> "PartWriter":
        """A writer at the stored end; the caller sees to it that there is only one at a time."""
        await self.settle(session_id)
        return PartWriter(self, session_id, await self._blobs.run(lambda: self._open(session_id)))

    async def hash(self, session_id: str) -> str:
        """SHA-256 of the stored bytes, hex."""
        return await self._blobs.run(lambda: _hash(self._path(session_id)))

    async def link(self, session_id: str, source_id: str) -> None:
        """Give the bytes the name of a blob too, durably; failed or cancelled, there is no such blob."""
        await self.settle(session_id)
        try:
            await self._blobs.run(lambda: self._link(session_id, source_id))
        except (StorageError, asyncio.CancelledError):
            self._blobs.delete(source_id)
            raise

    async def delete(self, *session_ids: str) -> None:
        """Idempotent. What the disk refuses to remove has no owner, and goes with the next start."""

        def work() -> None:
            for session_id in session_ids:
                self._delete(session_id)

        await self._blobs.run(work)

    def list_ids(self) -> Iterator[str]:
        """The names of all files; folders are none of ours."""
        with os.scandir(self._folder) as entries:
            yield from (entry.name for entry in entries if not entry.is_dir(follow_symlinks=False))

    async def run(self, work: Callable[[], None]) -> None:
        """Run blocking work on a part; raises StorageError where the disk refuses."""
        await self._blobs.run(work)

    def sync(self, session_id: str, descriptor: int, size_bytes: int) -> None:
        """Sync the part's bytes, and its name where it is new. Blocking; raises OSError.

        A failed sync is not tried again: the kernel may have dropped what it could not write, and would say yes. The
        end of the part that nobody acknowledged goes, and the owner hears of it.
        """
        acknowledged_bytes = self._synced.get(session_id, 0)
        try:
            os.fsync(descriptor)
        except OSError as error:
            os.truncate(self._path(session_id), acknowledged_bytes)
            self._on_broken(error)
            raise
        if session_id not in self._synced:
            # Without this a power cut may forget the file's name.
            self._folder_sync.sync()
        self._synced[session_id] = size_bytes

    def _settle(self, session_id: str, size_bytes: int) -> None:
        descriptor = os.open(self._path(session_id), os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.sync(session_id, descriptor, size_bytes)
        finally:
            os.close(descriptor)

    def _link(self, session_id: str, source_id: str) -> None:
        os.link(self._path(session_id), self._blobs.path(source_id))
        self._blobs.sync_folder()

    def _delete(self, session_id: str) -> None:
        self._synced.pop(session_id, None)
        try:
            self._path(session_id).unlink(missing_ok=True)
        except OSError as error:
            log.warning("the bytes of %s could not be removed: %s", session_id, error)

    def _path(self, session_id: str) -> Path:
        return self._folder / session_id

    def _open(self, session_id: str) -> int:
        return os.open(self._path(session_id), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


class PartWriter:
    """Appends to one part. Bytes count once `sync` has returned; without it they may be lost."""

    def __init__(self, parts: Parts, session_id: str, descriptor: int) -> None:
        self._parts = parts
        self._session_id = session_id
        self._descriptor = descriptor
        self._buffer = bytearray()
        self.start_bytes = os.fstat(descriptor).st_size
        #: Of everything appended; the hash of the file when the writer began at 0.
        self.hash = hashlib.sha256()
        self.appended_bytes = 0

    async def append(self, data: bytes) -> None:
        self._buffer += data
        self.hash.update(data)
        self.appended_bytes += len(data)
        if len(self._buffer) >= WRITE_BYTES:
            await self._parts.run(self._flush)

    async def sync(self) -> int:
        """Make what was appended durable; the bytes stored then."""
        await self._parts.run(self._sync)
        return self.start_bytes + self.appended_bytes

    async def drop(self) -> None:
        """Forget what was appended: nobody was told of it."""
        self._buffer.clear()
        self.appended_bytes = 0
        await self._parts.run(lambda: os.ftruncate(self._descriptor, self.start_bytes))

    def close(self) -> None:
        os.close(self._descriptor)

    def _sync(self) -> None:
        if self.appended_bytes:
            self._flush()
            self._parts.sync(self._session_id, self._descriptor, self.start_bytes + self.appended_bytes)

    def _flush(self) -> None:
        # An unbuffered write may take a part only.
        while self._buffer:
            del self._buffer[: os.write(self._descriptor, self._buffer)]


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(HEAD_BYTES)


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
