"""Detects file systems that report no changes, so that their folders must be polled."""

import os
from collections.abc import Iterable
from pathlib import Path

#: Network and shared file systems, which don't report the changes that other machines make.
SILENT = frozenset(
    {"9p", "afs", "ceph", "cifs", "drvfs", "glusterfs", "lustre", "ncpfs", "nfs", "nfs4", "prl_fs", "smb3", "smbfs"}
    | {"vboxsf", "virtiofs", "vmhgfs", "fuse.sshfs", "fuse.rclone", "fuse.s3fs", "fuse.glusterfs", "fuse.vmhgfs-fuse"}
)
#: The kernel's list of mounted file systems.
MOUNTS = Path("/proc/self/mounts")
#: The escape sequences in the paths of this list.
_ESCAPES = {"\\040": " ", "\\011": "\t", "\\012": "\n", "\\134": "\\"}


def find_silence(folder: Path) -> str | None:
    """Return the type of the folder's file system if it does not report all changes, otherwise None."""
    try:
        lines = MOUNTS.read_text("utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    kind = kind_of(str(folder.resolve()), lines)
    return kind if kind in SILENT else None


def kind_of(path: str, mounts: Iterable[str]) -> str | None:
    """Return the type of the file system at a path. `mounts` are the lines of /proc/self/mounts."""
    best, found = -1, None
    for line in mounts:
        parts = line.split(" ")
        if len(parts) < 3:
            continue
        point = parts[1].rstrip("/")
        for code, character in _ESCAPES.items():
            point = point.replace(code, character)
        # Use the longest mount point that contains the path. If several are equally long, use the last.
        if len(point) >= best and (path == point or path.startswith(f"{point}/")):
            best, found = len(point), parts[2]
    return found


def count_folders(root: Path) -> int:
    """Count the folders below `root`, including `root` itself."""
    return sum(1 for _ in os.walk(root))
