"""Syncs a whole file system with `syncfs`, where that is as safe as an fsync of each file.

Since Linux 5.8, `syncfs` reports write errors that occur after its descriptor was opened. So open the descriptor before
the first write. Only local file systems are synced this way.
"""

import ctypes
import os
import sys
from functools import cache
from pathlib import Path

#: The first Linux version whose `syncfs` reports write errors.
_REPORTING = (5, 8)
#: Local file systems by their `f_type` (linux/magic.h): ext2 to ext4, XFS, Btrfs, F2FS and tmpfs.
_LOCAL = {0xEF53, 0x58465342, 0x9123683E, 0xF2F52010, 0x01021994}


@cache
def is_syncable(folder: Path) -> bool:
    """Whether `sync` makes all files in the folder durable and reports write errors."""
    if not sys.platform.startswith("linux"):
        return False
    release = tuple(int(part) for part in os.uname().release.split(".")[:2] if part.isdigit())
    # Python has no `statfs`, so call the C function. The first field of its result is the file system's type. On
    # failure, this field stays 0.
    found = (ctypes.c_long * 64)()
    _libc().statfs(os.fsencode(folder), ctypes.byref(found))
    return release >= _REPORTING and found[0] & 0xFFFFFFFF in _LOCAL


def sync(descriptor: int) -> None:
    """Flush the file system of an open file or folder to the disk. Blocking; raises OSError."""
    if _libc().syncfs(descriptor) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
