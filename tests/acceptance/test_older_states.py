"""A state database that went backwards, was damaged or is gone costs no stored bytes."""

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.calls import list_sources, make_bucket, search, upload, wait_ended
from tests.acceptance.installations import Installation
from tests.conftest import UNLIMITED, MakeInstallation

BUCKET = "inbox"


def content(number: int) -> bytes:
    return f"# Note {number}\n\nThe umber quay number{number} was built of grey stone.\n".encode()


def fill(installation: Installation, numbers: range) -> list[str]:
    """The ids of new sources that are ready."""
    with installation.client() as client:
        make_bucket(client, BUCKET)
        made = [upload(client, BUCKET, f"{n}.md", content(n)).json()["id"] for n in numbers]
        assert all(wait_ended(client, source_id)["ready"] for source_id in made)
    return made


def stored(installation: Installation) -> list[str]:
    """The hashes of all stored bytes, wherever they lie."""
    folders = (installation.files.blobs, installation.files.aside)
    files = [path for folder in folders if folder.exists() for path in folder.rglob("*") if path.is_file()]
    return sorted(hashlib.sha256(path.read_bytes()).hexdigest() for path in files)


def put_back(installation: Installation, copy: Path) -> None:
    shutil.copy(copy, installation.files.state)


def hold_to_have(installation: Installation, numbers: range) -> None:
    """Each of these notes is one ready source of the bucket under its title, with its bytes, and is found."""
    with installation.client() as client:
        for source in list_sources(client, BUCKET):
            assert wait_ended(client, source["id"])["ready"], source
        sources = {source["title"]: source for source in list_sources(client, BUCKET)}
        assert set(sources) == {f"{n}.md" for n in numbers}
        for number in numbers:
            source_id = sources[f"{number}.md"]["id"]
            assert client.get(f"/v1/sources/{source_id}/content").content == content(number)
            assert source_id in [hit["source_id"] for hit in search(client, f"number{number}", BUCKET)]
    installation.hold_to_every_promise()


@pytest.fixture
def restored(make_installation: MakeInstallation, tmp_path: Path) -> Installation:
    """Five notes, a copy of the state, ten more notes; then the copy is put back. The newer state is kept too."""
    installation = make_installation(**UNLIMITED)
    installation.start()
    fill(installation, range(5))
    installation.stop()
    older = shutil.copy(installation.files.state, tmp_path / "older.db")
    installation.start()
    fill(installation, range(5, 15))
    installation.stop()
    shutil.copy(installation.files.state, tmp_path / "newer.db")
    put_back(installation, Path(older))
    return installation


def test_an_older_state_that_is_put_back_loses_no_bytes_and_a_repair_takes_all_in(restored: Installation) -> None:
    before = stored(restored)
    assert len(before) == 15
    restored.start()
    assert stored(restored) == before
    told = "10 stored files are not in the state database, and search indexes know 10 of them."
    assert told in restored.files.log.read_text()
    (finding,) = [
        check for check in restored.svc("doctor", "--json").json["checks"] if check["check"] == "stored files"
    ]
    assert (finding["state"], told in finding["text"]) == ("warning", True)
    restored.stop()
    looked = restored.verify("--json")
    assert (looked.exit, [problem["mend"] for problem in looked.json["problems"]]) == (1, ["take_in"] * 10)
    assert stored(restored) == before
    assert restored.verify("--repair").exit == 0
    restored.start()
    assert restored.health()["set_aside"]["files"] == 0  # type: ignore[index]
    hold_to_have(restored, range(15))


def test_a_repair_before_the_first_start_takes_all_in(restored: Installation) -> None:
    assert restored.verify("--repair").exit == 0
    restored.start()
    hold_to_have(restored, range(15))


def test_a_newer_state_that_is_put_back_again_finds_all_its_bytes(restored: Installation, tmp_path: Path) -> None:
    restored.start()
    restored.stop()
    put_back(restored, tmp_path / "newer.db")
    assert restored.verify("--read-data").exit == 0
    restored.start()
    hold_to_have(restored, range(15))


def test_a_log_that_is_damaged_after_a_kill_loses_no_bytes(make_installation: MakeInstallation) -> None:
    installation = make_installation(**UNLIMITED)
    installation.start()
    fill(installation, range(30))
    installation.kill()
    before = stored(installation)
    log = installation.files.state.with_name("state.db-wal")
    with log.open("r+b") as file:
        file.seek(log.stat().st_size // 2)
        file.write(b"\xff" * 4096)
    installation.start()
    with installation.client() as client:
        assert len(list_sources(client, BUCKET)) < 30
    assert stored(installation) == before
    installation.stop()
    assert installation.verify("--repair").exit == 0
    installation.start()
    hold_to_have(installation, range(30))


@pytest.mark.parametrize("lose", [Path.unlink, lambda state: state.write_bytes(b"")], ids=["removed", "empty"])
def test_without_its_state_nothing_starts_and_nothing_is_removed(
    installation: Installation, tmp_path: Path, lose: Callable[[Path], object]
) -> None:
    fill(installation, range(3))
    installation.stop()
    before = stored(installation)
    kept = Path(shutil.copy(installation.files.state, tmp_path / "kept.db"))
    lose(installation.files.state)
    for _ in range(2):
        assert installation.spawn_daemon().wait(30) == 1
    for options in ((), ("--repair",)):
        looked = installation.verify(*options)
        assert looked.exit == 2
        assert "3 stored files; nothing was changed. Put a copy of state.db back" in looked.stderr
    assert stored(installation) == before
    put_back(installation, kept)
    installation.start()
    hold_to_have(installation, range(3))


def test_a_second_daemon_is_kept_out_whatever_file_is_removed(installation: Installation) -> None:
    for path in installation.files.root.iterdir():
        if path.is_file() and path.name not in {"state.db", "state.db-wal", "state.db-shm", "daemon.json"}:
            path.unlink()
    assert installation.spawn_daemon().wait(30) == 14
    assert "Another process owns" in installation.printed()
