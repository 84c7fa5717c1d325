"""Tests what a start does with stored files without a row: it removes deleted ones and sets the others aside."""

import os
import shutil
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from svc_daemon.operations.remove.setting_aside import forget_set_aside_files, sort_leftovers
from svc_daemon.operations.remove.sweeping import reconcile_index
from svc_daemon.settings.limits import Limits
from svc_daemon.store.rows.tombstones import create_tombstone
from tests.api.daemons import Daemon
from tests.api.fixtures import MakeDaemon
from tests.api.sessions import open_session, put_part
from tests.operations.breakages import HALF, PART, STRAY
from tests.provider.samples import make_document

pytestmark = pytest.mark.folders

DATA = b"The umber quay.\n"


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def aside(daemon: Daemon) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in daemon.files.aside.glob("*/*")}


def sort(daemon: Daemon) -> Counter[str]:
    return +daemon.loop.run(sort_leftovers(daemon.context))


def forget(daemon: Daemon, source_id: str) -> None:
    """Delete the rows of the source, as in a state that was restored from an older copy."""
    daemon.write(lambda db: db.execute("DELETE FROM memberships WHERE source_id = :id", {"id": source_id}))
    daemon.write(lambda db: db.execute("DELETE FROM sources WHERE id = :id", {"id": source_id}))


def make_stray(daemon: Daemon) -> None:
    (daemon.files.blobs / STRAY).write_bytes(DATA)


def forget_aside(daemon: Daemon) -> int:
    return daemon.loop.run(forget_set_aside_files(daemon.context))


def reconcile(daemon: Daemon) -> int:
    return daemon.loop.run(reconcile_index(daemon.context))


def test_blobs_and_parts_without_a_row_are_set_aside_and_a_blob_with_a_row_is_kept(daemon: Daemon) -> None:
    kept = daemon.add_source()
    make_stray(daemon)
    (daemon.files.parts / PART).write_bytes(DATA)
    (daemon.files.staging / HALF).write_bytes(b"x")
    assert sort(daemon) == {"removed": 1, "set aside": 2}
    assert (names(daemon.files.blobs), names(daemon.files.staging), names(daemon.files.parts)) == ({kept}, set(), set())
    assert aside(daemon) == {STRAY: DATA, PART: DATA}
    assert (names(daemon.files.aside), sort(daemon)) == ({datetime.now(UTC).date().isoformat()}, {"kept aside": 2})


def test_files_and_folders_that_the_service_did_not_create_are_left_alone(daemon: Daemon, tmp_path: Path) -> None:
    for folder in (daemon.files.blobs, daemon.files.staging, daemon.files.parts):
        (folder / "notes.txt").write_bytes(DATA)
        (folder / STRAY.replace("src", "upl")).mkdir()
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    for name in (STRAY, HALF, "notes.txt"):
        (theirs / name).write_bytes(DATA)
    for folder in (daemon.files.blobs, daemon.files.staging):
        folder.rename(folder.with_name(f"real-{folder.name}"))
        folder.symlink_to(theirs)
    assert (sort(daemon), names(theirs)) == ({"left": 1}, {STRAY, HALF, "notes.txt"})
    assert (daemon.files.parts / "notes.txt").exists()


def test_nothing_is_set_aside_through_a_symbolic_link_and_no_link_is_moved(
    daemon: Daemon, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blob, link = daemon.files.blobs / STRAY, daemon.files.blobs / f"{STRAY[:-1]}1"
    blob.write_bytes(DATA)
    link.symlink_to(tmp_path / "missing")
    daemon.files.aside.symlink_to(tmp_path)
    assert sort(daemon) == {"left": 2}
    assert f"{blob} can't be moved aside, and stays" in caplog.text
    daemon.files.aside.unlink()
    assert sort(daemon) == {"set aside": 1, "left": 1}
    (day,) = daemon.files.aside.iterdir()
    link.rename(day / link.name)
    assert sort(daemon) == {"kept aside": 1}
    assert (link.name in names(day), daemon.context.set_aside_files.counts.files) == (True, 1)


def test_files_set_aside_while_the_clock_was_behind_are_not_deleted_early(daemon: Daemon) -> None:
    make_stray(daemon)
    daemon.advance(-86_400 * 1000)
    assert sort(daemon) == {"set aside": 1}
    daemon.advance(86_400 * 1000)
    assert (forget_aside(daemon), aside(daemon)) == (0, {STRAY: DATA})


def test_the_index_of_a_team_without_a_row_is_searched_for_set_aside_files(daemon: Daemon) -> None:
    stray = make_document(STRAY, "umber quay", buckets=["bkt_one"])
    daemon.provider.put_documents(f"team_{'0' * 26}", [stray])
    make_stray(daemon)
    assert (sort(daemon), daemon.context.set_aside_files.counts.known) == ({"set aside": 1}, 1)


def test_blobs_of_deleted_sources_and_second_links_to_open_sessions_are_removed(daemon: Daemon) -> None:
    daemon.delete(f"/v1/sources/{daemon.add_source()}")
    assert sort(daemon) == {"removed": 1}
    make_stray(daemon)
    assert sort(daemon) == {"set aside": 1}
    daemon.write(lambda connection: create_tombstone(connection, daemon.team_id, STRAY, None, "now"))
    assert (sort(daemon), names(daemon.files.blobs), aside(daemon)) == ({"removed": 1}, set(), {})
    session = open_session(daemon, DATA)
    put_part(daemon, session, DATA, 0, len(DATA) - 1)
    os.link(daemon.files.parts / session["session_id"], daemon.files.blobs / f"{STRAY[:-1]}1")
    assert (sort(daemon), names(daemon.files.parts)) == ({"removed": 1}, {session["session_id"]})


@pytest.mark.sqlite
def test_set_aside_files_are_moved_back_once_they_have_rows(
    working: Daemon, make_daemon: MakeDaemon, tmp_path: Path
) -> None:
    source_id = working.add_ready(DATA)
    session = open_session(working, DATA)
    put_part(working, session, DATA, 0, 5)
    working.close()
    newer = shutil.copy(working.files.state, tmp_path / "newer.db")
    older = make_daemon()
    forget(older, source_id)
    older.write(lambda connection: connection.execute("DELETE FROM uploads"))
    assert sort(older) == {"set aside": 2}
    reconcile(older)
    older.close()
    shutil.copy(newer, working.files.state)
    again = make_daemon()
    assert (sort(again), aside(again), reconcile(again)) == ({"taken back": 2}, {}, 0)
    assert again.ask("GET", f"/v1/sources/{source_id}/content").content == DATA
    assert (again.source(source_id)["ready"], again.found("quay")) == (True, [source_id])
    assert (again.files.parts / session["session_id"]).read_bytes() == DATA[:6]


def test_a_set_aside_file_of_another_size_is_not_moved_back(daemon: Daemon) -> None:
    source_id = daemon.add_source(DATA)
    day = daemon.files.aside / "2026-01-01"
    day.mkdir(parents=True)
    (daemon.files.blobs / source_id).rename(day / source_id)
    (day / source_id).write_bytes(DATA[:5])
    assert sort(daemon) == {"kept aside": 1}


def test_a_document_stays_in_the_index_as_long_as_its_bytes_are_set_aside(working: Daemon) -> None:
    source_id = working.add_ready(DATA)
    working.stop()
    forget(working, source_id)
    assert (sort(working), working.context.set_aside_files.counts.known, reconcile(working)) == ({"set aside": 1}, 1, 0)
    assert working.provider.get_document(working.team_id, source_id) is not None
    working.advance(86_400 * 32)
    assert (forget_aside(working), reconcile(working)) == (1, 1)
    assert working.provider.get_document(working.team_id, source_id) is None


def test_set_aside_files_expire_after_the_configured_days_but_not_other_files(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon(limits=Limits(set_aside_days=3))
    make_stray(daemon)
    assert sort(daemon) == {"set aside": 1}
    (day,) = daemon.files.aside.iterdir()
    (day / "notes.txt").write_bytes(DATA)
    (daemon.files.aside / "2020-01-01-of-mine").mkdir()
    forgotten = []
    for days in (3, 1):
        daemon.advance(86_400 * days)
        forgotten.append(forget_aside(daemon))
    assert (forgotten, names(daemon.files.aside)) == ([0, 1], {day.name, "2020-01-01-of-mine"})
    assert (names(day), daemon.context.set_aside_files.counts.files) == ({"notes.txt"}, 0)


def test_many_set_aside_files_cause_a_warning_which_says_how_many_the_index_knows(
    working: Daemon, caplog: pytest.LogCaptureFixture
) -> None:
    def warning() -> str:
        caplog.clear()
        sort(working)
        message = working.ask("GET", "/healthz").json()["set_aside"]["message"] or ""
        assert (message in caplog.text) if message else ("state database" not in caplog.text)
        return str(message)

    for number in range(9):
        (working.files.blobs / f"src_{number:026}").write_bytes(DATA)
    assert warning() == ""
    (working.files.blobs / f"src_{9:026}").write_bytes(DATA)
    assert "10 stored files are not in the state database" in warning()
    source_id = working.add_ready(DATA)
    working.stop()
    forget(working, source_id)
    assert "search indexes know 1 of them" in warning()
