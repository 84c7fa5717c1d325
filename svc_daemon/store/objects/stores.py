"""Opens the byte stores in S3, which the nodes of a cluster share."""

import secrets
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

from svc_daemon.store.contract import SweptObject, SweptStores, Tally
from svc_daemon.store.objects.blobs import ObjectBlobs, blob_name
from svc_daemon.store.objects.clients import open_client
from svc_daemon.store.objects.parts import ObjectParts, session_of


class ObjectSetAsideFiles:
    """Always empty: old objects in S3 that no database row names are deleted, not moved to a folder first."""

    def __init__(self) -> None:
        self.tally = Tally()

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
