"""Appends bytes to the parts of upload sessions: to one, or to those of several files that come as one pack.

The parts are written and closed one by one, then made durable by one `syncfs`. If there are few parts, or
`syncfs` isn't safe here, each part is fsynced instead. Then `Parts` records how many bytes of each part are durable.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from svc_daemon.core.uploads import batches as rules
from svc_daemon.core.uploads.batches import PackItem
from svc_daemon.store.files import blobs

if TYPE_CHECKING:
    from hashlib import _Hash

    from svc_daemon.store.files.parts import Parts

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
        self._syncs_whole = len(lacking) >= FEW_FILES and blobs.is_syncable(parts.folder)
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
                    blobs.sync(self._folder)
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
        for item, lacking in rules.split(self._items, self._next, memoryview(data)):
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
