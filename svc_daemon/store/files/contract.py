"""The interface of the byte stores: blobs are the bytes of sources, parts are the bytes of open upload sessions.

`store.files.blobs` and `store.files.parts` implement it with files, `cluster.s3` with S3.
Methods marked "blocking" may wait for a disk or the network; call them in a thread.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar

from svc_daemon.core.uploads.packs import PackItem

T = TypeVar("T")

#: Number of coroutines that `gather` runs at once.
CALLS_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class BlobFacts:
    """Size and date of a blob."""

    size_bytes: int
    modified_at: datetime


class StoredBlob(Protocol):
    """The bytes of one source. If they are lost, all methods but `find` raise FileNotFoundError."""

    async def find(self) -> BlobFacts | None:
        """Return the size and date of the bytes; None if they are lost."""

    async def read(self, offset_bytes: int, most_bytes: int) -> bytes:
        """Read up to `most_bytes` bytes, starting at `offset_bytes`."""

    def stream(self) -> AsyncIterator[bytes]:
        """Read all bytes, in order."""

    async def hash(self) -> str:
        """Read all bytes and return their SHA-256, in hexadecimal."""

    def open_file(self) -> AbstractAsyncContextManager[int]:
        """Yield the descriptor of a local file with the bytes, positioned at the first byte."""


class StagedBytes(Protocol):
    """The bytes of an upload, hashed as they arrive, then kept as a blob or discarded."""

    @property
    def size_bytes(self) -> int: ...

    @property
    def head(self) -> bytes:
        """Return the first bytes, from which the media type is guessed."""

    @property
    def sha256(self) -> str: ...

    async def append(self, data: bytes) -> None:
        """Append bytes. Raises StorageError."""

    async def read(self, offset_bytes: int, most_bytes: int) -> bytes:
        """Read up to `most_bytes` of the received bytes, starting at `offset_bytes`. Raises StorageError."""

    async def keep(self, name: str) -> None:
        """Make the bytes durable as the blob of this name. If this fails, the caller must not record the blob."""

    async def discard(self) -> None:
        """Discard the bytes if they weren't kept. Idempotent; never raises."""


@asynccontextmanager
async def discarding(staged: StagedBytes) -> AsyncIterator[StagedBytes]:
    """After the block, discard the bytes if they weren't kept."""
    try:
        yield staged
    finally:
        await staged.discard()


class BlobStore(Protocol):
    """The blobs of all sources. No name is used twice."""

    def stage(self) -> StagedBytes:
        """Prepare to receive the bytes of an upload. Nothing is written yet."""

    def blob(self, name: str) -> StoredBlob:
        """Return the blob of this name, which may not exist."""

    async def delete(self, names: Sequence[str]) -> dict[str, Exception]:
        """Delete blobs durably. Idempotent. Returns the error of each blob that could not be deleted."""

    async def drop(self, names: Sequence[str]) -> None:
        """Delete blobs that no source uses. Errors are logged, not raised; a later clean-up tries again."""

    async def move_damaged(self, name: str) -> None:
        """Move a damaged blob to a folder that nothing reads. Idempotent."""

    async def find_stored(self, source_ids: Collection[str]) -> set[str]:
        """Return which of these sources have a stored blob, even if the database has lost the source."""

    def list_ids(self) -> Collection[str]:
        """List the names of all blobs. Blocking."""

    def has_room(self, reserve_bytes: int) -> bool:
        """Whether more than `reserve_bytes` of the disk are free. The reserve is kept so that deletions always work."""

    def try_room(self, size_bytes: int) -> None:
        """Check that there is room to receive this many bytes. Raises OSError; blocking."""


class PartWriter(Protocol):
    """Writes one stream of bytes to the upload sessions of a batch, one after the other."""

    async def append(self, data: bytes) -> None:
        """Append bytes. Raises StorageError."""

    async def sync(self) -> None:
        """Make all appended bytes durable. Raises StorageError."""

    async def drop(self) -> None:
        """Discard the appended bytes. Raises StorageError."""

    def close(self) -> None: ...


class PartStore(Protocol):
    """The bytes of open upload sessions. Acknowledged bytes stay until the session ends."""

    async def measure(self, *session_ids: str) -> list[int]:
        """Return how many bytes of each session are stored. Bytes after a gap don't count."""

    async def settle(self, *session_ids: str) -> list[int]:
        """Make the stored bytes durable, and return their number for each session."""

    async def hash(self, session_id: str, size_bytes: int) -> str:
        """Return the hexadecimal SHA-256 of the session's first `size_bytes` bytes."""

    async def head(self, session_id: str) -> bytes:
        """Return the first bytes, from which the media type is guessed."""

    def stream(self, session_id: str) -> AsyncIterator[bytes]:
        """Read the stored bytes. Raises FileNotFoundError or StorageError if the session has ended."""

    async def link(self, sources: Mapping[str, str], hashes: Mapping[str, str]) -> dict[str, bytes]:
        """Store the bytes of complete sessions as durable blobs, and return the first bytes of each by session id.

        `sources` maps session ids to blob names, and `hashes` maps them to SHA-256 hashes. Raises StorageError if bytes
        don't match their hash or can't be stored. The caller must then not record these blobs.
        """

    async def delete(self, *session_ids: str) -> None:
        """Delete the bytes. Idempotent."""

    def writer(self, items: Sequence[PackItem], first: int, end: int) -> PartWriter:
        """Return a writer for bytes `first` to `end` (exclusive) of the concatenated files.

        Before this, call `settle` for the sessions of these files.
        """

    def list_ids(self) -> Collection[str]:
        """List the ids of all sessions that have bytes. Blocking."""


@dataclass(frozen=True, slots=True)
class FileCounts:
    """Counts of files that were moved aside because no database row names them."""

    files: int = 0
    #: How many of these files belong to a source that is still in a search index.
    known: int = 0


class SetAsideStore(Protocol):
    """Stored files that were moved aside because no database row names them.

    They are kept for a while, because the rows of a restored database may name them.
    """

    #: Number of files, as last counted.
    counts: FileCounts

    def list_names(self) -> Collection[str]:
        """List the names of the files. Blocking."""

    def remove(self, names: Collection[str]) -> None:
        """Delete all files with these names. Blocking."""

    def remove_before(self, day: str) -> int:
        """Delete the files moved aside before this day, and return how many. Blocking."""


@dataclass(frozen=True, slots=True)
class ByteStores:
    """The byte stores of one installation."""

    blobs: BlobStore
    parts: PartStore
    set_aside_files: SetAsideStore

    def check_reachable(self) -> None:
        """Raise StoreUnavailable if a store on another machine can't be used. Blocking."""


@dataclass(frozen=True, slots=True)
class SweptObject:
    """An object of a byte store, with the blob name or session id by which its database row is found."""

    key: str
    #: Name of the blob; None if the object is not a blob.
    blob: str | None
    #: Id of the upload session; None if the object is not part of an upload.
    session_id: str | None
    modified_at: datetime


@dataclass(frozen=True, slots=True)
class SweptStores(ByteStores, ABC):
    """Byte stores that several nodes share. The sweeper deletes old objects that no row of the database names."""

    @abstractmethod
    async def list_page(self, after: str) -> Sequence[SweptObject]:
        """List about 1,000 objects, ordered by key, after the key `after`."""

    @abstractmethod
    async def delete(self, keys: Sequence[str]) -> None:
        """Delete objects. Idempotent; raises StorageError."""


async def gather(calls: Iterable[Coroutine[Any, Any, T]], at_once: int = CALLS_AT_ONCE) -> list[T]:
    """Run the coroutines, `at_once` at a time, and return their results.

    If one fails, its error is raised after all others have ended.
    """
    slots = asyncio.Semaphore(at_once)

    async def run(call: Coroutine[Any, Any, T]) -> T:
        async with slots:
            return await call

    awaited = [*calls]
    try:
        results = await asyncio.gather(*map(run, awaited), return_exceptions=True)
    finally:
        for call in awaited:
            # One that has not begun when this is cancelled would be reported as forgotten.
            call.close()
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]
