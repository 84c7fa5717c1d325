"""The daemon on a full or read-only disk: its responses, its log and its exit code."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from svc_daemon.paths import DataFiles
from tests.acceptance.calls import list_sources, make_bucket, take_in, upload, wait_ended
from tests.acceptance.installations import PATIENCE_S, Installation, wait_until
from tests.conftest import UNLIMITED, MakeInstallation

pytestmark = [pytest.mark.sqlite, pytest.mark.folders]

#: Runs a command in its own mount namespace with the right to mount.
NAMESPACE = ("unshare", "--user", "--map-root-user", "--mount")
READ_ONLY = "mount --bind {0} {0} && mount -o remount,bind,ro {0}"
FULL = "mount -t tmpfs -o size=2m none {0} && ! head -c 3m /dev/zero > {0}/filler"
ROOMY = "mount -t tmpfs -o size=64m none {0}"
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


@pytest.fixture
def on_small_disk(make_installation: MakeInstallation, tmp_path: Path) -> Iterator[tuple[Installation, Path]]:
    """A running installation whose data is on a small disk of its own, and that disk as seen from here."""
    if subprocess.run([*NAMESPACE, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this system gives no mount namespace")
    installation = make_installation(**UNLIMITED, SVC_LIMIT_FREE_DISK_BYTES="0")
    disk = installation.files.root
    disk.mkdir(parents=True)
    ready = tmp_path / "ready"
    # The disk lives as long as this process.
    script = f'{ROOMY.format(disk)} && touch "{ready}" && exec sleep 600'
    with subprocess.Popen([*NAMESPACE, "sh", "-c", script]) as holder:
        wait_until(ready.exists, "the small disk")
        installation.files = DataFiles(Path(f"/proc/{holder.pid}/root", *disk.parts[1:]))
        inside = ("nsenter", "--target", str(holder.pid), "--user", "--preserve-credentials", "--mount")
        installation.start(inside)
        yield installation, installation.files.root
        installation.clear()
        ended = installation.run(*inside, sys.executable, "-m", "svc_daemon", "verify", "--read-data")
        assert ended.exit == 0, ended.stdout + ended.stderr
        holder.kill()


def test_disk_that_is_full_after_any_answer_keeps_what_was_acknowledged(
    on_small_disk: tuple[Installation, Path], large: bool
) -> None:
    installation, disk = on_small_disk
    filler, numbers = disk / "filler", range(24 if large else 4)
    ids: dict[int, str] = {}
    refusals = 0
    with installation.client() as client:
        make_bucket(client, "inbox")
        for number in numbers:
            with suppress(OSError), filler.open("wb", buffering=0) as file:
                while file.write(bytes(4096)):
                    pass
            data = f"# Note {number}\n\nThe umber quay number {number}.\n".encode() * (1 + 900 * (number % 2))
            refused = upload(client, "inbox", f"{number}.md", data, f"key-{number}")
            if refused.is_success:
                ids[number] = refused.json()["id"]
            else:
                assert (refused.status_code, refused.json()["error"]["retryable"]) == (503, True), refused.text
                refusals += 1
            for source_id in ids.values():
                assert client.get(f"/v1/sources/{source_id}/content").status_code == 200
            filler.unlink()

            def is_taken(number: int = number, data: bytes = data) -> bool:
                answer = upload(client, "inbox", f"{number}.md", data, f"key-{number}")
                assert answer.is_success or answer.json()["error"]["retryable"], answer.text
                taken = ids.setdefault(number, answer.json()["id"]) if answer.is_success else ""
                return answer.is_success and taken == answer.json()["id"]

            wait_until(is_taken, "the upload once there is room")
            assert wait_ended(client, ids[number])["ready"]
        assert sorted(source["id"] for source in list_sources(client, "inbox")) == sorted(ids.values())
    assert refusals, "the disk was never full"


def test_daemon_start_on_a_read_only_disk_fails_with_one_line(mounting: Installation) -> None:
    mounting.start()
    mounting.stop()
    assert mounting.spawn_daemon(after(READ_ONLY, mounting.files.root)).wait(PATIENCE_S) == 1
    assert "Read-only file system" in mounting.printed()
    assert mounting.printed().count("\n") == 1


def test_svc_prints_why_the_daemon_does_not_start_on_a_full_disk(mounting: Installation) -> None:
    ended = mounting.run(*after(FULL, mounting.files.root), sys.executable, "-m", "svc_cli", "bucket", "ls", **BUFFERED)
    assert ended.exit == 12, ended.stderr
    for part in ("ended with exit code 1.", "state.db can't be opened"):
        assert part in ended.stderr


def test_output_that_cannot_be_written_changes_no_exit_code(make_installation: MakeInstallation) -> None:
    wrong = make_installation("wrong", SVC_LOG_LEVEL="shouting")
    wrong.root.mkdir()
    with Path("/dev/full").open("wb") as full:
        assert wrong.run(sys.executable, "-m", "svc_daemon", "serve", stdout=full, stderr=full, **BUFFERED).exit == 2


def test_daemon_whose_log_is_on_a_full_disk_still_indexes_files(mounting: Installation) -> None:
    mounting.files.log.parent.mkdir()
    mounting.start(after(FULL, mounting.files.log.parent))
    with mounting.client() as client:
        take_in(client, "inbox", "a.md", NOTE)
    assert (mounting.stop(), mounting.printed()) == (0, "")
