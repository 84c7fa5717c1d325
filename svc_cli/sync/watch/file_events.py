"""Converts file system events to hints. A hint is a relative path, and what happened to the file or folder there."""

import os
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import NamedTuple

from svc_cli.uploads.ignores import IGNORE_FILES

#: The path that stands for the whole folder. A hint with this path causes a full sync.
EVERYTHING = ""


class Kind(StrEnum):
    """What happened to a path."""

    #: Created or written to; more writes may follow.
    WRITTEN = "written"
    #: Closed by the program that wrote to it.
    CLOSED = "closed"
    #: Deleted or moved away.
    GONE = "gone"
    #: An existing file was moved here. Its new path is synced after the same delay as a deleted path, so that one sync
    #: sees both the old and the new path.
    MOVED = "moved"


class Event(NamedTuple):
    """A file system event. Paths are absolute."""

    #: `created`, `modified`, `closed`, `moved` or `deleted`.
    verb: str
    is_folder: bool
    path: str
    #: The new path, if the file or folder was moved.
    target: str = ""


class Hint(NamedTuple):
    path: str
    kind: Kind


_KINDS = {"created": Kind.WRITTEN, "modified": Kind.WRITTEN, "closed": Kind.CLOSED, "deleted": Kind.GONE}


def hints_of(event: Event, root: str, is_fresh: Callable[[str], bool]) -> Iterator[Hint]:
    """Convert an event to hints: relative paths, each with what happened there.

    `is_fresh` returns whether a path was written a moment ago. If such a file is renamed, the new path counts as
    written, because editors save in this way.
    """
    path = _below(event.path, root)
    if event.verb in _KINDS:
        if path and not (event.is_folder and event.verb == "modified"):
            yield from _hint(path, _KINDS[event.verb])
    elif event.verb == "moved":
        target = _below(event.target, root) if event.target else None
        is_known = bool(path) and not _is_hidden(path or "") and not is_fresh(path or "")
        if path:
            yield from _hint(path, Kind.GONE)
        if target:
            yield from _hint(target, Kind.MOVED if is_known else Kind.WRITTEN if event.is_folder else Kind.CLOSED)


def _hint(path: str, kind: Kind) -> Iterator[Hint]:
    folder, _, name = path.rpartition("/")
    if name in IGNORE_FILES and not _is_hidden(folder):
        yield Hint(folder, Kind.WRITTEN)  # a changed ignore file affects everything in its folder
    elif not _is_hidden(path):
        yield Hint(path, kind)


def _below(path: str, root: str) -> str | None:
    """Return the path relative to the root, `/`-separated; None if it is not below the root."""
    base = f"{root.rstrip(os.sep)}{os.sep}"
    if not path.startswith(base) or len(path) == len(base):
        return None
    return path[len(base) :].rstrip(os.sep).replace(os.sep, "/")


def _is_hidden(path: str) -> bool:
    """Whether a component of the path begins with a dot."""
    return path.startswith(".") or "/." in path
