"""Packs: the stored state of a batch's sessions, and a writer that splits one stream among their parts.

A small part costs an open, a write and a close; its sync is shared with all the others by one `syncfs`. Where that
isn't safe (`file_systems`), and for a few parts, each file is fsynced before it is closed, and the folder at the end.
Either way, `_synced` and `_hashed` of `Parts` change only afterwards.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection
from typing import TYPE_CHECKING

from svc_daemon.core.uploads import packs as rules
from svc_daemon.core.uploads.packs import PackItem
from svc_daemon.store import file_systems
from svc_daemon.store.parts import WRITE_BYTES, Parts

if TYPE_CHECKING:
    from hashlib import _Hash

#: Fewer files than this are fsynced one by one: a `syncfs` also waits for what other programs have written.
FEW_FILES = 8


@dataclass(frozen=True, slots=True)
class PackMember:
    """What a pack needs to know of one of its sessions."""

    id: str
    #: As in `store.uploads`.
    status: str
    generation: int
    size_bytes: int
    expires_at: str


def list_members(connection: Connection, batch_id: str) -> list[PackMember]:
    """List the sessions of a batch in the order of its manifest."""
    rows = connection.execute(
        "SELECT id, status, generation, size_bytes, expires_at FROM uploads WHERE batch_id = :batch_id"
        " ORDER BY position",
        {"batch_id": batch_id},
    ).fetchall()
    return [PackMember(*row) for row in rows]


@dataclass(slots=True)
class _OpenPart:
    """The part that bytes are being appended to."""

    session_id: str
    descriptor: int
    end_bytes: int
    #: The hash of all its bytes, or None if that of its first bytes isn't known.
    hash: "_Hash | None"

    def append(self, data: memoryview) -> None:
        while data:
            # An unbuffered write may write only some of the bytes.
            written = data[: os.write(self.descriptor, data)]
            self.end_bytes += len(written)
            if self.hash is not None:
                self.hash.update(written)
            data = data[len(written) :]


class PackWriter:
    """Appends a stream to the parts of a pack in turn. Bytes are durable once `sync` has returned.

    The bytes are collected, and a thread writes and hashes them, so that a small pack needs one switch to it.
    """

    def __init__(self, parts: Parts, items: Sequence[PackItem], first: int, end: int) -> None:
        """The stream begins at the pack's byte `first` and ends before `end`. All stored bytes must be settled."""
        self._parts = parts
        self._items = items
        self._next = first
        lacking = [each for each in items if each.offset_bytes < end and each.offset_bytes + each.size_bytes > first]
        self._syncs_whole = len(lacking) >= FEW_FILES and file_systems.is_syncable(parts.folder)
        #: The folder, opened before the first write; None before that, and if each file is synced by itself.
        self._folder: int | None = None
        self._buffer = bytearray()
        self._open: _OpenPart | None = None
        #: The parts that were closed, and are durable after the sync.
        self._closed: list[_OpenPart] = []
        #: Where each part ended before.
        self._starts: dict[str, int] = {}

    async def append(self, data: bytes) -> None:
        self._buffer += data
        if len(self._buffer) >= WRITE_BYTES:
            await self._parts.run(self._write)

    async def sync(self) -> None:
        """Make all appended bytes durable."""
        if self._buffer or self._starts:
            await self._parts.run(self._sync)

    async def drop(self) -> None:
        """Discard the appended bytes, which were never acknowledged."""
        self._buffer = bytearray()
        if self._starts:
            await self._parts.run(self._truncate)

    def close(self) -> None:
        descriptors = [self._open.descriptor if self._open else None, self._folder]
        self._open = self._folder = None
        for descriptor in descriptors:
            if descriptor is not None:
                os.close(descriptor)

    def _write(self) -> None:
        data, self._buffer = self._buffer, bytearray()
        if self._syncs_whole and self._folder is None:
            # A descriptor that is opened later would not report the errors of earlier writes.
            self._folder = os.open(self._parts.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for item, lacking in rules.split(self._items, self._next, memoryview(data)):
            self._turn_to(item).append(lacking)
        self._next += len(data)

    def _turn_to(self, item: PackItem) -> _OpenPart:
        if self._open is not None and self._open.session_id == item.session_id:
            return self._open
        self._close_part()
        descriptor = self._parts.open_file(item.session_id)
        self._starts[item.session_id] = item.held_bytes
        known = self._parts.hash_at(item.session_id, item.held_bytes)
        self._open = _OpenPart(item.session_id, descriptor, item.held_bytes, known)
        return self._open

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

    def _sync(self) -> None:
        self._write()
        self._close_part()
        if self._folder is None:
            self._parts.sync_folder()
        else:
            with self._parts.discarding(*self._starts):
                file_systems.sync(self._folder)
        for part in self._closed:
            self._parts.note_synced(part.session_id, part.end_bytes, part.hash)

    def _truncate(self) -> None:
        self._close_part()
        self._closed = []
        for session_id, start_bytes in self._starts.items():
            os.truncate(self._parts.path(session_id), start_bytes)
        self._starts = {}
