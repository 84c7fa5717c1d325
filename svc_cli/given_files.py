"""Paths that the user names: what titles they give, and how small files are read, such as a key file.

Such a file is read whole, but never endlessly: the name may be that of a file in a stranger's repository, which may be
a pipe without a writer, or a link to /dev/zero.
"""

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

from svc_daemon.paths import AS_IT_IS

#: A project's file of settings.
PROJECT_FILE = "svc.toml"
#: The folders of streams that the shell opens, such as /dev/stdin, or /dev/fd/63 for `<(command)`.
STREAMS = ("/dev", "/dev/fd", "/proc/self/fd")
#: Maximum size of a file with a key or secret.
KEY_BYTES = 64 * 1024
#: Maximum size of any other file, such as an answer whose quotes are checked.
MOST_BYTES = 64 * 1024 * 1024


def is_folder_gone() -> bool:
    """Whether the current folder was deleted, or can't be found for another reason."""
    try:
        return not os.getcwd()  # noqa: PTH109 - only whether it fails
    except OSError:
        return True


def is_stream(path: Path) -> bool:
    """Whether this is a stream that the shell has opened, and not a file in a folder."""
    return str(path.absolute().parent) in STREAMS


def read_given(path: Path, most_bytes: int = MOST_BYTES) -> bytes:
    """Return the bytes of a file. Raises OSError, also if it is larger than `most_bytes`, or is a pipe or device."""
    may_wait = is_stream(path)
    with os.fdopen(os.open(path, os.O_RDONLY | (0 if may_wait else AS_IT_IS)), "rb") as file:
        if not may_wait and not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise OSError(errno.EFBIG, f"it has more than {most_bytes} bytes")
    return data


def resolved(path: str) -> str:
    """Return the path with its links resolved, or unchanged if that fails because a link was replaced meanwhile."""
    try:
        return os.path.realpath(path)
    except OSError:
        return path


def absolute(path: Path) -> Path:
    """Return the absolute path, in which only `..` is resolved, and links stay links."""
    path = path.absolute()
    if os.pardir not in path.parts:
        return path
    end = len(path.parts) - path.parts[::-1].index(os.pardir)
    return Path(os.path.realpath(Path(*path.parts[:end])), *path.parts[end:])


def find_repository(folder: Path, marks: tuple[str, ...] = (".git",)) -> Path | None:
    """Return the root of the folder's Git repository: the nearest folder upwards that has a `.git`, or None.

    With other `marks`, it is the nearest folder that has one of them.
    """
    for parent in (folder, *folder.parents):
        # Denied access is reported later, when the folder is listed.
        with suppress(OSError):
            if any((parent / mark).exists() for mark in marks):
                return parent
    return None


def title_of(path: Path, place: str = "") -> str:
    """Return the title of a file or folder that the user named; empty for the root of a repository.

    Inside of a repository it is the path from its root, so that it is the same from wherever the path is named.
    Elsewhere it is the path as typed if that is relative and has no `..`, otherwise the name alone, as the shell shows
    it. What a pattern has found ends in `place`, the path in the folder with which the pattern begins, and keeps it.
    """
    full = absolute(path)
    folder, name = (full, "") if full.is_dir() else (full.parent, full.name)
    for each in (folder, Path(resolved(str(folder)))):
        repository = find_repository(each) or find_repository(each, (PROJECT_FILE,))
        if repository is not None:
            return (each / name).relative_to(repository).as_posix().removeprefix(os.curdir)
    if not path.is_absolute() and os.pardir not in path.parts and path.parts:
        return path.as_posix()
    # Only the shell knows by which link it has entered a folder, so that `.` gives the same title as the link.
    shown = Path(os.path.normpath(Path(os.environ.get("PWD") or Path.cwd(), path)))
    with suppress(OSError):
        full = shown if shown.samefile(path) else full
    above = Path(full.as_posix().removesuffix(place)) if place else full
    return f"{above.name}/{place}".strip("/")
