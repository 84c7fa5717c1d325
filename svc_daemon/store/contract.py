"""The interface of the byte stores: blobs are the bytes of sources, parts are the bytes of open upload sessions.

`store.blobs`, `store.parts` and `store.packs` implement it with files in the data directory, `store.objects` with
objects of an S3 store. Callers don't know where the bytes are: they read a range, read a stream, or open a local file.

Methods that aren't coroutines and say "blocking" may wait for a disk or the network; call them in a thread.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar

from svc_daemon.core.uploads.packs import PackItem

T = TypeVar("T")

#: Number of coroutines that `gather` runs at the same time.
CALLS_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class BlobFacts:
    """The size and date of a blob, which are known without reading its bytes."""

    size_bytes: int
    modified_at: datetime


class StoredBlob(Protocol):
    """The stored bytes of one source. All methods except `find` raise FileNotFoundError if the bytes are lost."""

    async def find(self) -> BlobFacts | None:
        """Return the size and date of the bytes; None if they are lost."""

    async def read(self, offset_bytes: int, most_bytes: int) -> bytes:
        """Read a small range: up to `most_bytes` from the offset."""

    def stream(self) -> AsyncIterator[bytes]:
        """Read all bytes, in order."""

    async def hash(self) -> str:
        """Read all bytes and return their SHA-256, in hexadecimal."""

    def open_file(self) -> AbstractAsyncContextManager[int]:
        """Open a local file with the bytes, and return its descriptor at offset 0; it is closed when the block ends."""


class StagedBytes(Protocol):
    """The bytes of an upload: counted and hashed as they arrive, then kept as a source's blob or discarded."""

    @property
    def size_bytes(self) -> int: ...

    @property
    def head(self) -> bytes:
        """Return the first bytes, from which the media type is guessed."""

    @property
    def sha256(self) -> str: ...

    async def append(self, data: bytes) -> None:
        """Append the next bytes; raises StorageError if they can't be written."""

    async def read(self, offset_bytes: int, most_bytes: int) -> bytes:
        """Read up to `most_bytes` of the received bytes, starting at the offset; raises StorageError."""

    async def keep(self, name: str) -> None:
        """Make the bytes durable as the blob of this name. If this fails or is cancelled, don't store a row for it."""

    async def discard(self) -> None:
        """Discard the bytes, unless they were kept. Idempotent; errors are not raised."""


class BlobStore(Protocol):
    """The blobs of all sources, each under a name that is never used twice."""

    def stage(self) -> StagedBytes:
        """Create a place for the bytes of an upload. Nothing is written yet."""

    def blob(self, name: str) -> StoredBlob:
        """Return the blob of this name, without checking that it exists."""

    async def delete(self, names: Sequence[str]) -> dict[str, Exception]:
        """Delete blobs durably. Idempotent. Returns the error of each blob that could not be deleted."""

    async def drop(self, names: Sequence[str]) -> None:
        """Delete blobs that belong to no row. Errors are logged, not raised: the blobs are cleaned up later."""

    async def move_damaged(self, name: str) -> None:
        """Move the bytes to a place where nothing reads them, instead of deleting them. Idempotent."""

    async def find_stored(self, source_ids: Collection[str]) -> set[str]:
        """Return the ids of those sources that have a stored blob, even if the database has no row for them."""

    def list_ids(self) -> Collection[str]:
        """List the names of all blobs. Blocking."""

    def has_room(self, reserve_bytes: int) -> bool:
        """Whether there is more free space than the reserve, which is kept free so that deletions always work."""

    def try_room(self, size_bytes: int) -> None:
        """Check that this many bytes can be received and stored; raises OSError if not. Blocking."""


class PartWriter(Protocol):
    """Splits one stream of bytes among the upload sessions of a batch: fills one session after the other.

    The bytes are durable once `sync` has returned.
    """

    async def append(self, data: bytes) -> None:
        """Append the next bytes; raises StorageError."""

    async def sync(self) -> None:
        """Make all appended bytes durable; raises StorageError."""

    async def drop(self) -> None:
        """Discard the appended bytes, which were never acknowledged; raises StorageError."""

    def close(self) -> None: ...


class PartStore(Protocol):
    """The bytes of open upload sessions. What was acknowledged stays stored until the session ends."""

    async def measure(self, *session_ids: str) -> list[int]:
        """Return the number of stored bytes of each session, counted from its first byte up to the first gap."""

    async def settle(self, *session_ids: str) -> list[int]:
        """Make the stored bytes durable, so that they can be acknowledged. Returns each session's number of bytes."""

    async def hash(self, session_id: str, size_bytes: int) -> str:
        """Return the hexadecimal SHA-256 of the session's first `size_bytes` bytes, as counted by `settle`."""

    async def head(self, session_id: str) -> bytes:
        """Return the first bytes, from which the media type is guessed."""

    def stream(self, session_id: str) -> AsyncIterator[bytes]:
        """Read the stored bytes, in order. Raises FileNotFoundError or StorageError if the session has ended."""

    async def link(self, sources: Mapping[str, str], hashes: Mapping[str, str]) -> dict[str, bytes]:
        """Copy or link the bytes of complete sessions to durable blobs; `sources` maps session ids to blob names.

        `hashes` maps session ids to the results of `hash`. Returns the first bytes of each session, by id. Raises
        StorageError if that fails or if the bytes no longer match their hash; the caller must then store no row that
        refers to these blobs.
        """

    async def delete(self, *session_ids: str) -> None:
        """Delete the bytes. Idempotent."""

    def writer(self, items: Sequence[PackItem], first: int, end: int) -> PartWriter:
        """Return a writer for the bytes from offset `first` up to `end` (exclusive) of the concatenated files.

        `settle` must have been called for all these files before.
        """

    def list_ids(self) -> Collection[str]:
        """List the ids of all sessions that have bytes. Blocking."""


@dataclass(frozen=True, slots=True)
class Tally:
    """The number of files that were moved aside, because no row of the database names them."""

    files: int = 0
    #: How many of these files a search index still lists in at least one bucket.
    known: int = 0


class AsideStore(Protocol):
    """Stored files that were moved aside because no row names them.

    They are kept for a while: if the database was restored from an older copy, a newer copy with their rows may be
    restored later.
    """

    #: The number of files moved aside, when they were last counted.
    tally: Tally

    def list_names(self) -> Collection[str]:
        """List the names of the files. Blocking."""

    def remove(self, names: Collection[str]) -> None:
        """Delete all files with these names. Blocking."""

    def remove_before(self, day: str) -> int:
        """Delete the files that were moved aside before this day, and return how many there were. Blocking."""


@dataclass(frozen=True, slots=True)
class ByteStores:
    """The byte stores of one installation: its blobs, its upload parts, and the files that were moved aside."""

    blobs: BlobStore
    parts: PartStore
    asides: AsideStore


@dataclass(frozen=True, slots=True)
class SweptObject:
    """An object of a byte store, with the ids by which to find its row in the database."""

    key: str
    #: The name of the blob; None if the object is not a blob.
    blob: str | None
    #: The id of the upload session; None if the object is not a part of an upload.
    session_id: str | None
    modified_at: datetime


@dataclass(frozen=True, slots=True)
class SweptStores(ByteStores, ABC):
    """Byte stores that several nodes share.

    An object that no row names is not moved aside; it is deleted once it is old.
    """

    @abstractmethod
    async def list_page(self, after: str) -> Sequence[SweptObject]:
        """List the next 1,000 objects or so, ordered by key; `after` is the last key of the previous page, or empty."""

    @abstractmethod
    async def delete(self, keys: Sequence[str]) -> None:
        """Delete objects by their keys. Idempotent; raises StorageError."""


async def gather(calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run the coroutines, a limited number at a time, and return their results.

    If one raises an error, it is raised here after all others have ended.
    """
    slots = asyncio.Semaphore(CALLS_AT_ONCE)

    async def run(call: Coroutine[Any, Any, T]) -> T:
        async with slots:
            return await call

    results = await asyncio.gather(*map(run, calls), return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]
