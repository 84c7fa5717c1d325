"""The daemon on a full or read-only disk: its responses, its log and its exit code."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.calls import take_in, upload
from tests.acceptance.installations import PATIENCE_S, Installation
from tests.conftest import UNLIMITED, MakeInstallation

pytestmark = [pytest.mark.sqlite, pytest.mark.folders]

#: Runs a command in its own mount namespace with the right to mount.
NAMESPACE = ("unshare", "--user", "--map-root-user", "--mount")
READ_ONLY = "mount --bind {0} {0} && mount -o remount,bind,ro {0}"
FULL = "mount -t tmpfs -o size=2m none {0} && ! head -c 3m /dev/zero > {0}/filler"
NOTE = b"The umber quay.\n"
#: With buffering, Python keeps output that it couldn't write, and fails again at its exit.
BUFFERED: dict[str, Any] = {"without": ["PYTHONUNBUFFERED"]}


@pytest.fixture
def mounting(make_installation: MakeInstallation) -> Installation:
    """An installation that is not started yet, if the system allows mount namespaces."""
    if subprocess.run([*NAMESPACE, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this system gives no mount namespace")
    mounting = make_installation(**UNLIMITED)
    mounting.files.root.mkdir(parents=True)
    return mounting


def after(mount: str, folder: Path) -> list[str]:
    """Return a command prefix that first mounts something on the folder."""
    return [*NAMESPACE, "sh", "-c", f'{mount.format(folder)} 2>&- && exec "$@"', "sh"]


def test_write_to_a_disk_that_became_read_only_is_a_retryable_503(mounting: Installation) -> None:
    mounting.start(NAMESPACE)
    with mounting.client() as client:
        take_in(client, "inbox", "a.md", NOTE)
        session = {"filename": "a.md", "content_type": "text/markdown", "size_bytes": 3}
        opened = client.post("/v1/buckets/inbox/uploads", json=session).raise_for_status().json()
        enter = ["nsenter", "--target", str(mounting.pid), "--user", "--preserve-credentials", "--mount"]
        subprocess.run([*enter, "sh", "-c", READ_ONLY.format(mounting.files.root)], check=True)
        for refused in (
            upload(client, "inbox", "b.md", NOTE),
            upload(client, "inbox", "c.md", NOTE * 200_000),
            client.post("/v1/buckets/inbox/qa", json={"question": "Where?", "answer": "At the quay."}),
            client.put(opened["upload_url"], content=b"abc"),
        ):
            error = refused.json()["error"]
            assert (refused.status_code, error["code"], error["retryable"]) == (503, "storage_full", True), refused.url
        assert client.get("/v1/buckets").status_code == 200
    assert "Read-only file system" in mounting.files.log.read_text(encoding="utf-8")
    assert (mounting.stop(), mounting.printed()) == (0, "")


def test_daemon_start_on_a_read_only_disk_fails_with_one_line(mounting: Installation) -> None:
    mounting.start()
    mounting.stop()
    assert mounting.spawn_daemon(after(READ_ONLY, mounting.files.root)).wait(PATIENCE_S) == 1
    assert "Read-only file system" in mounting.printed()
    assert mounting.printed().count("\n") == 1


def test_svc_prints_why_the_daemon_does_not_start_on_a_full_disk(mounting: Installation) -> None:
    ended = mounting.run(*after(FULL, mounting.files.root), sys.executable, "-m", "svc_cli", "bucket", "ls", **BUFFERED)
    assert ended.exit == 12, ended.stderr
    for part in ("ended with exit code 7.", "state.db can't be opened: The disk is full."):
        assert part in ended.stderr
