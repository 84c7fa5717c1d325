"""The daemon announces its address, and its start repairs what a kill has left."""

import asyncio
import json
import os
import signal
import socket
import stat
from pathlib import Path

import pytest
import uvicorn

from svc_daemon.exits import EXIT_FAILED
from svc_daemon.server.sockets import base_url_of
from svc_daemon.server.uvicorn_server import Server
from svc_daemon.settings.daemon import Settings
from svc_daemon.settings.servers import TlsFiles
from tests.acceptance.calls import make_bucket, upload, wait_ended
from tests.acceptance.installations import PATIENCE_S, Installation
from tests.conftest import MakeInstallation


@pytest.mark.parametrize(
    ("host", "reached"),
    [("127.0.0.1", "127.0.0.1"), ("localhost", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("::", "[::1]")],
)
def test_base_url_is_reachable_from_this_machine_and_has_no_name(tmp_path: Path, host: str, reached: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert base_url_of(Settings(data_dir=tmp_path, host=host, port=0), listener) == f"http://{reached}:{port}"


@pytest.mark.parametrize(
    ("host", "reached"),
    [("localhost", "localhost"), ("10.1.2.3", "10.1.2.3"), ("::1", "[::1]"), ("fd00::1", "[fd00::1]")],
)
def test_base_url_over_https_has_the_name_that_the_certificate_is_for(tmp_path: Path, host: str, reached: str) -> None:
    files = TlsFiles(certificate=tmp_path / "certificate.pem", key=tmp_path / "key.pem")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        settings = Settings(data_dir=tmp_path, host=host, port=0, tls=files)
        assert base_url_of(settings, listener) == f"https://{reached}:{port}"


def test_daemon_json_is_written_at_start_removed_at_stop_and_replaced_after_a_kill(installation: Installation) -> None:
    announced = installation.announced
    assert set(announced) == {"pid", "base_url", "version", "log", "installation_id", "started_at", "settings"}
    assert stat.S_IMODE(installation.files.daemon.stat().st_mode) == 0o600
    assert (installation.health() or {})["installation_id"] == announced["installation_id"]
    installation.kill()
    assert json.loads(installation.files.daemon.read_text(encoding="utf-8")) == announced
    installation.start()
    assert installation.pid not in {announced["pid"], os.getpid()}
    installation.stop()
    assert not installation.files.daemon.exists()


def test_daemon_on_another_loopback_address_is_found_at_its_announced_address(
    make_installation: MakeInstallation,
) -> None:
    installation = make_installation(SVC_LISTEN="127.0.0.2:0")
    installation.start()
    assert installation.base_url.startswith("http://127.0.0.2:")
    assert installation.svc("bucket", "ls", "--json").exit == 0


def test_start_after_a_kill_removes_stray_files_and_finishes_indexing(installation: Installation) -> None:
    with installation.client() as client:
        make_bucket(client, "inbox")
        made = [upload(client, "inbox", f"{n}.md", b"The umber quay.\n" * 200).json()["id"] for n in range(20)]
    installation.kill()
    strays = [installation.files.blobs / f"src_{number:026}" for number in range(10)]
    for stray in (installation.files.staging / ("0" * 32), *strays):
        stray.touch(0o600)
        stray.write_bytes(b"x")
    installation.start()
    with installation.client() as client:
        assert [wait_ended(client, source_id)["ready"] for source_id in made] == [True] * 20
    checks = {check["check"]: check for check in installation.svc("doctor", "--json").json["checks"]}
    assert (checks["stored files"]["state"], "10" in checks["stored files"]["text"]) == ("warning", True)
    assert {path.name for path in installation.files.blobs.iterdir()} == set(made)
    assert list(installation.files.staging.iterdir()) == []
    root = installation.files.root
    readable = [path for path in (root, *root.rglob("*")) if path.stat().st_mode & 0o077]
    assert readable == [], "others can access files of the data directory"


@pytest.mark.folders
def test_start_without_the_volume_of_the_stored_files_is_refused_and_changes_no_source(
    installation: Installation,
) -> None:
    with installation.client() as client:
        make_bucket(client, "inbox")
        source_id = upload(client, "inbox", "quay.md", b"The umber quay.").json()["id"]
        wait_ended(client, source_id)
        wait_ended(client, upload(client, "inbox", "pier.md", b"The grey pier.").json()["id"])
    installation.stop()
    blobs = installation.files.blobs
    away = blobs.rename(blobs.with_name("away"))
    assert installation.spawn_daemon().wait(PATIENCE_S) == EXIT_FAILED
    assert "Is a volume not mounted? Mount it" in installation.printed()
    blobs.rmdir()
    away.rename(blobs)
    with installation.start().client() as client:
        assert client.get(f"/v1/sources/{source_id}/content").content == b"The umber quay."
    installation.stop()
    # Somebody who has lost them for good can go on without them.
    for stored in blobs.iterdir():
        stored.unlink()
    (blobs / "lost").touch()
    with installation.start().client() as client:
        assert client.get(f"/v1/sources/{source_id}").json()["ready"]


def test_daemon_started_with_nohup_ignores_that_its_terminal_is_closed() -> None:
    async def close_terminal() -> bool:
        server = Server(uvicorn.Config("unused"), lambda _: None)
        with server.capture_signals():
            os.kill(os.getpid(), signal.SIGHUP)
            await asyncio.sleep(0.01)
        return server.should_exit

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert not asyncio.run(close_terminal())
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        assert asyncio.run(close_terminal())
    finally:
        signal.signal(signal.SIGHUP, before)
