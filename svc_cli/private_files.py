"""Reads and replaces files in the user's configuration folder, durably; only the user may read them."""

import os
import sys
import time
from pathlib import Path
from typing import Any

from svc_cli.errors import UsageError, refused_by_system
from svc_daemon.paths import make_folder, opens_folders, sync_folder
from svc_daemon.wire.light.parsing import parse_json

#: Seconds between attempts to rename a file on Windows.
PAUSES_S = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)


def read_rows(path: Path) -> dict[str, dict[str, Any]]:
    """Return the objects in a JSON file, by name; none if there is no file. Raises UsageError if it can't be read."""
    try:
        found = parse_json(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} can't be read: {error}", hint="repair or delete it.") from error
    rows = found.items() if isinstance(found, dict) else ()
    return {name: row for name, row in rows if isinstance(row, dict)}


def check_visible(path: Path) -> None:
    """Raise UsageError if this user may not even see whether a file of the data directory is there."""
    try:
        path.lstat()
    except PermissionError as error:
        hint = "another user may have a daemon there: run this as that user, or set SVC_DATA_DIR."
        raise refused_by_system(error, hint) from error
    except OSError:
        return


def make_data_folder(folder: Path) -> None:
    """Create the data directory. Raises UsageError if the system refuses that."""
    try:
        make_folder(folder)
    except OSError as error:
        raise refused_by_system(error, "set SVC_DATA_DIR to a folder that this user may write.") from error


def replace(path: Path, text: str) -> None:
    """Replace the file, or create it. When this returns, the new content is on the disk."""
    import tempfile

    make_folder(path.parent)
    # The draft has mode 0600 from the start: before a later chmod, other users could read it.
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        rename(draft, path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def rename(draft: str | Path, path: str | Path, folder: int | None = None) -> None:
    """Put a file in the place of another one; in an open folder if one is given. Raises OSError.

    Windows refuses that while some program has one of the two open, such as one that looks for viruses.
    """
    for pause_s in () if opens_folders() else PAUSES_S:
        try:
            os.replace(draft, path)  # noqa: PTH105 - as below
        except PermissionError:
            time.sleep(pause_s)
        else:
            return
    os.replace(draft, path, src_dir_fd=folder, dst_dir_fd=folder)


def lock(descriptor: int) -> None:
    """Lock an open file for this process. Raises BlockingIOError if another process has locked it."""
    if sys.platform == "win32":
        import msvcrt

        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError from error
        return
    try:
        import fcntl
    except ImportError:  # a system without locks
        return
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
