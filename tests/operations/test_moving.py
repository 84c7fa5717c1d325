"""Tests that a move copies a complete installation, can be interrupted, and doesn't change what it copies."""

import asyncio
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from svc_daemon.cluster import moving
from svc_daemon.cluster.moving import BytesDamaged, MoveRefused, MoveReport, Place, cancel_move
from svc_daemon.cluster.offline_move import open_directory
from svc_daemon.core.ids import Ids
from svc_daemon.core.times import Clock
from svc_daemon.errors import StorageError
from svc_daemon.offline.verify import verify_directory
from svc_daemon.paths import DataFiles
from svc_daemon.store.migrations import list_tables
from tests.api.fixtures import MakeDaemon
from tests.operations.breakages import overwrite
from tests.operations.directories import SampleDirectory

pytestmark = [pytest.mark.sqlite, pytest.mark.folders, pytest.mark.index_files]
CLOCK = Clock(now=partial(datetime.now, UTC), monotonic=time.monotonic)
#: Tables that a move changes: it marks both installations, and queues rebuilds of the indexes.
CHANGED = {"facts", "tasks", "memberships", "buckets", "bucket_changes", "events"}


class Interrupted(Exception):
    """Raised to end a move as if its process had been killed."""


@contextmanager
def places(directory: SampleDirectory, folder: Path) -> Iterator[tuple[Place, Place]]:
    with ExitStack() as stack:
        source = stack.enter_context(open_directory(directory.files))
        yield source, stack.enter_context(open_directory(DataFiles(folder)))


def move(directory: SampleDirectory, folder: Path, note: Callable[[str], object] = len) -> MoveReport:
    report = MoveReport(note=note)
    with places(directory, folder) as (source, target):
        asyncio.run(moving.move(source, target, CLOCK, Ids(now=CLOCK.now, random=os.urandom), report))
    return report


def cancel(directory: SampleDirectory) -> None:
    with open_directory(directory.files) as source:
        asyncio.run(cancel_move(source))


def rows(files: DataFiles) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows of the tables that a move doesn't change."""
    with closing(sqlite3.connect(files.state)) as state:
        return {
            table.name: state.execute(f"SELECT * FROM {table.name} ORDER BY {', '.join(table.key)}").fetchall()
            for table in list_tables()
            if table.name not in CHANGED
        }


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def interrupt(at: int) -> Callable[[str], None]:
    """Return a `note` callback that interrupts the move at this line of progress."""
    lines: list[str] = []

    def note(line: str) -> None:
        lines.append(line)
        if len(lines) == at:
            raise Interrupted

    return note


def test_a_move_that_is_interrupted_repeatedly_copies_the_complete_installation(
    directory: SampleDirectory, tmp_path: Path, make_daemon: MakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moving, "PAGE_ROWS", 2)
    expected = rows(directory.files), contents(directory.files.blobs), contents(directory.files.parts)
    target = DataFiles(tmp_path / "target")
    interrupted = 0
    while True:
        try:
            # Each run makes some more steps, so that runs end at many different steps.
            move(directory, target.root, interrupt(5 + interrupted % 3))
            break
        except Interrupted:
            interrupted += 1
        with pytest.raises(StorageError, match="Only a part"):
            verify_directory(target.root, read_data=False, repair=False)
        with pytest.raises(StorageError, match="is being moved"):
            make_daemon("data")
    assert interrupted > 5
    assert (rows(target), contents(target.blobs), contents(target.parts)) == expected
    assert contents(directory.files.blobs) == expected[1]
    assert target.secret.read_bytes() == directory.files.secret.read_bytes()
    assert move(directory, target.root).was_done
    with pytest.raises(StorageError, match="was moved to"):
        make_daemon("data")
    shutil.copy(directory.files.admin_key, target.admin_key)
    daemon = make_daemon("target")
    daemon.start()
    daemon.wait_ready(directory.source, directory.shared, directory.imported)
    assert directory.source in daemon.found("umber quay paragraph", bucket_ids=[directory.bucket])
    daemon.close()
    assert verify_directory(target.root, read_data=True, repair=False).is_whole


def test_a_move_after_a_cancel_also_copies_what_changed_in_between(
    directory: SampleDirectory, tmp_path: Path, make_daemon: MakeDaemon
) -> None:
    target = DataFiles(tmp_path / "target")
    with pytest.raises(Interrupted):
        move(directory, target.root, interrupt(12))
    cancel(directory)
    daemon = make_daemon("data")
    added = daemon.add_source(b"Added in between.\n", filename="added.txt")
    daemon.close()
    (directory.files.parts / directory.session).write_bytes(b"01234")
    report = move(directory, target.root)
    assert (report.kept, report.copied, report.sources) == (7, 1, 8)
    assert contents(target.parts) == {directory.session: b"01234"}
    assert rows(target) == rows(directory.files)
    assert added in contents(target.blobs)


def test_a_move_is_refused_for_damaged_bytes_and_for_a_target_in_use(
    directory: SampleDirectory, tmp_path: Path
) -> None:
    other = directory.copy(tmp_path / "other")
    with pytest.raises(MoveRefused, match="is not empty"):
        move(directory, other.files.root)
    assert directory.verify().is_whole
    overwrite(directory.files.blobs / directory.source)
    (directory.files.blobs / directory.shared).unlink()
    with pytest.raises(BytesDamaged) as refused:
        move(directory, tmp_path / "target")
    assert {directory.source in each or directory.shared in each for each in refused.value.problems} == {True}
    assert directory.verify(read_data=True, repair=True).is_whole
    report = move(directory, tmp_path / "target")
    assert (report.sources, report.copied, report.kept) == (7, 0, 7)
    # A partial copy of one installation is not continued by another.
    with pytest.raises(Interrupted):
        move(other, tmp_path / "second", interrupt(3))
    with places(other, tmp_path / "third"):
        pass
    with pytest.raises(MoveRefused, match=r"is being moved to .*second"):
        move(other, tmp_path / "third")
