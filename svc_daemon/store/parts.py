"""Parts: the bytes of open upload sessions, one file each. The size on the disk is the offset.

Bytes are synced before they are acknowledged. A kill or a full disk may leave bytes that were not synced; so each
part's synced size is remembered, and a part of another size is synced before its size is reported. A finished part
becomes a blob by a hard link: the session keeps its bytes until the source is committed, so that a kill in between
loses nothing.
"""

import asyncio
import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from svc_daemon.core import ids
from svc_daemon.directories import list_own
from svc_daemon.errors import StorageError
from svc_daemon.store.blobs import HEAD_BYTES, Blobs, FolderSync, clear_away

if TYPE_CHECKING:
    from hashlib import _Hash

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
        #: The hash so far of parts that this process received, with the number of hashed bytes, to avoid reading them
        #: again.
        self._hashed: dict[str, tuple[int, _Hash]] = {}

    def size_bytes(self, session_id: str) -> int:
        """How many bytes are stored; 0 before the first."""
        try:
            return os.lstat(f"{self._folder}/{session_id}").st_size  # called three times per chunk; a Path is slower
        except FileNotFoundError:
            return 0

    async def settle(self, session_id: str) -> None:
        """Make the stored bytes durable, so that they may be acknowledged; does nothing if they are."""
        size_bytes = self.size_bytes(session_id)
        if size_bytes != self._synced.get(session_id, 0):
            await self._blobs.run(lambda: self._settle(session_id, size_bytes))

    async def open(self, session_id: str) -> "PartWriter":
        """A writer at the stored end; the caller must allow only one at a time."""
        await self.settle(session_id)
        start_bytes = self.size_bytes(session_id)
        return PartWriter(self, session_id, start_bytes, self._hash_at(session_id, start_bytes))

    async def hash(self, session_id: str) -> str:
        """SHA-256 of the stored bytes, hex; read again only where they did not come through this process."""
        size_bytes = self.size_bytes(session_id)
        known = self._hash_at(session_id, size_bytes)
        if known is None:
            known = await self._blobs.run(lambda: _hash(self.path(session_id)))
            self.remember(session_id, size_bytes, known)
        return known.hexdigest()

    async def head(self, session_id: str) -> bytes:
        """The beginning of the bytes, for sniffing."""
        return await self._blobs.run(lambda: _head(self.path(session_id)))

    async def link(self, session_id: str, source_id: str) -> bytes:
        """Link the bytes as a blob, durably; returns their beginning, for sniffing.

        Failed or cancelled, there is no such blob.
        """
        await self.settle(session_id)
        try:
            return await self._blobs.run(lambda: self._link(session_id, source_id))
        except (StorageError, asyncio.CancelledError):
            self._blobs.drop(source_id)
            raise

    async def delete(self, *session_ids: str) -> None:
        """Delete the bytes. Idempotent; a file that can't be removed is left to the next start."""

        def work() -> None:
            for session_id in session_ids:
                self._synced.pop(session_id, None)
                self._hashed.pop(session_id, None)
                clear_away(self.path(session_id))

        await self._blobs.run(work)

    def list_ids(self) -> list[str]:
        return list_own(self._folder, ids.PART_NAME)

    async def run(self, work: Callable[[], object]) -> None:
        """Run blocking work on a part; raises StorageError where the disk refuses."""
        await self._blobs.run(work)

    def sync(self, session_id: str, descriptor: int, size_bytes: int) -> None:
        """Sync the part's bytes, and its name where it is new. Blocking; raises OSError.

        A failed sync is not tried again: the kernel may have dropped what it could not write, and would report success.
        The unacknowledged end of the part is cut off, and `on_broken` is called.
        """
        acknowledged_bytes = self._synced.get(session_id, 0)
        try:
            os.fsync(descriptor)
        except OSError as error:
            self._on_broken(error)
            with suppress(OSError):
                os.truncate(self.path(session_id), acknowledged_bytes)
            raise
        if session_id not in self._synced:
            # Without this a power cut may forget the file's name.
            self._folder_sync.sync()
        self._synced[session_id] = size_bytes

    def remember(self, session_id: str, size_bytes: int, known: "_Hash") -> None:
        """Keep the hash of the part's first bytes, which never change."""
        self._hashed[session_id] = size_bytes, known

    def _hash_at(self, session_id: str, size_bytes: int) -> "_Hash | None":
        """The hash of so many bytes, to go on with; None where this process has not seen them."""
        if size_bytes == 0:
            return hashlib.sha256()
        hashed_bytes, known = self._hashed.get(session_id, (0, None))
        return known.copy() if known is not None and hashed_bytes == size_bytes else None

    def _settle(self, session_id: str, size_bytes: int) -> None:
        descriptor = os.open(self.path(session_id), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            self.sync(session_id, descriptor, size_bytes)
        finally:
            os.close(descriptor)

    def _link(self, session_id: str, source_id: str) -> bytes:
        head = _head(self.path(session_id))
        os.link(self.path(session_id), self._blobs.path(source_id))
        self._blobs.sync_folder()
        return head

    def path(self, session_id: str) -> Path:
        return self._folder / session_id

    def open_file(self, session_id: str) -> int:
        """A descriptor that appends. Blocking; raises OSError."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(self.path(session_id), flags, 0o600)


class PartWriter:
    """Appends to one part. Bytes count once `sync` has returned; without it they may be lost.

    The file is opened with the first bytes, so that a small chunk needs only one change of thread.
    """

    def __init__(self, parts: Parts, session_id: str, start_bytes: int, known: "_Hash | None") -> None:
        """`known` is the hash of the bytes before `start_bytes`, if anybody knows it."""
        self._parts = parts
        self._session_id = session_id
        self._descriptor: int | None = None
        self._buffer = bytearray()
        self.start_bytes = start_bytes
        self.appended_bytes = 0
        self._hash = known

    async def append(self, data: bytes) -> None:
        self._buffer += data
        if self._hash is not None:
            self._hash.update(data)
        self.appended_bytes += len(data)
        if len(self._buffer) >= WRITE_BYTES:
            await self._parts.run(self._flush)

    async def sync(self) -> int:
        """Make what was appended durable; the bytes stored then."""
        if self.appended_bytes:
            await self._parts.run(self._sync)
        return self.start_bytes + self.appended_bytes

    async def drop(self) -> None:
        """Forget what was appended: it was never acknowledged."""
        self._buffer.clear()
        self.appended_bytes = 0
        self._hash = None
        if self._descriptor is not None:
            descriptor = self._descriptor
            await self._parts.run(lambda: os.ftruncate(descriptor, self.start_bytes))

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _sync(self) -> None:
        stored_bytes = self.start_bytes + self.appended_bytes
        self._parts.sync(self._session_id, self._flush(), stored_bytes)
        if self._hash is not None:
            self._parts.remember(self._session_id, stored_bytes, self._hash)

    def _flush(self) -> int:
        """Write what was gathered; the file's descriptor."""
        if self._descriptor is None:
            self._descriptor = self._parts.open_file(self._session_id)
        # An unbuffered write may take a part only.
        while self._buffer:
            del self._buffer[: os.write(self._descriptor, self._buffer)]
        return self._descriptor


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(HEAD_BYTES)


def _hash(path: Path) -> "_Hash":
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256")
