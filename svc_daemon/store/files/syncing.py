"""Makes files durable: a folder's names with one fsync for all callers, or a whole file system with `syncfs`.

Since Linux 5.8, `syncfs` reports write errors that occur after its descriptor was opened. So open the descriptor before
the first write. Only local file systems are synced this way.
"""

import ctypes
import os
import sys
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path


class FolderSync:
    """Syncs a folder. One fsync serves all callers that were waiting for it.

    After a failed fsync, all calls raise its error until a restart. A retry could report success although the kernel
    has dropped the changes.
    """

    def __init__(self, folder: Path, on_broken: Callable[[OSError], None] = lambda _: None) -> None:
        self._folder = folder
        self._on_broken = on_broken
        self._count_lock = threading.Lock()
        self._sync_lock = threading.Lock()
        self._asked = 0
        self._synced = 0
        self._failure: OSError | None = None

    def sync(self) -> None:
        """Wait until all earlier renames in the folder are durable. Raises OSError."""
        with self._count_lock:
            self._asked += 1
            ticket = self._asked
        with self._sync_lock:
            if self._synced >= ticket:
                return
            if self._failure is not None:
                raise OSError(*self._failure.args) from self._failure
            covered = self._asked
            # An error of `open` isn't recorded, because a later call may succeed.
            descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(descriptor)
            except OSError as error:
                self._failure = error
                self._on_broken(error)
                raise
            finally:
                os.close(descriptor)
            self._synced = covered


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
