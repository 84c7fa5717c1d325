"""Runs a program as on Windows: without the modules, names and abilities that only Unix has.

It is run as a script, with a module that has a `main` and that program's command lines, which are run one by one until
one fails. A list of files has no inodes, and
a file that is open can't be renamed or removed. This is no Windows all the same: paths have slashes, for example.
"""

import asyncio  # noqa: F401 - imported before anything is taken away from it, as are the next
import fcntl
import importlib
import os
import select
import signal
import socket  # noqa: F401
import subprocess  # noqa: F401
import sys
import tempfile  # noqa: F401
import time
from types import SimpleNamespace
from typing import Any, Self

MODULES = ("fcntl", "pwd", "grp", "resource", "termios", "tty", "pty", "syslog")
NAMES: dict[Any, str] = {
    os: "O_NONBLOCK O_NOFOLLOW O_DIRECTORY O_CLOEXEC O_PATH WNOHANG geteuid fork setsid fchmod chown uname",
    signal: "pthread_kill SIGHUP SIGKILL",
    select: "poll",
    time: "clock_gettime CLOCK_BOOTTIME",
}
#: Calls that get `dir_fd`, or the descriptor of a folder.
CALLS = ("open", "stat", "lstat", "scandir", "listdir", "mkdir", "readlink", "rename", "replace", "unlink", "remove")
#: The calls that fail for what this process has open.
REFUSED_WHILE_OPEN = ("rename", "replace", "unlink", "remove")

_links_of, _is_folder = os.readlink, os.path.isdir
_scanned: set[str] = set()


class Listed:
    """An entry of a folder without inode, device and number of links."""

    def __init__(self, entry: "os.DirEntry[str]") -> None:
        self._entry = entry

    def __getattr__(self, name: str) -> Any:
        return getattr(self._entry, name)

    def __fspath__(self) -> str:
        return self._entry.path

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        mode, _, _, _, *rest = self._entry.stat(follow_symlinks=follow_symlinks)[:10]
        return os.stat_result((mode, 0, 0, 0, *rest))


class Listing:
    """What `os.scandir` returns."""

    def __init__(self, entries: Any) -> None:
        self._entries = entries
        self.close = entries.close

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Listed:
        return Listed(next(self._entries))


def refuse_like_windows(name: str) -> None:
    """Replace a function of `os` by one that refuses what Windows refuses."""
    call = getattr(os, name)

    def called(path: Any = ".", *given: Any, **options: Any) -> Any:
        if any(options.get(each) is not None for each in ("dir_fd", "src_dir_fd", "dst_dir_fd")):
            raise NotImplementedError(f"{name}: dir_fd unavailable on this platform")
        if isinstance(path, int) and name != "stat":
            raise TypeError(f"{name}: path should be string, bytes or os.PathLike, not int")
        if name == "open" and not given[0] & os.O_TMPFILE and _is_folder(path):
            raise PermissionError(13, "Permission denied", path)
        if name in REFUSED_WHILE_OPEN:
            _refuse_open(*(os.path.realpath(each) for each in (path, *given)))
        found = call(path, *given, **options)
        return Listing(found) if name == "scandir" else found

    setattr(os, name, called)


def _refuse_open(*paths: str) -> None:
    """Raise an error if this process has one of the files open, or at the first try, as if a scanner had."""
    opened = set()
    for number in range(256):
        try:
            opened.add(_links_of(f"/proc/self/fd/{number}"))
        except OSError:
            continue
    if not opened.isdisjoint(paths) or (len(paths) > 1 and paths[-1] not in _scanned):
        _scanned.add(paths[-1])
        raise PermissionError(13, "Access is denied", paths[0])


def lock_like_windows(descriptor: int, mode: int, size_bytes: int) -> None:
    """Lock an open file as `msvcrt.locking` does."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise PermissionError(13, "Permission denied") from error


def become_windows() -> None:
    for name in MODULES:  # None says that there is no such module
        sys.modules[name] = None  # type: ignore[assignment]
    sys.modules["msvcrt"] = SimpleNamespace(locking=lock_like_windows, LK_NBLCK=2)  # type: ignore[assignment]
    # It asks on which platform it is to find its locks.
    vars(importlib.import_module("svc_cli.private_files"))["sys"] = SimpleNamespace(platform="win32")
    os.supports_dir_fd.clear()
    for module, names in NAMES.items():
        for name in names.split():
            delattr(module, name)
    for call in CALLS:
        refuse_like_windows(call)


def run_all(module: str, lines: str) -> int:
    """Run these command lines with the `main` of a module; returns the exit code of the last that was run."""
    become_windows()
    for line in lines.split("\n"):
        sys.argv[:] = ["svc", *line.split()]
        try:
            importlib.import_module(module).main()
        except SystemExit as ended:
            if ended.code:
                raise
    return 0


if __name__ == "__main__":
    sys.exit(run_all(*sys.argv[1:]))
