"""A state database that is older, damaged or missing causes no loss of stored files."""

import hashlib
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.acceptance.calls import list_sources, make_bucket, search, upload, wait_ended
from tests.acceptance.installations import PATIENCE_S, Installation, wait_until

pytestmark = [pytest.mark.sqlite, pytest.mark.folders]

BUCKET = "inbox"


def content(number: int) -> bytes:
    return f"# Note {number}\n\nThe umber quay number{number} was built of grey stone.\n".encode()


def fill(installation: Installation, numbers: range) -> None:
    """Upload the notes with these numbers and wait until they are ready."""
    with installation.client() as client:
        make_bucket(client, BUCKET)
        made = [upload(client, BUCKET, f"{n}.md", content(n)).json()["id"] for n in numbers]
        assert all(wait_ended(client, source_id)["ready"] for source_id in made)


def stored(installation: Installation) -> list[str]:
    """Return the hashes of all stored files, including those set aside, but not those that the daemon is moving."""
    hashes = []
    for path in (*installation.files.blobs.rglob("*"), *installation.files.aside.rglob("*")):
        with suppress(FileNotFoundError, IsADirectoryError):
            hashes.append(hashlib.sha256(path.read_bytes()).hexdigest())
    return sorted(hashes)


def assert_notes(installation: Installation, count: int) -> None:
    """Assert that each of `count` notes is one ready source with its title and bytes, and that a search finds it."""
    with installation.client() as client:
        sources = {source["title"]: source["id"] for source in list_sources(client, BUCKET)}
        assert (set(sources), len(list_sources(client, BUCKET))) == ({f"{n}.md" for n in range(count)}, count)
        for number in range(count):
            source_id = sources[f"{number}.md"]
            assert wait_ended(client, source_id)["ready"], source_id
            assert client.get(f"/v1/sources/{source_id}/content").content == content(number)
            assert source_id in [hit["source_id"] for hit in search(client, f"number{number}", BUCKET)]
    installation.assert_intact()


@pytest.fixture
def restored(installation: Installation, tmp_path: Path) -> Installation:
    """An installation with 15 notes whose state database was replaced with a copy made after five of them."""
    fill(installation, range(5))
    installation.stop()
    older = shutil.copy(installation.files.state, tmp_path / "older.db")
    installation.start()
    fill(installation, range(5, 15))
    installation.stop()
    shutil.copy(older, installation.files.state)
    return installation


def test_older_state_loses_no_stored_files_and_a_repair_recovers_all_sources(restored: Installation) -> None:
    before = stored(restored)
    assert len(before) == 15
    restored.start()
    wait_until(lambda: stored(restored) == before, "all stored files are there")
    warning = "10 stored files are not in the state database, and search indexes know 10 of them."
    assert warning in restored.files.log.read_text()
    checks = {check["check"]: check for check in restored.svc("doctor", "--json").json["checks"]}
    assert (checks["stored files"]["state"], warning in checks["stored files"]["text"]) == ("warning", True)
    restored.stop()
    found = restored.verify("--json")
    assert (found.exit, [problem["repair"] for problem in found.json["problems"]]) == (1, ["recover"] * 10)
    assert (stored(restored), restored.verify("--repair").exit) == (before, 0)
    restored.start()
    assert (restored.health() or {})["set_aside"]["files"] == 0
    assert_notes(restored, 15)


def test_damaged_write_ahead_log_after_a_kill_loses_no_stored_files(installation: Installation) -> None:
    fill(installation, range(30))
    installation.kill()
    before = stored(installation)
    log = installation.files.state.with_name("state.db-wal")
    data, middle = log.read_bytes(), log.stat().st_size // 2
    log.write_bytes(data[:middle] + b"\xff" * 4096 + data[middle + 4096 :])
    with installation.start().client() as client:
        assert len(list_sources(client, BUCKET)) < 30
    wait_until(lambda: stored(installation) == before, "all stored files are there")
    installation.stop()
    assert installation.verify("--repair").exit == 0
    installation.start()
    assert_notes(installation, 30)


def test_missing_or_empty_state_stops_the_daemon_from_starting_and_removes_no_files(
    installation: Installation, tmp_path: Path
) -> None:
    fill(installation, range(3))
    installation.stop()
    before = stored(installation)
    kept = shutil.copy(installation.files.state, tmp_path / "kept.db")
    ways: tuple[Callable[[Path], object], ...] = (Path.unlink, lambda state: state.write_bytes(b""))
    for lose in ways:
        lose(installation.files.state)
        for _ in range(2):
            assert installation.spawn_daemon().wait(PATIENCE_S) == 1
        assert "Restore a copy of state.db" in installation.printed()
        found = installation.verify("--repair")
        assert (found.exit, "3 stored files; nothing was changed. Restore a copy" in found.stdout) == (1, True)
        assert stored(installation) == before
        shutil.copy(kept, installation.files.state)
    installation.start()
    assert_notes(installation, 3)
