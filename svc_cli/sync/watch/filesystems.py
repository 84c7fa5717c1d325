"""File systems that report no changes, so that their folders must be polled; and the number of folders to watch."""

import os
from collections.abc import Iterable
from pathlib import Path

#: Shared file systems, whose changes by other machines are not reported here.
SILENT = frozenset(
    {"9p", "afs", "ceph", "cifs", "drvfs", "glusterfs", "lustre", "ncpfs", "nfs", "nfs4", "prl_fs", "smb3", "smbfs"}
    | {"vboxsf", "virtiofs", "vmhgfs", "fuse.sshfs", "fuse.rclone", "fuse.s3fs", "fuse.glusterfs", "fuse.vmhgfs-fuse"}
)
#: The kernel's table of what is mounted.
MOUNTS = Path("/proc/self/mounts")
#: How the table writes characters that would end a field.
_ESCAPES = {"\\040": " ", "\\011": "\t", "\\012": "\n", "\\134": "\\"}


def find_silence(folder: Path) -> str | None:
    """The file system that holds the folder, where that reports no changes."""
    try:
        lines = MOUNTS.read_text("utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    kind = kind_of(str(folder.resolve()), lines)
    return kind if kind in SILENT else None


def kind_of(path: str, mounts: Iterable[str]) -> str | None:
    """The kind of the file system at a path, from lines like those of /proc/self/mounts."""
    best, found = -1, None
    for line in mounts:
        parts = line.split(" ")
        if len(parts) < 3:
            continue
        point = parts[1].rstrip("/")
        for code, character in _ESCAPES.items():
            point = point.replace(code, character)
        # Of two mounts at one place the later one is visible.
        if len(point) >= best and (path == point or path.startswith(f"{point}/")):
            best, found = len(point), parts[2]
    return found


def count_folders(root: Path) -> int:
    """The folder and all below it."""
    return sum(1 for _ in os.walk(root))
