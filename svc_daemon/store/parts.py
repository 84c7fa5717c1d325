"""Parts: the bytes of open upload sessions, one file each. The size on the disk is the offset.

What was acknowledged is synced before it was acknowledged. A finished part becomes a blob by a second name: the session
keeps its bytes until the source is committed, so that a kill in between loses nothing.
"""

import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from svc_daemon.store.blobs import HEAD_BYTES, Blobs, FolderSync

#: Bytes gathered before they are written in one go.
WRITE_BYTES = 1024 * 1024


class Parts:
    """The folder of unfinished uploads."""

    def __init__(self, folder: Path, blobs: Blobs, on_broken: Callable[[OSError], None] = lambda _: None) -> None:
        """`blobs` is where finished parts go, and whose threads do the blocking work."""
        self._folder = folder
        self._blobs = blobs
        self._folder_sync = FolderSync(folder, on_broken)

    def size_bytes(self, session_id: str) -> int:
        """How many bytes are stored; 0 before the first."""
        try:
            return self._path(session_id).stat().st_size
        except FileNotFoundError:
            return 0

    async def head(self, session_id: str) -> bytes:
        """The first bytes, for sniffing."""
        return await self._blobs.run(lambda: _head(self._path(session_id)))

    async def open(self, session_id: str) -> "PartWriter":
        """A writer at the stored end; the caller sees to it that there is only one at a time."""
        return PartWriter(self, self._path(session_id), await self._blobs.run(lambda: self._open(session_id)))

    async def hash(self, session_id: str) -> str:
        """SHA-256 of the stored bytes, hex."""
        return await self._blobs.run(lambda: _hash(self._path(session_id)))

    async def link(self, session_id: str, source_id: str) -> None:
        """Give the bytes the name of a blob too, durably."""

        def work() -> None:
            os.link(self._path(session_id), self._blobs.path(source_id))
            self._blobs.sync_folder()

        await self._blobs.run(work)

    def delete(self, session_id: str) -> None:
        """Idempotent."""
        self._path(session_id).unlink(missing_ok=True)

    def list_ids(self) -> Iterator[str]:
        with os.scandir(self._folder) as entries:
            for entry in entries:
                yield entry.name

    async def run(self, work: Callable[[], None]) -> None:
        await self._blobs.run(work)

    def sync_folder(self) -> None:
        self._folder_sync.sync()

    def _path(self, session_id: str) -> Path:
        return self._folder / session_id

    def _open(self, session_id: str) -> int:
        return os.open(self._path(session_id), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


class PartWriter:
    """Appends to one part. Bytes count once `sync` has returned; without it they may be lost."""

    def __init__(self, parts: Parts, path: Path, descriptor: int) -> None:
        self._parts = parts
        self._path = path
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

        def work() -> None:
            self._flush()
            os.fsync(self._descriptor)
            if self.start_bytes == 0:
                # The file is new in its folder: without this a power cut may forget its name.
                self._parts.sync_folder()

        await self._parts.run(work)
        return self.start_bytes + self.appended_bytes

    def close(self) -> None:
        os.close(self._descriptor)

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
