"""Makes a data folder with parts and blobs, and watches what of it is synced."""

import asyncio
import os
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from svc_daemon.core.uploads.packs import PackItem
from svc_daemon.paths import DataFiles
from svc_daemon.store.files import syncing
from svc_daemon.store.files.blobs import Blobs
from svc_daemon.store.files.parts import PackWriter, Parts

#: The declared size of the part. Tests append less than this.
MOST_BYTES = 10**9


class Folder:
    """A data folder with parts and blobs."""

    def __init__(self, root: Path, executor: ThreadPoolExecutor) -> None:
        self.files = DataFiles(root)
        for folder in (self.files.blobs, self.files.staging, self.files.parts):
            folder.mkdir(parents=True)
        self.broken: list[OSError] = []
        self.blobs = Blobs(self.files, executor, lambda: "staged")
        self.parts = Parts(self.files.parts, self.blobs, self.broken.append)

    async def open(self) -> PackWriter:
        """Open a writer that appends to one part."""
        (held_bytes,) = await self.parts.settle("upl_a")
        return PackWriter(self.parts, [PackItem("upl_a", 0, MOST_BYTES, held_bytes)], held_bytes, MOST_BYTES)

    def append(self, *chunks: bytes) -> int:
        """Append the bytes, sync, and return the number of bytes stored."""

        async def work() -> int:
            with closing(await self.open()) as writer:
                for chunk in chunks:
                    await writer.append(chunk)
                await writer.sync()
            return self.parts.size_bytes("upl_a")

        return asyncio.run(work())

    def stored(self) -> bytes:
        return (self.files.parts / "upl_a").read_bytes()

    def hash(self) -> str:
        return asyncio.run(self.parts.hash("upl_a", self.parts.size_bytes("upl_a")))


def watch_syncs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the names of the files and folders that are synced from now on. `*` means a whole file system."""
    names: list[str] = []
    whole, one = syncing.sync, os.fsync

    def sync(descriptor: int) -> None:
        names.append("*")
        whole(descriptor)

    def fsync(descriptor: int) -> None:
        names.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        one(descriptor)

    monkeypatch.setattr(syncing, "sync", sync)
    monkeypatch.setattr(os, "fsync", fsync)
    return names


def on_folder_sync(monkeypatch: pytest.MonkeyPatch, act: Callable[[Path], None]) -> None:
    """Call `act` instead of syncing a folder. Files are synced as usual."""
    fsync = os.fsync

    def sync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            act(Path(f"/proc/self/fd/{descriptor}").readlink())
        else:
            fsync(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
