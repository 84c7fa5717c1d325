"""Turns events of the file system into hints: a path below the root, and what happened to it. Pure."""

import os
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import NamedTuple

from svc_cli.uploads.ignores import IGNORE_FILES

#: The root itself, as a path below it: everything.
EVERYTHING = ""


class Kind(StrEnum):
    """What happened to a path."""

    #: It was made or written to; more may follow.
    WRITTEN = "written"
    #: Its writer has closed it.
    CLOSED = "closed"
    #: It is not there any more.
    GONE = "gone"
    #: A complete file was moved here; it is compared together with the path that it left.
    MOVED = "moved"


class Event(NamedTuple):
    """One report of the file system, in absolute paths."""

    #: `created`, `modified`, `closed`, `moved`, `deleted`; any other counts for nothing.
    verb: str
    is_folder: bool
    path: str
    #: Where it moved to.
    target: str = ""


class Hint(NamedTuple):
    path: str
    kind: Kind


_KINDS = {"created": Kind.WRITTEN, "modified": Kind.WRITTEN, "closed": Kind.CLOSED, "deleted": Kind.GONE}


def hints_of(event: Event, root: str, is_fresh: Callable[[str], bool]) -> Iterator[Hint]:
    """The hints of one event.

    `is_fresh` returns whether a path was written a moment ago: what an editor writes beside a file and then puts in
    its place is the file's new content, and anything else that moves is a file that was there before.
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
        yield Hint(folder, Kind.WRITTEN)  # other rules for all that lies in this folder
    elif not _is_hidden(path):
        yield Hint(path, kind)


def _below(path: str, root: str) -> str | None:
    """The path below the root, `/` between its parts; None for the root itself and for what lies elsewhere."""
    base = f"{root.rstrip(os.sep)}{os.sep}"
    if not path.startswith(base) or len(path) == len(base):
        return None
    return path[len(base) :].rstrip(os.sep).replace(os.sep, "/")


def _is_hidden(path: str) -> bool:
    """Whether a part of it begins with a dot; sync leaves those out, whatever happens to them."""
    return path.startswith(".") or "/." in path
