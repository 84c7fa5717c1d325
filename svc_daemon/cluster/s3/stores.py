"""Opens and inspects the byte stores in S3, which the nodes of a cluster share."""

import asyncio
import secrets
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

from svc_daemon.cluster.s3 import blobs, parts
from svc_daemon.cluster.s3.blobs import ObjectBlobs, blob_name
from svc_daemon.cluster.s3.clients import open_client
from svc_daemon.cluster.s3.parts import ObjectParts, session_of
from svc_daemon.store.files.contract import CALLS_AT_ONCE, FileCounts, SweptObject, SweptStores
from svc_daemon.store.files.inspections import StoredBytes


class ObjectSetAsideFiles:
    """Always empty: old objects in S3 that no database row names are deleted, not moved to a folder first."""

    def __init__(self) -> None:
        self.counts = FileCounts()

    def list_names(self) -> Collection[str]:
        return ()

    def remove(self, names: Collection[str]) -> None:
        pass

    def remove_before(self, day: str) -> int:  # noqa: ARG002 - the sweeper deletes objects
        return 0


@dataclass(frozen=True, slots=True)
class ObjectStores(SweptStores):
    """Blobs and upload parts, stored as objects in one S3 bucket."""

    blobs: ObjectBlobs
    parts: ObjectParts

    def check_reachable(self) -> None:
        self.blobs.client.check_reachable()

    async def list_page(self, after: str) -> Sequence[SweptObject]:
        return [
            SweptObject(found.key, blob_name(found), session_of(found), found.modified_at)
            for found in await self.blobs.client.list_page(after)
        ]

    async def delete(self, keys: Sequence[str]) -> None:
        await self.blobs.client.delete(keys)


def open_objects(url: str, environ: Mapping[str, str], staging: Path, executor: Executor) -> ObjectStores:
    """Open the stores at `s3://bucket/prefix`, without sending a request. `staging` is a local folder."""
    blobs = ObjectBlobs(open_client(url, environ), staging, executor, lambda: secrets.token_hex(16))
    return ObjectStores(blobs, ObjectParts(blobs, lambda: secrets.token_hex(16)), ObjectSetAsideFiles())


class ObjectInspector:
    """Inspects the objects with one key prefix.

    An object that no row of the database names is not a problem, because the sweeper deletes it once it is old.
    """

    readers = CALLS_AT_ONCE

    def __init__(self, stores: ObjectStores) -> None:
        self._stores = stores

    def list_blobs(self) -> Mapping[str, StoredBytes]:
        return {
            name: StoredBytes(name, found.key, found.size_bytes, may_wait=True)
            for found in self._stores.blobs.client.list_all(blobs.FOLDER)
            if (name := blobs.blob_name(found))
        }

    def list_parts(self) -> Mapping[str, StoredBytes]:
        sizes: dict[str, StoredBytes] = {}
        for found in self._stores.blobs.client.list_all(parts.FOLDER):
            if session_id := parts.session_of(found):
                earlier = sizes[session_id].size_bytes if session_id in sizes else 0
                folder = found.key.rpartition("/")[0]
                sizes[session_id] = StoredBytes(session_id, folder, earlier + found.size_bytes, may_wait=True)
        return sizes

    def list_staged(self) -> list[str]:
        return []

    def hash(self, name: str, stored: StoredBytes) -> str:  # noqa: ARG002 - `name` is enough
        return asyncio.run(self._stores.blobs.blob(name).hash())
