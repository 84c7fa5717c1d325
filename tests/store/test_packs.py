"""Tests packs, one stream for many parts: what is on disk, and when it is durable."""

import asyncio
import errno
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from svc_daemon.core.uploads.packs import place_items
from svc_daemon.errors import StorageError
from svc_daemon.store import file_systems
from svc_daemon.store.packs import FEW_FILES, WRITE_BYTES, PackWriter
from tests.store.folders import Folder, watch_syncs

NAMES = [f"upl_{number:02}" for number in range(FEW_FILES + 2)]
#: Part 5 is larger than one write.
PIECES = {name: os.urandom(2 * WRITE_BYTES + 7 if number == 5 else 100 + number) for number, name in enumerate(NAMES)}
WHOLE = b"".join(PIECES.values())


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    with ThreadPoolExecutor(2) as executor:
        yield Folder(tmp_path / "data", executor)


def send(folder: Folder, data: bytes, *, ends: bool = True) -> None:
    """Append the data in two chunks after the stored bytes of the first part, then sync or drop it."""

    async def work() -> None:
        held = await folder.parts.settle(*NAMES)
        items = place_items((name, len(PIECES[name]), size) for name, size in zip(NAMES, held, strict=True))
        first = held[0]
        with closing(PackWriter(folder.parts, items, first, first + len(data))) as writer:
            try:
                await writer.append(data[:150])
                await writer.append(data[150:])
                if not ends:
                    await writer.drop()
            finally:
                await writer.sync()

    asyncio.run(work())


def hashed(folder: Folder, name: str) -> str:
    return asyncio.run(folder.parts.hash(name, folder.parts.size_bytes(name)))


def stored(folder: Folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.files.parts.iterdir()}


def test_one_sync_makes_a_pack_durable(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = watch_syncs(monkeypatch)
    send(folder, WHOLE)
    assert stored(folder) == PIECES
    is_syncable = file_systems.is_syncable(folder.files.parts)
    assert synced == (["*"] if is_syncable else [*NAMES, "parts"])
    assert asyncio.run(folder.parts.settle(*NAMES)) == [len(data) for data in PIECES.values()]
    assert (synced[1:] == []) == is_syncable, "what is durable is not synced again"


def test_the_file_system_is_opened_before_the_first_write(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise `syncfs` would not report errors of earlier writes."""
    opened: list[str] = []
    real = os.open

    def watched(path: Path, *arguments: int) -> int:
        opened.append(Path(path).name)
        return real(path, *arguments)

    monkeypatch.setattr(file_systems, "is_syncable", lambda _: True)
    monkeypatch.setattr(os, "open", watched)
    send(folder, WHOLE)
    assert opened == ["parts", *NAMES]


def test_few_files_are_synced_one_by_one_and_so_are_all_without_syncfs(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = watch_syncs(monkeypatch)
    send(folder, WHOLE[:150])
    assert synced == [*NAMES[:2], "parts"]
    monkeypatch.setattr(file_systems, "is_syncable", lambda _: False)
    send(folder, WHOLE[100:])
    assert synced[3:] == [*NAMES[1:], "parts"]
    assert stored(folder) == PIECES


def test_each_part_is_hashed_while_it_is_received(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    send(folder, WHOLE[:5000])
    for path in folder.files.parts.iterdir():
        path.chmod(0)
    monkeypatch.setattr("svc_daemon.store.parts.hash_file", None)
    assert {name: hashed(folder, name) for name in NAMES[:5]} == {
        name: sha256(data).hexdigest() for name, data in list(PIECES.items())[:5]
    }


def test_a_failed_sync_discards_unacknowledged_bytes(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    send(folder, WHOLE[:150])
    acknowledged = stored(folder)

    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, "broken")

    for is_syncable in (True, False):
        monkeypatch.setattr(file_systems, "is_syncable", lambda _, found=is_syncable: found)
        monkeypatch.setattr(file_systems, "sync", refuse)
        monkeypatch.setattr(os, "fsync", refuse)
        with pytest.raises(StorageError):
            send(folder, WHOLE[100:])
        assert {name: data for name, data in stored(folder).items() if data} == acknowledged
        assert {error.errno for error in folder.broken} == {errno.EIO}


def test_a_full_disk_keeps_the_bytes_that_were_written(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    real, left = os.write, [350]

    def write(descriptor: int, data: memoryview) -> int:
        if not left[0]:
            raise OSError(errno.ENOSPC, "full")
        written = real(descriptor, data[: left[0]])
        left[0] -= written
        return written

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", write)
        with pytest.raises(StorageError):
            send(folder, WHOLE)
    assert b"".join(stored(folder).get(name, b"") for name in NAMES) == WHOLE[:350]
    hashes = {name: hashed(folder, name) for name in stored(folder)}
    assert hashes == {name: sha256(data).hexdigest() for name, data in stored(folder).items()}


def test_a_dropped_pack_leaves_its_parts_unchanged(folder: Folder) -> None:
    send(folder, WHOLE[:150])
    before = stored(folder)
    send(folder, WHOLE[100:], ends=False)
    assert {name: data for name, data in stored(folder).items() if data} == before
    send(folder, WHOLE[100:])
    assert stored(folder) == PIECES
    assert hashed(folder, NAMES[1]) == sha256(PIECES[NAMES[1]]).hexdigest()
