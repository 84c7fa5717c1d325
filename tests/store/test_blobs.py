"""Tests blobs: the order of syncs, and that a failure leaves neither a partial blob nor a staging file."""

import asyncio
import errno
import os
import resource
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from svc_daemon.errors import StorageError
from svc_daemon.paths import DataFiles
from svc_daemon.store.files.blobs import Blobs
from svc_daemon.store.files.staging import SPILL_BYTES, StagedFile
from tests.acceptance.installations import PATIENCE_S
from tests.limits import limited
from tests.store.folders import on_folder_sync

pytestmark = pytest.mark.anyio

SMALL_AND_SPILLED = [10, SPILL_BYTES + 10]


@pytest.fixture
def files(tmp_path: Path) -> DataFiles:
    for name in ("blobs", "staging"):
        (tmp_path / name).mkdir()
    return DataFiles(tmp_path)


@pytest.fixture
def blobs(files: DataFiles) -> Iterator[Blobs]:
    with ThreadPoolExecutor(4) as executor:
        yield Blobs(files, executor, map("staged{}".format, count()).__next__)


def _content(size_bytes: int) -> bytes:
    return (bytes(range(256)) * (size_bytes // 256 + 1))[:size_bytes]


async def _fill(staged: StagedFile, content: bytes) -> StagedFile:
    for start in range(0, len(content), 300_000):
        await staged.append(content[start : start + 300_000])
    return staged


async def _keep(blobs: Blobs, content: bytes, source_id: str = "src_1") -> StagedFile:
    staged = await _fill(blobs.stage(), content)
    await staged.keep(source_id)
    return staged


def _names(*folders: Path) -> list[str]:
    return sorted(entry.name for folder in folders for entry in folder.iterdir())


async def test_small_files_are_written_to_disk_only_when_they_are_kept(blobs: Blobs, files: DataFiles) -> None:
    staged = await _fill(blobs.stage(), _content(SPILL_BYTES - 1))
    assert _names(files.staging) == []
    await staged.append(b"x")
    assert [path.stat().st_size for path in files.staging.iterdir()] == [SPILL_BYTES]
    await staged.discard()


async def test_a_file_is_synced_after_its_rename_and_then_its_folder(
    blobs: Blobs, files: DataFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Record the order of fsyncs: the folder must be synced last, when it already has the file's name."""
    synced: list[str] = []
    fsync = os.fsync

    def watch(descriptor: int) -> None:
        assert blobs.path("src_1").stat().st_size == SPILL_BYTES + 5
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watch)
    await _keep(blobs, _content(SPILL_BYTES + 5))
    assert synced == [str(blobs.path("src_1")), str(files.blobs)]


async def test_files_that_are_kept_at_the_same_time_are_all_complete(blobs: Blobs, files: DataFiles) -> None:
    contents = {f"src_{number:02}": _content(1000 + number * 70_000) for number in range(24)}

    await asyncio.gather(*(_keep(blobs, content, source_id) for source_id, content in contents.items()))
    assert {source_id: blobs.path(source_id).read_bytes() for source_id in _names(files.blobs)} == contents
    assert _names(files.staging) == []


@pytest.mark.parametrize("size_bytes", SMALL_AND_SPILLED)
@pytest.mark.parametrize("failing", ["staging", "blobs"])
async def test_a_missing_folder_is_a_storage_error_and_leaves_no_file(
    blobs: Blobs, files: DataFiles, size_bytes: int, failing: str
) -> None:
    staged = blobs.stage()
    if failing == "blobs":
        await _fill(staged, _content(size_bytes))
    (files.root / failing).rename(files.root / "away")
    with pytest.raises(StorageError) as refused:
        await _fill(staged, _content(size_bytes))
        await staged.keep("src_1")
    assert refused.value.details["errno"] == errno.ENOENT
    await staged.discard()
    (files.root / "away").rename(files.root / failing)
    assert _names(files.blobs, files.staging) == []


@pytest.mark.parametrize("size_bytes", SMALL_AND_SPILLED)
@pytest.mark.parametrize("failing", ["staging", "blobs"])
async def test_a_failed_cleanup_does_not_hide_the_first_error(
    blobs: Blobs, files: DataFiles, size_bytes: int, failing: str, caplog: pytest.LogCaptureFixture
) -> None:
    staged = await _fill(blobs.stage(), _content(size_bytes))
    for folder in (files.staging, files.blobs) if failing == "staging" else (files.blobs,):
        folder.rename(files.root / f"away-{folder.name}")
        # With a file in place of the folder, removing from it fails too.
        folder.write_text("in the way")
    with pytest.raises(StorageError) as refused:
        await staged.keep("src_1")
    assert refused.value.details["errno"] == errno.ENOTDIR
    await staged.discard()
    assert "src_1 could not be removed: Not a directory" in caplog.text


async def test_a_disk_that_becomes_full_during_a_write_leaves_no_file(blobs: Blobs, files: DataFiles) -> None:
    staged = blobs.stage()
    # Like a full disk, the kernel shortens the write that reaches this size, and refuses the next one.
    with limited(resource.RLIMIT_FSIZE, SPILL_BYTES * 3 // 2), pytest.raises(StorageError) as refused:
        await _fill(staged, _content(3 * SPILL_BYTES))
    assert refused.value.details["errno"] == errno.EFBIG
    await staged.discard()
    assert _names(files.blobs, files.staging) == []


@pytest.mark.parametrize("size_bytes", SMALL_AND_SPILLED)
async def test_a_failed_sync_leaves_no_file_and_is_not_retried(
    blobs: Blobs, files: DataFiles, size_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    on_folder_sync(monkeypatch, fail)
    for _ in range(2):
        with pytest.raises(StorageError) as refused:
            await _keep(blobs, _content(size_bytes))
        assert refused.value.details["errno"] == errno.EIO
        monkeypatch.undo()
    assert _names(files.blobs, files.staging) == []


@pytest.mark.parametrize("size_bytes", SMALL_AND_SPILLED)
async def test_a_cancelled_keep_leaves_no_file(
    blobs: Blobs, files: DataFiles, size_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    syncing, let_go = threading.Event(), threading.Event()

    def hang(_: Path) -> None:
        syncing.set()
        assert let_go.wait(PATIENCE_S)

    on_folder_sync(monkeypatch, hang)

    keeping = asyncio.create_task(_keep(blobs, _content(size_bytes)))
    await asyncio.to_thread(syncing.wait, PATIENCE_S)
    keeping.cancel()
    # The thread is still working: the caller must wait for its end.
    await asyncio.wait([keeping], timeout=0.05)
    assert not keeping.done()
    let_go.set()
    with pytest.raises(asyncio.CancelledError):
        await keeping
    assert _names(files.blobs, files.staging) == []


async def test_a_blob_that_can_not_be_deleted_does_not_block_others(blobs: Blobs, files: DataFiles) -> None:
    for name in ("src_1", "src_3"):
        blobs.path(name).write_bytes(b"x")
    blobs.path("src_2").mkdir()
    assert list(await blobs.delete(["src_1", "src_2", "src_3"])) == ["src_2"]
    assert _names(files.blobs) == ["src_2"]


async def test_a_link_or_a_folder_is_not_a_blob(blobs: Blobs, files: DataFiles) -> None:
    (files.root / "theirs").write_bytes(b"somebody's")
    blobs.path("src_1").symlink_to(files.root / "theirs")
    blobs.path("src_2").mkdir()
    for name in ("src_1", "src_2"):
        assert await blobs.blob(name).find() is None
        with pytest.raises(FileNotFoundError):
            await blobs.blob(name).read(0, 10)


def test_clearing_the_staging_folder_removes_only_staging_files_and_links(blobs: Blobs, files: DataFiles) -> None:
    (files.staging / "extract" / "child").mkdir(parents=True)
    (files.staging / "extract" / "child" / "page.tmp").write_bytes(b"in use")
    for name in (f"{0:032}", f"{1:032}", f"{2:032}", "notes.txt"):
        (files.staging / name).write_bytes(b"x")
    (files.staging / f"{9:032}").symlink_to(files.staging / "extract")
    assert (blobs.clear_staging(), blobs.clear_staging()) == (4, 0)
    assert _names(files.staging) == ["extract", "notes.txt"]
    assert (files.staging / "extract" / "child" / "page.tmp").read_bytes() == b"in use"


def test_no_staging_file_is_removed_through_a_link(blobs: Blobs, files: DataFiles) -> None:
    files.staging.rename(files.root / "theirs")
    files.staging.symlink_to(files.root / "theirs")
    (files.staging / ("0" * 32)).write_bytes(b"somebody's")
    blobs.delete_staged("0" * 32)
    assert _names(files.root / "theirs") == ["0" * 32]


#: Whether uploads are accepted, by the disk's size, free space and reserve in megabytes.
BYTE = 1 / 1024**2
ROOM: dict[tuple[float, ...], bool] = {(10_240, 257, 256): True, (10_240, 256, 256): False, (10_240, 100, BYTE): False}
ROOM |= {(40_960, 800, 256): False, (40_960, 900, 256): True, (1024, BYTE, 0): True}
ROOM |= {(1_024_000, 1024, 256): False, (1_024_000, 1024 + BYTE, 256): True, (1_024_000, 2048, 3072): False}


def test_uploads_are_accepted_if_free_space_exceeds_the_reserve(blobs: Blobs, monkeypatch: pytest.MonkeyPatch) -> None:
    for sizes, has_room in ROOM.items():
        total, free, reserve = (int(size * 1024**2) for size in sizes)
        monkeypatch.setattr(shutil, "disk_usage", lambda _, t=total, f=free: SimpleNamespace(total=t, free=f))
        assert blobs.has_room(reserve) is has_room, sizes
