"""Tests the bytes of open upload sessions: appending, syncing, linking and removing them."""

import asyncio
import errno
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from svc_daemon.errors import StorageError
from svc_daemon.store.packs import WRITE_BYTES
from tests.store.folders import Folder

DATA = os.urandom(WRITE_BYTES + 1000)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    with ThreadPoolExecutor(2) as executor:
        yield Folder(tmp_path / "data", executor)


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the names of synced files and folders, in order."""
    names: list[str] = []
    real = os.fsync

    def watched(descriptor: int) -> None:
        names.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    return names


def refuse(*_: object) -> None:
    raise OSError(errno.EIO, "broken")


def test_chunks_are_appended_and_only_a_new_file_syncs_its_folder(folder: Folder, synced: list[str]) -> None:
    assert (folder.parts.size_bytes("upl_a"), folder.append(DATA[:10], DATA[10:500])) == (0, 500)
    assert synced == ["upl_a", "parts"]
    assert (folder.append(DATA[500:]), folder.stored()) == (len(DATA), DATA)
    assert synced == ["upl_a", "parts", "upl_a"]
    assert (folder.files.parts / "upl_a").stat().st_mode & 0o777 == 0o600


def test_linking_makes_a_durable_blob_and_keeps_the_part(folder: Folder, synced: list[str]) -> None:
    (folder.files.parts / "upl_a").write_bytes(DATA)
    assert asyncio.run(folder.parts.link({"upl_a": "src_a"}, {})) == {"upl_a": DATA[:8192]}, "what sniffing looks at"
    assert synced == ["upl_a", "parts", "blobs"]
    assert folder.blobs.path("src_a").read_bytes() == folder.stored() == DATA
    asyncio.run(folder.parts.delete("upl_a", "upl_unknown"))
    assert (list(folder.parts.list_ids()), folder.blobs.path("src_a").read_bytes()) == ([], DATA)


def test_a_failed_sync_removes_unacknowledged_bytes(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.append(b"acknowledged")
    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(StorageError):
        folder.append(b" and lost")
    assert (folder.stored(), [error.errno for error in folder.broken]) == (b"acknowledged", [errno.EIO])


def test_a_failed_link_is_reported_even_if_its_cleanup_fails(folder: Folder) -> None:
    folder.append(DATA)
    folder.files.blobs.rename(folder.files.root / "away")
    folder.files.blobs.write_text("in the way")
    with pytest.raises(StorageError) as refused:
        asyncio.run(folder.parts.link({"upl_a": "src_a"}, {}))
    assert refused.value.details["errno"] == errno.ENOTDIR


def test_a_writer_that_is_closed_twice_closes_no_other_file(folder: Folder) -> None:
    async def work() -> None:
        writer = await folder.open()
        await writer.append(DATA)
        await writer.sync()
        writer.close()
        with (folder.files.root / "stranger").open("wb", buffering=0) as stranger:
            writer.close()
            stranger.write(b"mine")

    asyncio.run(work())
    assert (folder.files.root / "stranger").read_bytes() == b"mine"


def test_dropped_bytes_are_neither_stored_nor_hashed(folder: Folder) -> None:
    folder.append(b"kept")

    async def work() -> None:
        with closing(await folder.open()) as writer:
            for chunk in (DATA, b"more"):
                await writer.append(chunk)
            await writer.drop()
            await writer.sync()

    asyncio.run(work())
    for then, content in (((), b"kept"), ((b" and more",), b"kept and more")):
        assert (folder.append(*then), folder.stored()) == (len(content), content)
        assert folder.hash() == sha256(content).hexdigest()


def test_a_part_that_can_not_be_deleted_is_logged(folder: Folder, caplog: pytest.LogCaptureFixture) -> None:
    (folder.files.parts / "upl_a").mkdir()
    asyncio.run(folder.parts.delete("upl_a"))
    assert "upl_a could not be removed" in caplog.text


def test_nothing_is_written_through_a_link(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "theirs").write_bytes(b"somebody's")
    (folder.files.parts / "upl_a").symlink_to(tmp_path / "theirs")
    with pytest.raises(StorageError):
        folder.append(b"x")
    assert (tmp_path / "theirs").read_bytes() == b"somebody's"


def test_a_part_is_read_for_its_hash_only_if_another_process_wrote_it(folder: Folder) -> None:
    for data in (DATA[:10], DATA[10:]):
        folder.append(data)
    (folder.files.parts / "upl_a").write_bytes(bytes(len(DATA)))
    assert folder.hash() == sha256(DATA).hexdigest()
    asyncio.run(folder.parts.delete("upl_a"))
    (folder.files.parts / "upl_a").write_bytes(b"other ")
    folder.append(b"bytes")
    assert folder.hash() == sha256(b"other bytes").hexdigest(), "a removed part leaves no hash behind"
