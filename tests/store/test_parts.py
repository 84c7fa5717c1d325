"""Tests the bytes of open sessions, sent singly or as packs, and files kept for a backup: when they are durable."""

import asyncio
import errno
import os
import signal
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from svc_daemon.core.uploads.packs import place_items
from svc_daemon.errors import StorageError
from svc_daemon.store.files import removals, syncing
from svc_daemon.store.files.parts import FEW_FILES, WRITE_BYTES, PackWriter
from svc_daemon.store.files.removals import BackupRunning, Removals
from tests.store.folders import Folder, watch_syncs

DATA = os.urandom(WRITE_BYTES + 1000)


def test_chunks_are_appended_and_only_a_new_file_syncs_its_folder(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = watch_syncs(monkeypatch)
    assert (folder.parts.size_bytes("upl_a"), folder.append(DATA[:10], DATA[10:500])) == (0, 500)
    assert synced == ["upl_a", "parts"]
    assert (folder.append(DATA[500:]), folder.stored()) == (len(DATA), DATA)
    assert synced == ["upl_a", "parts", "upl_a"]
    assert (folder.files.parts / "upl_a").stat().st_mode & 0o777 == 0o600


def test_linking_makes_a_durable_blob_and_keeps_the_part(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = watch_syncs(monkeypatch)
    (folder.files.parts / "upl_a").write_bytes(DATA)
    assert asyncio.run(folder.parts.link({"upl_a": "src_a"}, {})) == {"upl_a": DATA[:8192]}, "what sniffing looks at"
    assert asyncio.run(folder.parts.settle("upl_a")) == [len(DATA)]
    assert synced == ["upl_a", "parts", "blobs"], "what is durable is not synced again"
    assert folder.blobs.path("src_a").read_bytes() == folder.stored() == DATA


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


NAMES = [f"upl_{number:02}" for number in range(FEW_FILES + 2)]
#: Part 5 is larger than one write.
PIECES = {name: os.urandom(2 * WRITE_BYTES + 7 if number == 5 else 100 + number) for number, name in enumerate(NAMES)}
WHOLE = b"".join(PIECES.values())


def send(folder: Folder, data: bytes) -> None:
    """Append the data in two chunks after the stored bytes of the first part, then sync."""

    async def work() -> None:
        held = await folder.parts.settle(*NAMES)
        items = place_items((name, len(PIECES[name]), size) for name, size in zip(NAMES, held, strict=True))
        first = held[0]
        with closing(PackWriter(folder.parts, items, first, first + len(data))) as writer:
            try:
                await writer.append(data[:150])
                await writer.append(data[150:])
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
    is_syncable = syncing.is_syncable(folder.files.parts)
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

    monkeypatch.setattr(syncing, "is_syncable", lambda _: True)
    monkeypatch.setattr(os, "open", watched)
    send(folder, WHOLE)
    assert opened == ["parts", *NAMES]


def test_few_files_are_synced_one_by_one_and_so_are_all_without_syncfs(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = watch_syncs(monkeypatch)
    send(folder, WHOLE[:150])
    assert synced == [*NAMES[:2], "parts"]
    monkeypatch.setattr(syncing, "is_syncable", lambda _: False)
    send(folder, WHOLE[100:])
    assert synced[3:] == [*NAMES[1:], "parts"]
    assert stored(folder) == PIECES


def test_each_part_is_hashed_while_it_is_received(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    send(folder, WHOLE[:5000])
    for path in folder.files.parts.iterdir():
        path.chmod(0)
    monkeypatch.setattr("svc_daemon.store.files.parts.hash_file", None)
    assert {name: hashed(folder, name) for name in NAMES[:5]} == {
        name: sha256(data).hexdigest() for name, data in list(PIECES.items())[:5]
    }


def test_a_failed_sync_discards_unacknowledged_bytes(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    send(folder, WHOLE[:150])
    acknowledged = stored(folder)

    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, "broken")

    for is_syncable in (True, False):
        monkeypatch.setattr(syncing, "is_syncable", lambda _, found=is_syncable: found)
        monkeypatch.setattr(syncing, "sync", refuse)
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


def names(path: Path) -> list[str]:
    return sorted(each.name for each in path.iterdir()) if path.exists() else []


@pytest.mark.rule("backup.removed")
def test_files_removed_during_a_backup_are_kept_until_it_ends(folder: Folder) -> None:
    files, gate = folder.files, Removals(folder.files.held)
    for name in ("src_a", "src_b"):
        (files.blobs / name).write_bytes(name.encode())
    (files.parts / "upl_a").write_bytes(b"first")
    (files.blobs / "src_link").symlink_to(files.blobs / "src_b")
    with gate.pausing():
        assert asyncio.run(folder.blobs.delete(["src_a", "src_link", "src_gone"])) == {}
        asyncio.run(folder.parts.delete("upl_a"))
        # The session is used again, and ends again: the backup needs the first bytes.
        (files.parts / "upl_a").write_bytes(b"later")
        asyncio.run(folder.parts.delete("upl_a"))
        assert (names(files.blobs), names(files.parts)) == (["src_b"], [])
        assert (files.held / "upl_a").read_bytes() == b"first"
        assert (names(files.held), folder.blobs.removals.clear_held()) == (["src_a", "src_link", "upl_a"], 0)
    assert (names(files.held), names(files.blobs)) == ([], ["src_b"])
    assert asyncio.run(folder.blobs.delete(["src_b"])) == {}
    assert (names(files.held), names(files.blobs)) == ([], [])


@pytest.mark.rule("backup.removed")
def test_files_kept_for_a_killed_backup_are_removed(folder: Folder) -> None:
    files = folder.files
    (files.blobs / "src_a").write_bytes(b"a")
    ready, done = os.pipe()
    if (child := os.fork()) == 0:
        with Removals(files.held).pausing():
            os.write(done, b"1")
            signal.pause()
    os.read(ready, 1)
    assert asyncio.run(folder.blobs.delete(["src_a"])) == {}
    assert names(files.held) == ["src_a"]
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert (folder.blobs.removals.clear_held(), names(files.held)) == (1, [])


def test_a_second_backup_at_the_same_time_is_refused(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removals, "PATIENCE_S", 0.0)
    gate = Removals(folder.files.held)
    with gate.pausing(), pytest.raises(BackupRunning), gate.pausing():
        pass
    with gate.pausing():
        pass


def test_only_own_files_are_removed_and_not_through_a_link(folder: Folder, tmp_path: Path) -> None:
    held = folder.files.held
    held.mkdir()
    for name in ("src_a", "upl_a", "notes.txt"):
        (held / name).write_bytes(b"x")
    assert (folder.blobs.removals.clear_held(), names(held)) == (2, ["notes.txt"])
    (held / "src_a").write_bytes(b"theirs")
    held.rename(tmp_path / "theirs")
    held.symlink_to(tmp_path / "theirs")
    assert (folder.blobs.removals.clear_held(), names(tmp_path / "theirs")) == (0, ["notes.txt", "src_a"])


def test_name_that_is_no_file_name_is_refused_and_does_not_block_others(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "theirs").write_bytes(b"theirs")
    for name in ("../../theirs", str(tmp_path / "theirs"), "..", "", "src_a\0", "src_a\n"):
        (folder.files.blobs / "src_a").write_bytes(b"x")
        assert list(asyncio.run(folder.blobs.delete([name, "src_a"]))) == [name]
        asyncio.run(folder.blobs.move_damaged(name))
        for path in (folder.blobs.path, folder.parts.path, folder.parts.size_bytes):
            with pytest.raises(StorageError, match="can't be the name of a file"):
                path(name)
    assert (names(folder.files.blobs), (tmp_path / "theirs").read_bytes()) == ([], b"theirs")
