"""Stores the bytes of open upload sessions in S3, each session as a chain of objects.

Each request stores its bytes as objects, whose names contain offset and size. So any node finds the received bytes by
listing the objects. A chain is the objects from the first byte on, in order and without a gap. If objects overlap,
because a client has sent a range again, the chain takes each byte once.

To finalize a session, a node reads its objects and stores their bytes as one blob. The objects are deleted after the
source is committed. Objects whose deletion fails are deleted once they are old.
"""

import asyncio
import hashlib
import logging
import re
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from svc_daemon.cluster.s3.blobs import ObjectBlobs
from svc_daemon.cluster.s3.clients import ListedObject
from svc_daemon.core import ids
from svc_daemon.core.uploads import packs
from svc_daemon.core.uploads.packs import PackItem
from svc_daemon.errors import StorageError
from svc_daemon.store.files.contract import gather
from svc_daemon.store.files.staging import HEAD_BYTES

if TYPE_CHECKING:
    from hashlib import _Hash


_NAME = re.compile(r"(\d{15})-(\d{15})-([0-9a-f]{32})(?:-([0-9a-f]{64}))?")


@dataclass(frozen=True, slots=True)
class PartObject:
    """An object in the object store with some bytes of an upload session."""

    #: Name of the object, unique within its session.
    name: str
    #: Offset of the object's first byte in the file.
    first: int
    size_bytes: int
    #: SHA-256 in hex, known only for an object that begins with the file's first byte.
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """An object of a chain, and how many of its first bytes are also in earlier objects."""

    part: PartObject
    skip_bytes: int


@dataclass(frozen=True, slots=True)
class Chain:
    """The objects with the received bytes, in order and without a gap."""

    links: tuple[Link, ...] = ()

    @property
    def size_bytes(self) -> int:
        return self.links[-1].part.first + self.links[-1].part.size_bytes if self.links else 0

    @property
    def sha256(self) -> str | None:
        """Return the SHA-256 of all bytes, if it is known without reading them."""
        return self.links[0].part.sha256 if len(self.links) == 1 else None

    def followed_by(self, part: PartObject) -> "Chain":
        """Return the chain with `part` added. The part must begin at the end of the chain or earlier."""
        return Chain((*self.links, Link(part, self.size_bytes - part.first)))


def object_name(first: int, size_bytes: int, nonce: str, sha256: str | None) -> str:
    """Build the name of an object; names sort by offset. `nonce` is 32 random hex digits."""
    known = "" if sha256 is None else f"-{sha256}"
    return f"{first:015d}-{size_bytes:015d}-{nonce}{known}"


def parse_object(name: str) -> PartObject | None:
    """Parse the name of an object; None if it has another format."""
    match = _NAME.fullmatch(name)
    return PartObject(name, int(match[1]), int(match[2]), match[4]) if match else None


def chain_of(parts: Iterable[PartObject]) -> Chain:
    """Build the chain of these objects. Of objects with the same offset, use the largest."""
    chain = Chain()
    for part in sorted(parts, key=lambda part: (part.first, -part.size_bytes, part.name)):
        if part.first > chain.size_bytes:
            break
        if part.first + part.size_bytes > chain.size_bytes:
            chain = chain.followed_by(part)
    return chain


log = logging.getLogger(__name__)

FOLDER = "parts"
#: A writer stores an object whenever it has received about this many bytes. The blob of a larger upload is stored as a
#: stream, not read into memory first.
OBJECT_BYTES = 8 * 1024 * 1024
#: More bytes than this are hashed in a thread. For fewer, switching to a thread takes longer than hashing.
SMALL_BYTES = 64 * 1024
#: If at least this many sessions were created in the same 32 ms, one request lists the objects of all.
MANY_SESSIONS = 4
#: Maximum number of sessions whose hash this node remembers.
MOST_REMEMBERED = 10_000


class ObjectParts:
    """The bytes of all open upload sessions. An instance caches only what any node can list or compute again."""

    def __init__(self, blobs: ObjectBlobs, random_name: Callable[[], str]) -> None:
        self.client = blobs.client
        self.random_name = random_name
        self._blobs = blobs
        #: Each session's last known objects (its chain), and the hash of their bytes if known.
        self._known: OrderedDict[str, tuple[Chain, _Hash | None]] = OrderedDict()

    async def settle(self, *session_ids: str) -> list[int]:
        """Return each session's number of stored bytes. They are already durable."""
        return await self.measure(*session_ids)

    async def measure(self, *session_ids: str) -> list[int]:
        chains = await self._list(session_ids)
        for session_id, chain in zip(session_ids, chains, strict=True):
            self.remember(session_id, chain, self.hash_of(session_id, chain))
        return [chain.size_bytes for chain in chains]

    async def hash(self, session_id: str, size_bytes: int) -> str:
        """Return the hash of the session's stored bytes. Reads them only if this node doesn't know their hash."""
        chain, _ = self.known(session_id, size_bytes)
        if chain is None:
            # This node hasn't seen these objects yet, so list them.
            (chain,) = await self._list([session_id])
        if chain.sha256 is not None:
            self.remember(session_id, chain, None)
            return chain.sha256
        hashed = self.hash_of(session_id, chain)
        if hashed is None:
            hashed = hashlib.sha256()
            async for chunk in self._stream(session_id, chain):
                await _update(hashed, chunk)
        self.remember(session_id, chain, hashed)
        return hashed.hexdigest()

    async def head(self, session_id: str) -> bytes:
        (chain,) = await self._list([session_id])
        head = bytearray()
        async for chunk in self._stream(session_id, chain):
            head += chunk[: HEAD_BYTES - len(head)]
            if len(head) >= HEAD_BYTES:
                break
        return bytes(head)

    async def stream(self, session_id: str) -> AsyncIterator[bytes]:
        (chain,) = await self._list([session_id])
        async for chunk in self._stream(session_id, chain):
            yield chunk

    async def link(self, sources: Mapping[str, str], hashes: Mapping[str, str]) -> dict[str, bytes]:
        try:
            heads = await gather(self._compose(each, name, hashes.get(each)) for each, name in sources.items())
        except StorageError:
            await self._blobs.drop(list(sources.values()))
            raise
        return dict(zip(sources, heads, strict=True))

    async def delete(self, *session_ids: str) -> None:
        """Delete the bytes. Errors are logged, not raised; old objects are deleted later."""
        for session_id in session_ids:
            self.forget(session_id)
        try:
            listed = await self._list_objects(session_ids)
            await self.client.delete([found.key for each in listed.values() for found in each])
        except StorageError:
            log.warning("the bytes of %d sessions could not be removed; they are removed later", len(session_ids))

    def writer(self, items: Sequence[PackItem], first: int, end: int) -> "ObjectPartWriter":  # noqa: ARG002
        return ObjectPartWriter(self, items, first)

    def list_ids(self) -> set[str]:
        return {session_id for found in self.client.list_all(FOLDER) if (session_id := session_of(found))}

    def remember(self, session_id: str, chain: Chain, hashed: "_Hash | None") -> None:
        self._known[session_id] = chain, hashed
        self._known.move_to_end(session_id)
        while len(self._known) > MOST_REMEMBERED:
            self._known.popitem(last=False)

    def forget(self, session_id: str) -> None:
        self._known.pop(session_id, None)

    def known(self, session_id: str, size_bytes: int) -> "tuple[Chain | None, _Hash | None]":
        """Return the objects with the first `size_bytes` bytes and a copy of their hash, each None if unknown."""
        chain, _ = self._known.get(session_id, (None, None))
        if chain is None or chain.size_bytes != size_bytes:
            return None, None
        return chain, self.hash_of(session_id, chain)

    def hash_of(self, session_id: str, chain: Chain) -> "_Hash | None":
        """Return a copy of the hash of the chain's bytes, or None if unknown."""
        if not chain.links:
            return hashlib.sha256()
        known, hashed = self._known.get(session_id, (None, None))
        return hashed.copy() if hashed is not None and known == chain else None

    async def _list(self, session_ids: Sequence[str]) -> list[Chain]:
        listed, chains = await self._list_objects(session_ids), []
        for session_id in session_ids:
            named = [(found, parse_object(found.key.rpartition("/")[2])) for found in listed[session_id]]
            chains.append(chain_of(part for found, part in named if part and part.size_bytes == found.size_bytes))
        return chains

    async def _list_objects(self, session_ids: Sequence[str]) -> dict[str, list[ListedObject]]:
        """List the objects of each session, with one request for many sessions that were created at the same time."""
        found: dict[str, list[ListedObject]] = {session_id: [] for session_id in session_ids}
        moments: dict[str, list[str]] = {}
        for session_id in found:
            moments.setdefault(_moment(session_id), []).append(session_id)
        prefixes = [
            prefix
            for moment, together in moments.items()
            for prefix in ([moment] if len(together) >= MANY_SESSIONS else map(_folder, together))
        ]
        for page in await gather(self.client.list(prefix) for prefix in prefixes):
            for each in page:
                found.get(session_of(each) or "", []).append(each)
        return found

    async def _compose(self, session_id: str, name: str, expected: str | None) -> bytes:
        """Store the bytes of the session's objects as one blob. Returns the first bytes."""
        # Use the objects that `hash` has read, because a new listing may contain more objects.
        chain, _ = self._known.get(session_id, (None, None))
        if chain is None:
            (chain,) = await self._list([session_id])
        hashed, head = hashlib.sha256(), bytearray()

        async def read() -> AsyncIterator[bytes]:
            async for chunk in self._stream(session_id, chain):
                await _update(hashed, chunk)
                if len(head) < HEAD_BYTES:
                    head.extend(chunk[: HEAD_BYTES - len(head)])
                yield chunk

        if chain.size_bytes <= OBJECT_BYTES:
            await self._blobs.put(name, b"".join([chunk async for chunk in read()]))
        else:
            await self._blobs.put(name, read())
        if expected is not None and hashed.hexdigest() != expected:
            raise StorageError("The bytes of the session changed while they were stored; finalize it again.")
        return bytes(head)

    async def _stream(self, session_id: str, chain: Chain) -> AsyncIterator[bytes]:
        """Read the bytes of these objects. Raises StorageError if the session has ended."""
        try:
            for link in chain.links:
                async for chunk in self.client.stream(_key(session_id, link.part.name), link.skip_bytes):
                    yield chunk
        except FileNotFoundError:
            raise StorageError("The bytes of the session are gone, because it has ended.") from None


class ObjectPartWriter:
    """Stores a stream as objects of a batch's upload sessions. After an error, the writer can't be used again."""

    def __init__(self, parts: ObjectParts, items: Sequence[PackItem], first: int) -> None:
        self._parts = parts
        self._items = items
        self._next = first
        self._buffer = bytearray()
        self._is_broken = False
        #: Keys of the objects stored so far.
        self._keys: list[str] = []
        #: The progress in each session to which this writer has written.
        self._sending: dict[str, _Sending] = {}

    async def append(self, data: bytes) -> None:
        self._buffer += data
        if len(self._buffer) >= OBJECT_BYTES:
            await self._flush()

    async def sync(self) -> None:
        if self._buffer and not self._is_broken:
            await self._flush()

    async def drop(self) -> None:
        self._buffer.clear()
        for session_id in self._sending:
            self._parts.forget(session_id)
        self._sending.clear()
        await self._parts.client.delete(self._keys)
        self._keys = []

    def close(self) -> None:
        self._buffer.clear()

    async def _flush(self) -> None:
        data, self._buffer = bytes(self._buffer), bytearray()
        pieces = packs.split(self._items, self._next, memoryview(data))
        self._next += len(data)
        # If a piece fails, this writer stays broken. The client resumes after the stored pieces, with a new writer.
        self._is_broken = True
        await gather(self._put(item, bytes(piece)) for item, piece in pieces)
        self._is_broken = False

    async def _put(self, item: PackItem, data: bytes) -> None:
        sending = self._sending.get(item.session_id)
        if sending is None:
            sending = _Sending(item.held_bytes, *self._parts.known(item.session_id, item.held_bytes))
            self._sending[item.session_id] = sending
        first, sha256 = sending.end_bytes, None
        if first == 0:
            sending.chain, sending.hash = Chain(), hashlib.sha256()
        if sending.hash is not None:
            await _update(sending.hash, data)
            sha256 = sending.hash.hexdigest() if first == 0 else None
        part = PartObject(object_name(first, len(data), self._parts.random_name(), sha256), first, len(data), sha256)
        key = _key(item.session_id, part.name)
        self._keys.append(key)
        await self._parts.client.put(key, data)
        sending.end_bytes += len(data)
        if sending.chain is not None:
            sending.chain = sending.chain.followed_by(part)
            self._parts.remember(item.session_id, sending.chain, sending.hash and sending.hash.copy())


@dataclass(slots=True)
class _Sending:
    """A writer's progress in one session."""

    #: Offset in the session's file of the next bytes to store.
    end_bytes: int
    #: The session's objects before that offset, and the hash of their bytes; None if unknown.
    chain: Chain | None
    hash: "_Hash | None"


async def _update(hashed: "_Hash", data: bytes) -> None:
    if len(data) > SMALL_BYTES:
        await asyncio.to_thread(hashed.update, data)
    else:
        hashed.update(data)


def _moment(session_id: str) -> str:
    """Return the key prefix that the session shares with other sessions created in the same 32 ms."""
    ids.file_name(session_id, row="A session")
    # These characters are the time in units of 32 ms. They are reversed, because object stores spread their load by the
    # first characters of keys.
    return f"{FOLDER}/{session_id[12:3:-1]}"


def _folder(session_id: str) -> str:
    return f"{_moment(session_id)}/{session_id}"


def _key(session_id: str, name: str) -> str:
    return f"{_folder(session_id)}/{name}"


def session_of(found: ListedObject) -> str | None:
    """Return the id of the upload session that the object belongs to; None if it belongs to none."""
    places = found.key.split("/")
    return places[2] if len(places) == 4 and places[0] == FOLDER and ids.PART_NAME.fullmatch(places[2]) else None
