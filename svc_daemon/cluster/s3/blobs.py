"""Stores blobs in S3. Each blob is one object, which never changes."""

import asyncio
import hashlib
import logging
import tempfile
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from svc_daemon.cluster.s3.clients import ListedObject, ObjectClient
from svc_daemon.core import ids
from svc_daemon.errors import StorageError
from svc_daemon.store.files.contract import BlobFacts, gather
from svc_daemon.store.files.staging import StagedFile, Staging

log = logging.getLogger(__name__)

FOLDER, DAMAGED = "blobs", "damaged"


class ObjectBlobs(Staging):
    """The blobs of all sources in an object store. `staging` is this node's folder for bytes being received."""

    def __init__(self, client: ObjectClient, staging: Path, executor: Executor, random_name: Callable[[], str]) -> None:
        super().__init__(staging, executor, random_name)
        self.client = client

    def stage(self) -> "StagedObject":
        return StagedObject(self)

    def blob(self, name: str) -> "BlobObject":
        return BlobObject(self.client, _key(name), self.folder)

    async def put(self, name: str, content: bytes | Path | AsyncIterator[bytes]) -> None:
        """Store the bytes as the blob of this name. If this fails, the caller must not record the blob."""
        await self.client.put(_key(name), content)

    async def delete(self, names: Sequence[str]) -> dict[str, Exception]:
        try:
            await self.client.delete([_key(name) for name in names])
        except StorageError as error:
            return dict.fromkeys(names, error)
        return {}

    async def drop(self, names: Sequence[str]) -> None:
        if errors := await self.delete(names):
            log.warning("%d blobs could not be removed; they are removed when they are old", len(errors))

    async def move_damaged(self, name: str) -> None:
        """Move the blob to the folder for damaged blobs, where nothing is deleted."""
        try:
            await self.client.copy(_key(name), f"{DAMAGED}/{name}")
        except FileNotFoundError:
            return
        await self.client.delete([_key(name)])

    async def find_stored(self, source_ids: Collection[str]) -> set[str]:
        wanted = sorted(source_ids)
        pages = await gather(self.client.list(_folder(source_id)) for source_id in wanted)
        return {source_id for source_id, page in zip(wanted, pages, strict=True) if page}

    def list_ids(self) -> list[str]:
        return [name for found in self.client.list_all(FOLDER) if (name := blob_name(found))]

    def has_room(self, reserve_bytes: int) -> bool:  # noqa: ARG002 - deletes need no room in an object store
        return True

    def try_room(self, size_bytes: int) -> None:
        """Check that this node has disk space and the object store answers. Raises OSError or StoreUnavailable."""
        super().try_room(size_bytes)
        self.client.check_reachable()


class StagedObject(StagedFile):
    """The bytes of an upload. `keep` stores them as one object."""

    def __init__(self, blobs: ObjectBlobs) -> None:
        super().__init__(blobs)
        self._blobs = blobs

    async def keep(self, name: str) -> None:
        try:
            if self._file is None:
                await self._blobs.put(name, bytes(self._buffer))
            else:
                await self._blobs.run(self._spill)
                await self._blobs.put(name, self._path)
        finally:
            await self.discard()


@dataclass(frozen=True, slots=True)
class BlobObject:
    """A blob in the object store."""

    client: ObjectClient
    key: str
    #: The folder for the temporary file of `open_file`.
    folder: Path

    async def find(self) -> BlobFacts | None:
        found = await self.client.find(self.key)
        return BlobFacts(found.size_bytes, found.modified_at) if found else None

    async def read(self, offset_bytes: int, most_bytes: int) -> bytes:
        return await self.client.read(self.key, offset_bytes, offset_bytes + most_bytes)

    def stream(self) -> AsyncIterator[bytes]:
        return self.client.stream(self.key)

    async def hash(self) -> str:
        hashed = hashlib.sha256()
        async for chunk in self.client.stream(self.key):
            await asyncio.to_thread(hashed.update, chunk)
        return hashed.hexdigest()

    @asynccontextmanager
    async def open_file(self) -> AsyncIterator[int]:
        # This file has no name, so it disappears even if the process is killed.
        with tempfile.TemporaryFile(dir=self.folder) as file:
            async for chunk in self.client.stream(self.key):
                await asyncio.to_thread(file.write, chunk)
            file.seek(0)
            yield file.fileno()


def blob_name(found: ListedObject) -> str | None:
    """Return the name of the blob; None if the object isn't a blob."""
    folder, _, name = found.key.rpartition("/")
    return name if folder.startswith(f"{FOLDER}/") and ids.BLOB_NAME.fullmatch(name) else None


def _key(name: str) -> str:
    ids.file_name(name, row="A stored file")
    return f"{_folder(ids.source_of(name) or name)}/{name}"


def _folder(source_id: str) -> str:
    """Return the key prefix of a source's blobs. While a source is fetched again, it has two blobs."""
    # Object stores divide their load by the first characters of keys, so these must vary. Only the end of an id is
    # random.
    return f"{FOLDER}/{source_id[-2:]}/{source_id}"
