"""Tests the sync of a folder that callers share."""

import resource
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from svc_daemon.store.files.syncing import FolderSync
from tests.acceptance.installations import PATIENCE_S, wait_until
from tests.limits import limited
from tests.store.folders import on_folder_sync


def test_too_many_open_files_do_not_count_as_a_failed_sync(tmp_path: Path) -> None:
    broken: list[OSError] = []
    folder_sync = FolderSync(tmp_path, broken.append)
    with limited(resource.RLIMIT_NOFILE, 0), pytest.raises(OSError, match="Too many open files"):
        folder_sync.sync()
    assert broken == []
    folder_sync.sync()


def test_concurrent_callers_share_one_sync_of_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a sync runs, all other callers wait, and then share one more sync."""
    begun, let_go = threading.Event(), threading.Event()
    syncs: list[Path] = []

    def slow(folder: Path) -> None:
        syncs.append(folder)
        begun.set()
        assert let_go.wait(PATIENCE_S)

    on_folder_sync(monkeypatch, slow)
    shared = FolderSync(tmp_path)
    with ThreadPoolExecutor(21) as pool:
        calls = [pool.submit(shared.sync)]
        assert begun.wait(PATIENCE_S)
        calls += [pool.submit(shared.sync) for _ in range(20)]
        wait_until(lambda: shared._asked == 21, "everybody to queue up")
        let_go.set()
        for call in calls:
            call.result(PATIENCE_S)
    assert len(syncs) == 2


def test_a_sync_begun_before_a_rename_does_not_count_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []
    on_folder_sync(monkeypatch, lambda folder: seen.append([entry.name for entry in folder.iterdir()]))
    shared = FolderSync(tmp_path)

    def rename_and_sync(number: int) -> bool:
        (tmp_path / f"{number}").touch()
        before = len(seen)
        shared.sync()
        return any(f"{number}" in names for names in seen[before:])

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(rename_and_sync, range(300)))
