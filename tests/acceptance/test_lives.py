"""The daemon's life: one per data directory, started when needed, gone when told."""

import json
import socket
from urllib.parse import urlsplit

import psutil

from svc_daemon.exits import EXIT_LOCKED
from tests.acceptance.calls import list_sources, make_bucket, upload
from tests.acceptance.installations import Installation, wait_until
from tests.conftest import UNLIMITED, MakeInstallation


def _daemons(installation: Installation) -> list[int]:
    """Processes that were started to serve this data directory."""
    return [process.pid for process in psutil.process_iter() if _serves(process, installation)]


def _serves(process: psutil.Process, installation: Installation) -> bool:
    try:
        arguments = process.cmdline()
        folder = process.environ().get("SVC_DATA_DIR")
    except psutil.Error:
        return False
    return "svc_daemon" in arguments and "serve" in arguments and folder == str(installation.files.root)


def test_sigterm_ends_the_daemon_with_0(installation: Installation) -> None:
    assert installation.stop() == 0
    assert installation.health() is None


def test_sigterm_is_not_held_up_by_an_open_connection(installation: Installation) -> None:
    address = urlsplit(installation.base_url)
    with socket.create_connection((address.hostname or "", address.port or 0)) as connection:
        connection.sendall(b"POST /v1/search HTTP/1.1\r\nContent-Length: 100\r\n")
        assert installation.stop() == 0


def test_a_second_daemon_on_the_same_folder_stops_at_once(installation: Installation) -> None:
    announced = installation.announced
    with installation.spawn_daemon() as second:
        assert second.wait(20) == EXIT_LOCKED
    assert installation.announced == announced
    assert installation.health() is not None


def test_two_installations_live_side_by_side(make_installation: MakeInstallation) -> None:
    left, right = make_installation("left", **UNLIMITED), make_installation("right", **UNLIMITED)
    left.start()
    right.start()
    assert left.base_url != right.base_url
    for installation in (left, right):
        (installation.root / "notes.md").write_text(f"# Notes\n\nFrom {installation.root.name}.\n")
        assert installation.svc("upload", "notes.md", "-b", "notes").exit == 0
    with right.client(Authorization=f"Bearer {left.key}") as client:
        assert client.get("/v1/buckets").status_code == 401
    found = left.svc("search", "notes", "-b", "notes", "--json").json["data"]
    assert ["From left." in hit["text"] for hit in found] == [True]


def test_twenty_commands_at_once_start_one_daemon(make_installation: MakeInstallation) -> None:
    fresh = make_installation()
    fresh.root.mkdir()
    commands = [fresh.spawn_svc("bucket", "ls", "--json") for _ in range(20)]
    ended = [(command.communicate(timeout=120), command.returncode) for command in commands]
    assert [code for _, code in ended] == [0] * 20
    assert all(json.loads(out)["buckets"] == [] for (out, _), _ in ended)
    assert _daemons(fresh) == [fresh.pid]


def test_svc_stops_and_starts_the_daemon(make_installation: MakeInstallation) -> None:
    fresh = make_installation()
    fresh.root.mkdir()
    assert fresh.svc("daemon", "start").exit == 0
    first = fresh.pid
    assert fresh.svc("daemon", "restart").exit == 0
    assert fresh.pid not in {None, first}
    assert fresh.svc("daemon", "stop").exit == 0
    wait_until(lambda: _daemons(fresh) == [], "the daemon's end")
    assert fresh.svc("daemon", "status", "--json").exit != 0


def test_what_was_uploaded_is_there_after_a_restart(installation: Installation) -> None:
    with installation.client() as client:
        make_bucket(client, "notes")
        source_id = upload(client, "notes", "notes.md", b"# Notes\n\nSome text.").json()["id"]
    key = installation.key
    installation.stop()
    installation.start()
    assert installation.key == key
    with installation.client() as client:
        assert [source["id"] for source in list_sources(client, "notes")] == [source_id]


def test_files_are_for_their_owner_only(installation: Installation) -> None:
    modes = {
        path: path.stat().st_mode & 0o077 for path in [installation.files.root, *installation.files.root.rglob("*")]
    }
    assert {path.name: mode for path, mode in modes.items() if mode} == {}
