"""`svc doctor` on the disk of the data directory."""

from pathlib import Path

import pytest

from svc_cli.daemon import disks
from tests.acceptance.installations import Installation
from tests.conftest import MakeInstallation

MEMORY = Path("/dev/shm")
MOUNTS = r"""
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
23 22 0:5 / /export rw - nfs4 there:/export rw,vers=4.2
24 23 0:6 / /export/with\040space rw - fuse.sshfs me@there: rw
25 22 254:1 / /srv rw - xfs /dev/vdb rw
26 22 0:7 / /srv rw shared:2 master:1 - tmpfs tmpfs rw
""".strip()


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/var/lib/svc", "ext4"),
        ("/export/data", "nfs4"),
        ("/exports", "ext4"),
        ("/export/with space/data", "fuse.sshfs"),
        ("/srv/data", "tmpfs"),
    ],
)
def test_kind_is_that_of_the_innermost_and_last_mount(folder: str, kind: str) -> None:
    assert disks.find_kind(Path(folder), MOUNTS) == kind
    assert disks.find_kind(Path(folder), "") is None


@pytest.mark.parametrize(
    ("kind", "sync_s", "word"),
    [
        ("tmpfs", 0.001, "memory"),
        ("nfs4", 0.001, "machine"),
        ("fuse.sshfs", None, "machine"),
        ("overlay", 0.001, "container"),
        ("ext4", 0.000_003, "quicker"),
        (None, 0.000_003, "quicker"),
        ("ext4", 0.000_050, None),
        ("xfs", None, None),
        (None, None, None),
    ],
)
def test_doubtful_disks_are_named(kind: str | None, sync_s: float | None, word: str | None) -> None:
    doubt = disks.find_doubt(kind, sync_s)
    assert (doubt is None) if word is None else (doubt is not None and word in doubt.reason)


def test_sync_of_a_real_folder_is_timed_and_leaves_nothing(tmp_path: Path) -> None:
    assert (disks.time_sync(tmp_path) or 0) > 0
    assert not list(tmp_path.iterdir())
    assert disks.time_sync(tmp_path / "missing") is None


@pytest.mark.skipif(not MEMORY.is_dir(), reason="there is no file system in memory")
def test_doctor_warns_of_data_in_memory_and_names_the_kind_of_a_disk(
    installation: Installation, make_installation: MakeInstallation
) -> None:
    def find(doctor: Installation) -> dict[str, str]:
        ended = doctor.svc("doctor", "--json")
        assert ended.exit == 0, ended.stdout
        return next(each for each in ended.json["checks"] if each["check"] == "disk")

    memory = make_installation("memory", SVC_DATA_DIR=str(MEMORY))
    memory.root.mkdir()
    found = find(memory)
    assert (found["state"], found["text"][:5]) == ("warning", "tmpfs")
    assert "SVC_DATA_DIR" in found["hint"]
    assert "a sync takes" in find(installation)["text"]
