"""The composition root: one owner for an address, and a start that repairs what a kill left."""

import json
import os
import socket
import stat
from pathlib import Path

import pytest

from svc_daemon.listening import AddressTaken, base_url_of, bind
from svc_daemon.settings import Settings
from tests.acceptance.calls import make_bucket, search, upload, wait_ended
from tests.acceptance.installations import Installation, wait_until
from tests.conftest import UNLIMITED, MakeInstallation


def test_an_address_that_is_taken_is_told_with_the_way_out(tmp_path: Path) -> None:
    with bind(Settings(data_dir=tmp_path, port=0)) as first:
        taken = Settings(data_dir=tmp_path, port=first.getsockname()[1])
        with pytest.raises(AddressTaken, match="SVC_LISTEN"), bind(taken):
            pass
    with bind(taken):
        pass


ADDRESSES = [
    ("127.0.0.1", "http://127.0.0.1:{}"),
    ("localhost", "http://localhost:{}"),
    ("0.0.0.0", "http://127.0.0.1:{}"),
    ("10.1.2.3", "http://10.1.2.3:{}"),
    ("::", "http://[::1]:{}"),
    ("::1", "http://[::1]:{}"),
    ("fd00::1", "http://[fd00::1]:{}"),
]


@pytest.mark.parametrize(("host", "url"), ADDRESSES)
def test_a_client_on_this_machine_is_told_where_to_go(tmp_path: Path, host: str, url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert base_url_of(Settings(data_dir=tmp_path, host=host, port=0), listener) == url.format(port)


def test_the_daemon_announces_itself_and_takes_it_back(installation: Installation) -> None:
    told = installation.announced
    assert set(told) == {"pid", "base_url", "version", "log", "installation_id", "started_at"}
    assert stat.S_IMODE(installation.files.daemon.stat().st_mode) == 0o600
    health = installation.health()
    assert health is not None
    assert health["installation_id"] == told["installation_id"]
    installation.stop()
    assert not installation.files.daemon.exists()


def test_a_start_repairs_what_a_kill_left(make_installation: MakeInstallation) -> None:
    killed = make_installation(**UNLIMITED)
    killed.start()
    with killed.client() as client:
        make_bucket(client, "inbox")
        made = [upload(client, "inbox", f"{n}.md", b"The umber quay.\n" * 200).json()["id"] for n in range(20)]
    killed.kill()
    (killed.files.staging / ("0" * 32)).write_bytes(b"x")
    (killed.files.blobs / f"src_{'0' * 26}").write_bytes(b"x")
    killed.start()
    with killed.client() as client:
        for source_id in made:
            assert wait_ended(client, source_id)["ready"] is True
    assert {path.name for path in killed.files.blobs.iterdir()} == set(made)
    assert list(killed.files.staging.iterdir()) == []


def test_an_index_that_was_removed_is_made_again(installation: Installation) -> None:
    with installation.client() as client:
        make_bucket(client, "inbox")
        source_id = upload(client, "inbox", "a.md", b"The umber quay.\n").json()["id"]
        wait_ended(client, source_id)
    installation.stop()
    for path in installation.files.index.iterdir():
        path.unlink()
    installation.start()
    with installation.client() as client:
        found = "the source is found again"
        wait_until(lambda: client.get(f"/v1/sources/{source_id}?verify=provider").json()["ready"], found)
        hits = wait_until(lambda: _hits(installation, "quay"), found)
    assert hits == [source_id]


def test_stored_files_of_a_lost_database_are_kept(installation: Installation) -> None:
    with installation.client() as client:
        make_bucket(client, "inbox")
        source_id = upload(client, "inbox", "a.md", b"The umber quay.\n").json()["id"]
    installation.stop()
    kept = installation.files.state.rename(installation.files.root / "kept.db")
    for _ in range(2):
        refused = installation.spawn_daemon()
        assert refused.wait(30) == 1
        assert "Put a copy of state.db back" in installation.printed()
        assert (installation.files.blobs / source_id).exists()
    kept.replace(installation.files.state)
    installation.start()
    with installation.client() as client:
        assert wait_ended(client, source_id)["ready"] is True


def _hits(installation: Installation, query: str) -> list[str]:
    with installation.client() as client:
        answer = client.post("/v1/search", json={"query": query})
        return [hit["source_id"] for hit in answer.json().get("data", [])]


def test_a_search_works_right_after_a_start(installation: Installation) -> None:
    with installation.client() as client:
        make_bucket(client, "inbox")
        source_id = upload(client, "inbox", "a.md", b"The umber quay.\n").json()["id"]
        wait_ended(client, source_id)
    installation.stop()
    installation.start()
    with installation.client() as client:
        assert [hit["source_id"] for hit in search(client, "quay", "inbox")] == [source_id]


def test_what_is_announced_outlives_a_kill_without_misleading(installation: Installation) -> None:
    told = json.loads(installation.files.daemon.read_text(encoding="utf-8"))
    installation.kill()
    assert json.loads(installation.files.daemon.read_text(encoding="utf-8")) == told
    installation.start()
    assert installation.pid not in {told["pid"], os.getpid()}
