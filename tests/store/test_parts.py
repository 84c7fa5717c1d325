"""The bytes of open sessions: appended, synced, linked, removed."""

import asyncio
import errno
import hashlib
import os
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import pytest

from svc_daemon.errors import StorageError
from svc_daemon.paths import DataFiles
from svc_daemon.store.blobs import Blobs
from svc_daemon.store.parts import WRITE_BYTES, Parts

T = TypeVar("T")
DATA = os.urandom(WRITE_BYTES + 1000)


class Folder:
    """A data folder with parts and blobs."""

    def __init__(self, root: Path, executor: ThreadPoolExecutor) -> None:
        self.files = DataFiles(root)
        for folder in (self.files.blobs, self.files.staging, self.files.parts):
            folder.mkdir(parents=True)
        self.broken: list[OSError] = []
        self.blobs = Blobs(self.files, executor, lambda: "staged")
        self.parts = Parts(self.files.parts, self.blobs, self.broken.append)

    def append(self, *chunks: bytes, session_id: str = "upl_a") -> int:
        """Append and sync; the bytes stored then."""

        async def work() -> int:
            writer = await self.parts.open(session_id)
            try:
                for chunk in chunks:
                    await writer.append(chunk)
                return await writer.sync()
            finally:
                writer.close()

        return run(work())


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    with ThreadPoolExecutor(2) as executor:
        yield Folder(tmp_path / "data", executor)


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of what is synced, in order."""
    names: list[str] = []
    real = os.fsync

    def watched(descriptor: int) -> None:
        names.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    return names


def test_chunks_gather_to_the_file(folder: Folder) -> None:
    assert folder.parts.size_bytes("upl_a") == 0
    assert folder.append(DATA[:10], DATA[10:500]) == 500
    assert folder.append(DATA[500:]) == len(DATA)
    assert (folder.files.parts / "upl_a").read_bytes() == DATA
    assert (folder.files.parts / "upl_a").stat().st_mode & 0o777 == 0o600


def test_a_new_part_syncs_its_name_too_and_an_old_one_only_its_bytes(folder: Folder, synced: list[str]) -> None:
    folder.append(b"one")
    assert synced == ["upl_a", "parts"]
    folder.append(b"two")
    assert synced == ["upl_a", "parts", "upl_a"]


def test_bytes_of_another_process_are_synced_once_before_anything_is_said(folder: Folder, synced: list[str]) -> None:
    (folder.files.parts / "upl_a").write_bytes(b"left by a kill")
    run(folder.parts.settle("upl_a"))
    run(folder.parts.settle("upl_a"))
    run(folder.parts.settle("upl_unknown"))
    assert synced == ["upl_a", "parts"]


def test_linking_settles_the_bytes_and_keeps_the_part(folder: Folder, synced: list[str]) -> None:
    (folder.files.parts / "upl_a").write_bytes(DATA)
    assert run(folder.parts.link("upl_a", "src_a")) == DATA[:8192], "what sniffing looks at"
    assert synced == ["upl_a", "parts", "blobs"]
    assert folder.blobs.path("src_a").read_bytes() == DATA
    run(folder.parts.delete("upl_a", "upl_unknown"))
    assert list(folder.parts.list_ids()) == []
    assert folder.blobs.path("src_a").read_bytes() == DATA


def test_a_link_that_fails_leaves_no_blob(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.append(DATA)

    def refuse() -> None:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(folder.blobs, "sync_folder", refuse)
    with pytest.raises(StorageError):
        run(folder.parts.link("upl_a", "src_a"))
    assert list(folder.files.blobs.iterdir()) == []
    assert (folder.files.parts / "upl_a").read_bytes() == DATA


def test_a_failed_sync_takes_back_what_nobody_acknowledged(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.append(b"acknowledged")

    def refuse(_descriptor: int) -> None:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(StorageError):
        folder.append(b" and lost")
    assert (folder.files.parts / "upl_a").read_bytes() == b"acknowledged"
    assert [error.errno for error in folder.broken] == [errno.EIO]


def test_a_link_that_fails_is_reported_where_its_clean_up_fails_too(folder: Folder) -> None:
    folder.append(DATA)
    folder.files.blobs.rename(folder.files.root / "away")
    folder.files.blobs.write_text("in the way")
    with pytest.raises(StorageError) as refused:
        run(folder.parts.link("upl_a", "src_a"))
    assert refused.value.details["errno"] == errno.ENOTDIR


def test_a_writer_closed_twice_closes_nobody_elses_file(folder: Folder) -> None:
    async def work() -> None:
        writer = await folder.parts.open("upl_a")
        await writer.append(DATA)
        await writer.sync()
        writer.close()
        with (folder.files.root / "stranger").open("wb", buffering=0) as stranger:
            writer.close()
            stranger.write(b"mine")

    run(work())
    assert (folder.files.root / "stranger").read_bytes() == b"mine"


def test_what_is_dropped_was_never_there(folder: Folder) -> None:
    folder.append(b"kept")

    async def work() -> int:
        writer = await folder.parts.open("upl_a")
        await writer.append(DATA)
        await writer.append(b"more")
        await writer.drop()
        stored = await writer.sync()
        writer.close()
        return stored

    assert run(work()) == 4
    assert (folder.files.parts / "upl_a").read_bytes() == b"kept"


def test_a_part_that_cannot_be_removed_is_left_for_the_next_start(
    folder: Folder, caplog: pytest.LogCaptureFixture
) -> None:
    (folder.files.parts / "upl_a").mkdir()
    run(folder.parts.delete("upl_a"))
    assert "upl_a could not be removed" in caplog.text


def test_folders_are_no_parts(folder: Folder) -> None:
    (folder.files.parts / "lost+found").mkdir()
    (folder.files.parts / "somebody's").write_bytes(b"x")
    session_id = f"upl_{0:026}"
    folder.append(b"x", session_id=session_id)
    assert folder.parts.list_ids() == [session_id]


def test_nothing_is_written_through_a_link(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "theirs").write_bytes(b"somebody's")
    (folder.files.parts / "upl_a").symlink_to(tmp_path / "theirs")
    with pytest.raises(StorageError):
        folder.append(b"x")
    assert (tmp_path / "theirs").read_bytes() == b"somebody's"


def test_a_part_is_hashed_as_it_comes_and_not_read_again(folder: Folder) -> None:
    folder.append(DATA[:10])
    folder.append(DATA[10:])
    (folder.files.parts / "upl_a").write_bytes(bytes(len(DATA)))
    assert run(folder.parts.hash("upl_a")) == hashlib.sha256(DATA).hexdigest()


def test_a_part_of_another_process_is_read_to_be_hashed(folder: Folder) -> None:
    (folder.files.parts / "upl_a").write_bytes(DATA[:10])
    folder.append(DATA[10:])
    assert run(folder.parts.hash("upl_a")) == hashlib.sha256(DATA).hexdigest()


def test_the_hash_of_dropped_bytes_is_forgotten(folder: Folder) -> None:
    folder.append(b"kept")

    async def work() -> None:
        writer = await folder.parts.open("upl_a")
        await writer.append(b"dropped")
        await writer.drop()
        await writer.append(b" and more")
        await writer.sync()
        writer.close()

    run(work())
    assert run(folder.parts.hash("upl_a")) == hashlib.sha256(b"kept and more").hexdigest()


def test_a_removed_part_leaves_no_hash_behind(folder: Folder) -> None:
    folder.append(b"first")
    run(folder.parts.delete("upl_a"))
    folder.append(b"other")
    assert run(folder.parts.hash("upl_a")) == hashlib.sha256(b"other").hexdigest()
