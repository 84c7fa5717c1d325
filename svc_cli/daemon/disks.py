"""What is known about the disk of the data directory: its kind of file system, and how long a sync takes."""

import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

_MOUNTS = Path("/proc/self/mountinfo")
_MEMORY = {"tmpfs", "ramfs", "devtmpfs"}
_OVERLAY = {"overlay", "aufs", "fuse.fuse-overlayfs"}
_NETWORK = {
    *("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "lustre", "gpfs", "9p", "virtiofs", "vboxsf"),
    *("fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.s3fs", "fuse.rclone", "fuse.davfs", "fuse.vmhgfs-fuse"),
}
#: A sync of new bytes takes at least two writes to the device, each waiting for its answer. None does that sooner.
QUICKEST_SYNC_S = 20e-6
#: How many syncs are timed; their median counts.
SYNCS = 9
SYNC_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why a disk may not keep what is stored, and what to do."""

    reason: str
    hint: str


def read_mounts() -> str:
    """Return the system's list of mounts; empty if it has none."""
    try:
        return _MOUNTS.read_text("utf-8", "surrogateescape")
    except OSError:
        return ""


def find_kind(folder: Path, mounts: str) -> str | None:
    """Return the type of the file system that a folder is on, such as `ext4`; None if unknown."""
    place, kind, longest = Path(os.path.realpath(folder)), None, -1
    for line in mounts.splitlines():
        mount, _, source = line.partition(" - ")
        # Spaces and a few other characters are written as octal numbers.
        point = Path(re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), mount.split()[4]))
        # Of several mounts at one place, the last one is seen.
        if place.is_relative_to(point) and len(point.parts) >= longest:
            kind, longest = source.split()[0], len(point.parts)
    return kind


def time_sync(folder: Path) -> float | None:
    """Return how many seconds it takes to make a few new bytes of a file durable; None if the disk takes no file."""
    import tempfile

    took_s = []
    try:
        # With a name, because some file systems don't sync a file without one.
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".sync.", buffering=0) as file:
            for _ in range(SYNCS):
                file.write(os.urandom(SYNC_BYTES))
                began_s = time.perf_counter()
                os.fsync(file.fileno())
                took_s.append(time.perf_counter() - began_s)
    except OSError:
        return None
    return sorted(took_s)[SYNCS // 2]


def find_doubt(kind: str | None, sync_s: float | None) -> Doubt | None:
    """Return why the disk may lose what was acknowledged; None if nothing speaks against it."""
    if kind in _MEMORY:
        return Doubt("it is in memory: a restart of the machine empties it", "set SVC_DATA_DIR to a folder on a disk.")
    if kind in _NETWORK:
        return Doubt(
            "it is not a disk of this machine: locks and syncs may not do what the databases need",
            "set SVC_DATA_DIR to a folder on a local disk, and back it up to the other one.",
        )
    if kind in _OVERLAY:
        return Doubt("it is a layer of a container, which is removed with it", "mount a volume there.")
    if sync_s is not None and sync_s < QUICKEST_SYNC_S:
        return Doubt(
            "that is quicker than a device can be, so a power cut may lose what was acknowledged",
            "look for a virtual disk whose host ignores syncs, or a program that turns them off (eatmydata).",
        )
    return None
