"""Removes stored files. While a backup is running, moves them to the folder `held` instead.

A backup copies the database first, so every file that the database names must exist until the backup ends:

- The backup holds an exclusive lock on the folder `held`, and each removal a shared one.
- A removal that doesn't get its lock moves the file into `held`, where the backup finds it.
- The backup empties `held` at its end. If the backup was killed, the sweeper or the next start empties the folder.
"""

import fcntl
import logging
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from svc_daemon.core import ids
from svc_daemon.data_directory import DirectoryRefused, list_own
from svc_daemon.paths import sync_folder

log = logging.getLogger(__name__)

#: How long a backup waits for running removals, in seconds.
PATIENCE_S = 10.0
PAUSE_S = 0.01
#: The names of blobs and of upload parts. Nothing else is removed.
_STORED = re.compile(rf"(?:{ids.SOURCE}|{ids.BLOB}|{ids.SESSION})_\w+")


class BackupRunning(DirectoryRefused):
    """Another backup of this data directory or into this folder is running."""

    code = "svc_backup_running"
    retryable = True

    def __init__(self, folder: Path) -> None:
        super().__init__(f"Another backup that uses {folder} is running.", "Wait until it ends.")


class Removals:
    """Removes files of a data directory. Blocking and thread-safe."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def remove(self, paths: Sequence[Path]) -> dict[str, OSError]:
        """Remove the files. During a backup, which may need them, move them to the folder `held` instead.

        Returns the errors by file name.
        """
        errors: dict[str, OSError] = {}
        with self._sharing() as is_free:
            for path in paths:
                try:
                    # Don't overwrite a file in `held`: the backup needs it.
                    if is_free or (self.folder / path.name).exists():
                        path.unlink()
                    else:
                        path.rename(self.folder / path.name)
                except FileNotFoundError:
                    pass
                except OSError as error:
                    errors[path.name] = error
            if not is_free:
                sync_folder(self.folder)
        return errors

    def clear_away(self, paths: Sequence[Path]) -> None:
        """Remove files that are no longer needed. Errors are logged, not raised; the next start tries again."""
        for name, error in self.remove(paths).items():
            log.warning("%s could not be removed: %s", name, error.strerror)

    def clear_held(self) -> int:
        """Delete the files in `held`, and return how many there were. Does nothing during a backup."""
        with self._sharing() as is_free:
            return self._clear() if is_free else 0

    @contextmanager
    def pausing(self) -> Iterator[None]:
        """Within the block, `remove` moves files to the folder `held` instead of deleting them.

        Raises BackupRunning or OSError.
        """
        self.folder.mkdir(mode=0o700, exist_ok=True)
        deadline_s = time.monotonic() + PATIENCE_S
        while (descriptor := _lock(self.folder, fcntl.LOCK_EX)) is None:
            if time.monotonic() > deadline_s:
                raise BackupRunning(self.folder.parent)
            time.sleep(PAUSE_S)
        try:
            # Delete files that a killed backup left, because this backup doesn't need them.
            self._clear()
            yield
            self._clear()
        finally:
            os.close(descriptor)

    @contextmanager
    def _sharing(self) -> Iterator[bool]:
        """Prevent backups from starting within the block. Yields False if one is running."""
        try:
            descriptor = _lock(self.folder, fcntl.LOCK_SH)
        except FileNotFoundError:
            # No backup is running, because it would have created the folder.
            yield True
            return
        try:
            yield descriptor is not None
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def _clear(self) -> int:
        if self.folder.is_symlink() or not self.folder.is_dir():
            return 0
        held = list_own(self.folder, _STORED)
        for name in held:
            (self.folder / name).unlink(missing_ok=True)
        return len(held)


def _lock(folder: Path, kind: int) -> int | None:
    """Lock the folder until the returned descriptor is closed; None if it is locked already."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
