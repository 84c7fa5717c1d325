"""Inspects the objects that an installation has in S3, even while its nodes are running."""

import asyncio
from collections.abc import Mapping

from svc_daemon.store.contract import CALLS_AT_ONCE
from svc_daemon.store.inspections import StoredBytes
from svc_daemon.store.objects import blobs, parts
from svc_daemon.store.objects.stores import ObjectStores


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
