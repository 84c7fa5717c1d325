"""Moves stored files without a database row to a separate folder, from which they can be restored.

Such a file may be the only copy of its content, for example after an older database was restored. Its new path contains
the day on which it was moved: `aside/2026-11-22/src_01k2…`.
"""

import re
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from svc_daemon.core import ids
from svc_daemon.data_directory import list_own
from svc_daemon.store.blobs import Blobs
from svc_daemon.store.contract import ByteStores, Tally
from svc_daemon.store.parts import Parts

#: The names of the folders, one for each day.
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_SHAPE = re.compile(f"{ids.BLOB_NAME.pattern}|{ids.PART_NAME.pattern}")


class SetAsideFiles:
    """The folder to which files without a database row are moved. All methods block."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        #: Number of files in the folder, as last counted.
        self.tally = Tally()

    def find_all(self) -> dict[str, Path]:
        """Map the name of each file to its path. If several have the same name, the one moved last is used."""
        return {name: day / name for day in self._days() for name in list_own(day, _SHAPE) if _is_plain(day / name)}

    def list_names(self) -> Collection[str]:
        return self.find_all()

    def put(self, path: Path, today: str) -> bool:
        """Move the file to this day's folder. Returns False if the target exists, or if a path has a symbolic link."""
        place = self.folder / today / path.name
        is_led_away = any(folder.is_symlink() for folder in (path.parent, self.folder, place.parent))
        if is_led_away or not _is_plain(path) or place.exists():
            return False
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.rename(place)
        return True

    def remove(self, names: Collection[str]) -> None:
        """Delete all files with these names."""
        _remove([day / name for day in self._days() for name in list_own(day, _SHAPE) if name in names])

    def remove_before(self, day: str) -> int:
        """Delete the files that were moved here before this day, and return their number."""
        old = [folder / name for folder in self._days() if folder.name < day for name in list_own(folder, _SHAPE)]
        _remove(old)
        return len(old)

    def _days(self) -> list[Path]:
        if self.folder.is_symlink() or not self.folder.is_dir():
            return []
        return sorted(
            path
            for path in self.folder.iterdir()
            if DAY.fullmatch(path.name) and path.is_dir() and not path.is_symlink()
        )


@dataclass(frozen=True, slots=True)
class DataFolders(ByteStores):
    """The folders of a data directory for blobs, for upload parts, and for files without a database row."""

    blobs: Blobs
    parts: Parts
    set_aside_files: SetAsideFiles


def _remove(paths: Collection[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
    for folder in {path.parent for path in paths}:
        # This fails, as intended, if the folder still contains other files.
        with suppress(OSError):
            folder.rmdir()


def _is_plain(path: Path) -> bool:
    """Whether this is a regular file rather than a symbolic link."""
    return path.is_file() and not path.is_symlink()
