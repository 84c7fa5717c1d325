"""Parts: the bytes of open upload sessions, one file each. The file's size is the upload offset.

- Bytes are synced to disk before they are acknowledged.
- `PackWriter` appends to one part, or to those of several files that come as one pack. The parts are written and closed
  one by one, then made durable by one `syncfs`. If there are few parts, or `syncfs` isn't safe here, each is fsynced.
- `Parts` remembers how many bytes of each file were synced. If a file has more bytes, for example because the disk was
  full, the file is synced before its size is acknowledged.
- When a session is finalized, a hard link makes its part a blob. The part is deleted after the source is committed.
"""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from svc_daemon.core import ids
from svc_daemon.core.uploads import packs
from svc_daemon.core.uploads.packs import PackItem
from svc_daemon.data_directory import hash_file, list_own
from svc_daemon.errors import StorageError
from svc_daemon.store.files import syncing
from svc_daemon.store.files.blobs import BlobFile, Blobs
from svc_daemon.store.files.staging import HEAD_BYTES
from svc_daemon.store.files.syncing import FolderSync

if TYPE_CHECKING:
    from hashlib import _Hash


#: With fewer files than this, each file is fsynced. One `syncfs` for all would also wait for other programs' data.
FEW_FILES = 8
#: Number of bytes to buffer before they are written.
WRITE_BYTES = 1024 * 1024


@dataclass(slots=True)
class _OpenPart:
    """The file of an upload session that is being appended to."""

    session_id: str
    descriptor: int
    end_bytes: int
    #: Hash of all bytes so far; None if unknown.
    hash: "_Hash | None"

    def append(self, data: memoryview) -> None:
        while data:
            # A write may be partial, because the file isn't buffered.
            written = data[: os.write(self.descriptor, data)]
            self.end_bytes += len(written)
            if self.hash is not None:
                self.hash.update(written)
            data = data[len(written) :]


class PackWriter:
    """Writes one stream of bytes to the parts of several files. The bytes are durable after `sync`.

    A thread writes and hashes the bytes. They are buffered, so that a small pack needs only one switch to that thread.
    """

    def __init__(self, parts: "Parts", items: Sequence[PackItem], first: int, end: int) -> None:
        """Prepare to write bytes `first` to `end` (exclusive) of the concatenated files.

        Before this, call `Parts.settle` for the parts of these files.
        """
        self._parts = parts
        self._items = items
        self._next = first
        lacking = [each for each in items if each.offset_bytes < end and each.offset_bytes + each.size_bytes > first]
        self._syncs_whole = len(lacking) >= FEW_FILES and syncing.is_syncable(parts.folder)
        #: Descriptor of the parts' folder, if one `syncfs` will sync all parts. Opened before the first write.
        self._folder: int | None = None
        self._buffer = bytearray()
        self._open: _OpenPart | None = None
        #: Parts that are written and closed. `sync` makes them durable and records their sizes.
        self._closed: list[_OpenPart] = []
        #: Size of each part before this stream. `drop` truncates the parts to these sizes.
        self._starts: dict[str, int] = {}

    async def append(self, data: bytes) -> None:
        self._buffer += data
        if len(self._buffer) >= WRITE_BYTES:
            await self._parts.run(self._write)

    async def sync(self) -> None:
        """Make all appended bytes durable."""

        def work() -> None:
            self._write()
            self._close_part()
            if self._folder is not None:
                with self._parts.discarding(*self._starts):
                    syncing.sync(self._folder)
            elif 0 in self._starts.values():
                # After a new part, fsync the folder too: otherwise, a power failure could lose the part's file name.
                self._parts.sync_folder()
            for part in self._closed:
                self._parts.note_synced(part.session_id, part.end_bytes, part.hash)

        if self._buffer or self._starts:
            await self._parts.run(work)

    async def drop(self) -> None:
        """Discard what this stream has appended."""

        def work() -> None:
            self._close_part()
            self._closed = []
            for session_id, start_bytes in self._starts.items():
                os.truncate(self._parts.path(session_id), start_bytes)
            self._starts = {}

        self._buffer = bytearray()
        if self._starts:
            await self._parts.run(work)

    def close(self) -> None:
        descriptors = [self._open.descriptor if self._open else None, self._folder]
        self._open = self._folder = None
        for descriptor in descriptors:
            if descriptor is not None:
                os.close(descriptor)

    def _write(self) -> None:
        data, self._buffer = self._buffer, bytearray()
        if self._syncs_whole and self._folder is None:
            # Opened before the first write, because `syncfs` doesn't report write errors from before its descriptor was
            # opened.
            self._folder = os.open(self._parts.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for item, lacking in packs.split(self._items, self._next, memoryview(data)):
            if self._open is None or self._open.session_id != item.session_id:
                self._close_part()
                descriptor = self._parts.open_file(item.session_id)
                self._starts[item.session_id] = item.held_bytes
                known = self._parts.hash_at(item.session_id, item.held_bytes)
                self._open = _OpenPart(item.session_id, descriptor, item.held_bytes, known)
            self._open.append(lacking)
        self._next += len(data)

    def _close_part(self) -> None:
        if self._open is None:
            return
        part, self._open = self._open, None
        try:
            if self._folder is None:
                with self._parts.discarding(part.session_id):
                    os.fsync(part.descriptor)
        finally:
            os.close(part.descriptor)
        self._closed.append(part)


class Parts:
    """The folder with the bytes of open upload sessions."""

    def __init__(self, folder: Path, blobs: Blobs, on_broken: Callable[[OSError], None] = lambda _: None) -> None:
        """`blobs` receives finished parts, and its threads run the blocking work."""
        self.folder = folder
        self._blobs = blobs
        self._on_broken = on_broken
        self._folder_sync = FolderSync(folder, on_broken)
        #: How many bytes of each part this process has synced to disk.
        self._synced: dict[str, int] = {}
        #: How many bytes of each part this process has hashed, with the hash.
        self._hashed: dict[str, tuple[int, _Hash]] = {}

    def size_bytes(self, session_id: str) -> int:
        """Return the number of stored bytes; 0 if there is no file."""
        try:
            # `Path.lstat` is slower, and each chunk calls this three times.
            return os.lstat(f"{self.folder}/{ids.file_name(session_id, row='A session')}").st_size
        except FileNotFoundError:
            return 0

    async def measure(self, *session_ids: str) -> list[int]:
        """Return each part's number of stored bytes, which may not be durable."""
        return [self.size_bytes(session_id) for session_id in session_ids]

    async def settle(self, *session_ids: str) -> list[int]:
        """Make the stored bytes of each part durable, and return their sizes."""
        sizes = [self.size_bytes(session_id) for session_id in session_ids]
        found = zip(session_ids, sizes, strict=True)
        unsynced = [(each, size) for each, size in found if size != self._synced.get(each, 0)]
        if unsynced:
            await self._blobs.run(lambda: self._settle(unsynced))
        return sizes

    async def hash(self, session_id: str, size_bytes: int) -> str:
        """Return the hexadecimal SHA-256 of the stored bytes. Reads the file only if the hash isn't known."""
        known = self.hash_at(session_id, size_bytes)
        if known is None:
            known = await self._blobs.run(lambda: hash_file(self.path(session_id)))
            self.remember(session_id, size_bytes, known)
        return known.hexdigest()

    async def head(self, session_id: str) -> bytes:
        """Return the first bytes, from which the media type is guessed."""
        return await self._blobs.run(lambda: _head(self.path(session_id)))

    def stream(self, session_id: str) -> AsyncIterator[bytes]:
        return BlobFile(self.path(session_id)).stream()

    async def link(self, sources: Mapping[str, str], hashes: Mapping[str, str]) -> dict[str, bytes]:  # noqa: ARG002
        """Turn parts into blobs by durable hard links, and return the first bytes of each by session id.

        `sources` maps session ids to source ids. On failure or cancellation, the blobs are deleted.
        """
        await self.settle(*sources)
        try:
            return await self._blobs.run(lambda: self._link(sources))
        except (StorageError, asyncio.CancelledError):
            await self._blobs.drop(list(sources.values()))
            raise

    async def delete(self, *session_ids: str) -> None:
        """Delete the stored bytes. If a file can't be deleted now, the next start deletes it."""

        def work() -> None:
            for session_id in session_ids:
                self._synced.pop(session_id, None)
                self._hashed.pop(session_id, None)
            self._blobs.removals.clear_away([self.path(each) for each in session_ids])

        await self._blobs.run(work)

    def writer(self, items: Sequence[PackItem], first: int, end: int) -> PackWriter:
        return PackWriter(self, items, first, end)

    def list_ids(self) -> list[str]:
        return list_own(self.folder, ids.PART_NAME)

    async def run(self, work: Callable[[], object]) -> None:
        """Run blocking work in a thread. Raises StorageError for OSError."""
        await self._blobs.run(work)

    @contextmanager
    def discarding(self, *session_ids: str) -> Iterator[None]:
        """If an fsync in the block fails, truncate these parts to their acknowledged bytes and call `on_broken`.

        The fsync isn't tried again, since it could report success although the kernel has dropped the bytes.
        """
        try:
            yield
        except OSError as error:
            self._on_broken(error)
            for session_id in session_ids:
                with suppress(OSError):
                    os.truncate(self.path(session_id), self._synced.get(session_id, 0))
            raise

    def sync_folder(self) -> None:
        """Make the names of all parts durable. Blocking; raises OSError."""
        self._folder_sync.sync()

    def note_synced(self, session_id: str, size_bytes: int, known: "_Hash | None") -> None:
        """Record that the part's first `size_bytes` bytes are durable. `known` is their hash, or None."""
        self._synced[session_id] = size_bytes
        if known is not None:
            self.remember(session_id, size_bytes, known)

    def remember(self, session_id: str, size_bytes: int, known: "_Hash") -> None:
        """Remember the hash of the part's first `size_bytes` bytes."""
        self._hashed[session_id] = size_bytes, known

    def hash_at(self, session_id: str, size_bytes: int) -> "_Hash | None":
        """Return a copy of the hash of the first `size_bytes` bytes, or None if unknown."""
        if size_bytes == 0:
            return hashlib.sha256()
        hashed_bytes, known = self._hashed.get(session_id, (0, None))
        return known.copy() if known is not None and hashed_bytes == size_bytes else None

    def _settle(self, unsynced: Sequence[tuple[str, int]]) -> None:
        for session_id, size_bytes in unsynced:
            descriptor = os.open(self.path(session_id), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                with self.discarding(session_id):
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
            if session_id not in self._synced:
                # The part is new: without a sync of the folder, the file's name could be lost in a power failure.
                self.sync_folder()
            self._synced[session_id] = size_bytes

    def _link(self, sources: Mapping[str, str]) -> dict[str, bytes]:
        heads = {}
        for session_id, source_id in sources.items():
            heads[session_id] = _head(self.path(session_id))
            os.link(self.path(session_id), self._blobs.path(source_id))
        if sources:
            self._blobs.sync_folder()
        return heads

    def path(self, session_id: str) -> Path:
        return self.folder / ids.file_name(session_id, row="A session")

    def open_file(self, session_id: str) -> int:
        """Open the part for appending, and return its descriptor. Blocking; raises OSError."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(self.path(session_id), flags, 0o600)


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(HEAD_BYTES)
