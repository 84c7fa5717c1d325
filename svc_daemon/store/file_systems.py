"""Syncs a whole file system at once with `syncfs`, if that is as safe as an fsync of each file.

From Linux 5.8 on, `syncfs` reports all write errors of the file system that occurred after its descriptor was opened.
So the descriptor must be opened before the first write. `syncfs` is only used on local file systems, where it waits
until the disk has stored everything.
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
    """Return whether `sync` makes all files in the folder durable and reports write errors."""
    if not sys.platform.startswith("linux"):
        return False
    release = tuple(int(part) for part in os.uname().release.split(".")[:2] if part.isdigit())
    # Python's `os.statvfs` doesn't return the type of the file system, so call `statfs` of the C library. The type is
    # the first field of its result, which fits into this array. If the call fails, the type stays 0.
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
