"""A move copies everything that an installation has, goes on where it was interrupted, and leaves its source alone."""

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

from svc_daemon.core.ids import Ids
from svc_daemon.core.times import Clock
from svc_daemon.errors import StorageError
from svc_daemon.offline_move import open_directory
from svc_daemon.offline_verify import verify_directory
from svc_daemon.operations import moving
from svc_daemon.operations.moving import BytesDamaged, MoveRefused, MoveReport, Place, cancel_move
from svc_daemon.paths import DataFiles
from svc_daemon.store.migrations import list_tables
from tests.api.fixtures import MakeDaemon
from tests.operations.breakages import overwrite
from tests.operations.directories import Whole

pytestmark = [pytest.mark.sqlite, pytest.mark.folders, pytest.mark.index_files]
CLOCK = Clock(now=partial(datetime.now, UTC), monotonic=time.monotonic)
#: Tables that a move changes: it marks both sides, and has the indexes rebuilt.
CHANGED = {"facts", "tasks", "memberships", "buckets", "bucket_changes", "events"}


class Interrupted(Exception):
    """As if the process had ended here."""


@contextmanager
def places(whole: Whole, folder: Path) -> Iterator[tuple[Place, Place]]:
    with ExitStack() as stack:
        source = stack.enter_context(open_directory(whole.files))
        yield source, stack.enter_context(open_directory(DataFiles(folder)))


def move(whole: Whole, folder: Path, note: Callable[[str], object] = len) -> MoveReport:
    report = MoveReport(note=note)
    with places(whole, folder) as (source, target):
        asyncio.run(moving.move(source, target, CLOCK, Ids(now=CLOCK.now, random=os.urandom), report))
    return report


def cancel(whole: Whole) -> None:
    with open_directory(whole.files) as source:
        asyncio.run(cancel_move(source))


def rows(files: DataFiles) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all tables that a move doesn't change, but for leases."""
    with closing(sqlite3.connect(files.state)) as state:
        return {
            table.name: state.execute(f"SELECT * FROM {table.name} ORDER BY {', '.join(table.key)}").fetchall()
            for table in list_tables()
            if table.name not in CHANGED
        }


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def interrupt(at: int) -> Callable[[str], None]:
    """Interrupt the move at this line of progress."""
    lines: list[str] = []

    def note(line: str) -> None:
        lines.append(line)
        if len(lines) == at:
            raise Interrupted

    return note


def test_a_move_that_is_interrupted_at_every_step_ends_in_the_same_installation(
    whole: Whole, tmp_path: Path, make_daemon: MakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moving, "PAGE_ROWS", 2)
    expected = rows(whole.files), contents(whole.files.blobs), contents(whole.files.parts)
    target = DataFiles(tmp_path / "target")
    interrupted = 0
    while True:
        try:
            # One more step each time, so that each of them is the last of some run.
            move(whole, target.root, interrupt(5 + interrupted % 3))
            break
        except Interrupted:
            interrupted += 1
        with pytest.raises(StorageError, match="Only a part"):
            verify_directory(target.root, read_data=False, repair=False)
        with pytest.raises(StorageError, match="is being moved"):
            make_daemon("data")
    assert interrupted > 5
    assert (rows(target), contents(target.blobs), contents(target.parts)) == expected
    assert contents(whole.files.blobs) == expected[1]
    assert target.secret.read_bytes() == whole.files.secret.read_bytes()
    assert move(whole, target.root).was_done
    with pytest.raises(StorageError, match="was moved to"):
        make_daemon("data")
    shutil.copy(whole.files.admin_key, target.admin_key)
    daemon = make_daemon("target")
    daemon.start()
    daemon.wait_ready(whole.source, whole.shared, whole.imported)
    assert whole.source in daemon.found("umber quay paragraph", bucket_ids=[whole.bucket])
    daemon.close()
    assert verify_directory(target.root, read_data=True, repair=False).is_whole


def test_a_source_that_was_served_in_between_is_copied_again(
    whole: Whole, tmp_path: Path, make_daemon: MakeDaemon
) -> None:
    target = DataFiles(tmp_path / "target")
    with pytest.raises(Interrupted):
        move(whole, target.root, interrupt(12))
    cancel(whole)
    daemon = make_daemon("data")
    added = daemon.add_source(b"Added in between.\n", filename="added.txt")
    daemon.close()
    (whole.files.parts / whole.session).write_bytes(b"01234")
    report = move(whole, target.root)
    assert (report.kept, report.copied, report.sources) == (7, 1, 8)
    assert contents(target.parts) == {whole.session: b"01234"}
    assert rows(target) == rows(whole.files)
    assert added in contents(target.blobs)


def test_wrong_bytes_and_a_place_that_is_taken_leave_the_source_as_it_was(whole: Whole, tmp_path: Path) -> None:
    other = whole.copy(tmp_path / "other")
    with pytest.raises(MoveRefused, match="is not empty"):
        move(whole, other.files.root)
    assert whole.verify().is_whole
    overwrite(whole.files.blobs / whole.source)
    (whole.files.blobs / whole.shared).unlink()
    with pytest.raises(BytesDamaged) as refused:
        move(whole, tmp_path / "target")
    assert {whole.source in each or whole.shared in each for each in refused.value.problems} == {True}
    assert whole.verify(read_data=True, repair=True).is_whole
    report = move(whole, tmp_path / "target")
    assert (report.sources, report.copied, report.kept) == (7, 0, 7)
    # A half target of one installation is not continued by another.
    with pytest.raises(Interrupted):
        move(other, tmp_path / "second", interrupt(3))
    with places(other, tmp_path / "third"):
        pass
    with pytest.raises(MoveRefused, match=r"is being moved to .*second"):
        move(other, tmp_path / "third")
