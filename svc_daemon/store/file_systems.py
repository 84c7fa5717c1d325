"""Syncs a whole file system at once with `syncfs`, if that is as safe as an fsync of each file.

Since Linux 5.8, `syncfs` reports the errors that occurred while the file system was written to disk since the
descriptor was opened. So the descriptor must be opened before the first write. Only file systems of local disks are
used, whose `syncfs` waits until the disk has stored everything.
"""

import ctypes
import os
import sys
from functools import cache
from pathlib import Path

#: The first release of Linux whose `syncfs` reports write errors.
_REPORTING = (5, 8)
#: The `f_type` of ext2 to ext4, XFS, Btrfs, F2FS and tmpfs (linux/magic.h).
_LOCAL = {0xEF53, 0x58465342, 0x9123683E, 0xF2F52010, 0x01021994}


@cache
def is_syncable(folder: Path) -> bool:
    """Whether `sync` makes everything in the folder durable, and reports when it can't."""
    if not sys.platform.startswith("linux"):
        return False
    release = tuple(int(part) for part in os.uname().release.split(".")[:2] if part.isdigit())
    # Python's `os.statvfs` leaves out the type of the file system. It is the first field of the structure that `statfs`
    # fills, which has at least 120 bytes. If the call fails, the type stays 0.
    found = (ctypes.c_long * 64)()
    _libc().statfs(os.fsencode(folder), ctypes.byref(found))
    return release >= _REPORTING and found[0] & 0xFFFFFFFF in _LOCAL


def sync(descriptor: int) -> None:
    """Sync the file system of an open file or folder. Blocking; raises OSError."""
    if _libc().syncfs(descriptor) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
