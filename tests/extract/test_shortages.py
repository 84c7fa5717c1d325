"""Shortages of the machine raise the system's error instead of failing the document."""

import errno
import os
import resource
import subprocess
from pathlib import Path

import psutil
import pytest

from svc_daemon.extract.child_limits import CageLimits
from svc_daemon.extract.documents import ExtractionFailed
from svc_daemon.extract.extractors import Extractor
from tests.extract.conftest import MakeExtractor
from tests.extract.readings import document_at
from tests.extract.test_extractors import read, server_of
from tests.samples import make_pdf

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not psutil.LINUX, reason="only Linux sets the limits of another process"),
]


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A document whose child process gets a folder of its own."""
    path = tmp_path / "page.pdf"
    path.write_bytes(make_pdf(["One page."]))
    return path


def succeeds(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


async def test_fork_server_without_descriptors_raises_emfile_and_recovers(
    make_extractor: MakeExtractor, prose: Path
) -> None:
    extractor = await make_extractor()
    await read(extractor, prose)
    server = server_of(extractor)
    limits = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (server.num_fds(), limits[1]))
    for _ in range(3):
        with pytest.raises(OSError, match="open files") as failed:
            await read(extractor, prose)
        assert failed.value.errno == errno.EMFILE
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, limits)
    assert (await read(extractor, prose)).title == "The harbour"
    assert server_of(extractor).pid == server.pid


async def test_removed_scratch_folder_is_recreated_or_fails_as_a_retryable_error(
    make_extractor: MakeExtractor, page: Path
) -> None:
    extractor = await make_extractor()
    await read(extractor, page)
    # Renamed instead of removed, because a child may still be removing its own folder in it.
    extractor.scratch_dir.rename(extractor.scratch_dir.with_name("removed"))
    assert (await read(extractor, page)).pages == 1
    extractor.scratch_dir.rename(extractor.scratch_dir.with_name("removed-too"))
    extractor.scratch_dir.touch()
    with pytest.raises(ExtractionFailed) as failed:
        await read(extractor, page)
    assert failed.value.retryable


async def test_scratch_folder_on_a_full_disk_raises_enospc(tmp_path: Path, page: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    # The disk has inodes for the fork server's folder and file, but not for a child's own folder.
    if not succeeds("mount", "-t", "tmpfs", "-o", "size=64k,nr_inodes=3", "svc-test", str(disk)):
        pytest.skip("only root can mount a small disk")
    extractor = Extractor(disk / "scratch", CageLimits())
    try:
        with pytest.raises(OSError, match="space") as failed:
            await read(extractor, page)
        assert failed.value.errno == errno.ENOSPC
        assert succeeds("mount", "-o", "remount,nr_inodes=100", str(disk))
        assert (await read(extractor, page)).pages == 1
    finally:
        await extractor.close()
        assert succeeds("umount", "--lazy", str(disk))


async def test_daemon_without_descriptors_raises_emfile_and_recovers(
    make_extractor: MakeExtractor, prose: Path
) -> None:
    extractor = await make_extractor()
    await read(extractor, prose)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    open_now = psutil.Process().num_fds()
    # At most one descriptor can be opened, for the blob, and none for the reply's pipe.
    for more in (0, 1):
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + more, limits[1]))
        try:
            with pytest.raises(OSError, match="open files") as failed:
                await extractor.extract(document_at(prose))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        assert failed.value.errno == errno.EMFILE
    assert (await read(extractor, prose)).title == "The harbour"
    assert psutil.Process().num_fds() == open_now
