"""Observes a folder by file system events, or by polling if the file system reports no changes."""

import errno
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers.api import BaseObserver
from watchdog.observers.polling import PollingObserver

from svc_cli.transfer.ignores import IGNORE_FILES
from svc_daemon.paths import AS_IT_IS

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
    """A file system event. Paths are absolute, and `/`-separated."""

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


def hints_through(event: Event, root: str, links: Mapping[str, str], is_fresh: Callable[[str], bool]) -> Iterator[Hint]:
    """Convert an event to hints, also about each followed link that leads to its paths.

    `links` maps the links to the places to which they lead.
    """
    yield from hints_of(event, root, is_fresh)
    for link, place in links.items():
        real = f"{root}/{place}"
        ends = [
            f"{root}/{link}{end[len(real) :]}" if f"{end}/".startswith(f"{real}/") else ""
            for end in (event.path, event.target)
        ]
        if any(ends):
            yield from hints_of(event._replace(path=ends[0], target=ends[1]), root, is_fresh)


def _hint(path: str, kind: Kind) -> Iterator[Hint]:
    folder, _, name = path.rpartition("/")
    if name in IGNORE_FILES and not _is_hidden(folder):
        yield Hint(folder, Kind.WRITTEN)  # a changed ignore file affects everything in its folder
    elif not _is_hidden(path):
        yield Hint(path, kind)


def _below(path: str, root: str) -> str | None:
    """Return the path relative to the root, `/`-separated; None if it is not below the root."""
    base = f"{root.rstrip('/')}/"
    if not path.startswith(base) or len(path) == len(base):
        return None
    return path[len(base) :].rstrip("/")


def _is_hidden(path: str) -> bool:
    """Whether a component of the path begins with a dot."""
    return path.startswith(".") or "/." in path


class Inbox:
    """Collects the events that an observer reports from its threads, and wakes the loop through `bell`."""

    def __init__(self, bell: SimpleQueue[None]) -> None:
        self.events: deque[Event] = deque()
        #: The reasons why events were lost.
        self.losses: deque[str] = deque()
        self._bell = bell

    def add(self, event: Event) -> None:
        """Add an event, and wake the loop."""
        self.events.append(event)
        self._bell.put(None)

    def lose(self, reason: str) -> None:
        """Add the reason why events were lost, and wake the loop."""
        self.losses.append(reason)
        self._bell.put(None)


#: The code of the error of what can't be read.
UNREADABLE = "svc_file_unreadable"
#: Seconds until what can't be read is tried again.
UNREAD_PAUSE_S = 2.0


@dataclass(slots=True)
class Unread:
    """What belongs to a folder and can't be read, and so is not watched. It is tried again until it can be read."""

    folder: Path
    #: Paths relative to the folder.
    paths: set[str] = field(default_factory=set)
    #: Those that can be opened, and fail for another reason: trying them again once is enough.
    _odd: set[str] = field(default_factory=set)
    _tried_s: float = 0.0

    def note(self, failed: Iterable[str], *, is_whole: bool) -> list[str]:
        """Remember what a sync, of the whole folder or of a part, could not read; return what of it is new."""
        found, before = {path.rstrip("/") for path in failed}, self.paths
        closed = {path for path in found if not self._opens(path)}
        self.paths = closed | (found - self._odd) | (set() if is_whole else before)
        self._odd = (found - closed) | (set() if is_whole else self._odd)
        return sorted(self.paths - before)

    def has_opened(self, now_s: float) -> bool:
        """Whether something can be read now; it is tried every UNREAD_PAUSE_S."""
        if not self.paths or now_s < self._tried_s + UNREAD_PAUSE_S:
            return False
        self._tried_s = now_s
        return any(map(self._opens, self.paths))

    def _opens(self, path: str) -> bool:
        """Whether a file or folder can be opened; also true if it is gone."""
        full = self.folder / path
        try:
            if full.is_dir():
                os.scandir(full).close()
            else:
                os.close(os.open(full, os.O_RDONLY | AS_IT_IS))
        except OSError as error:
            return isinstance(error, FileNotFoundError | NotADirectoryError)
        return True


#: The events to observe. They don't include reads: a sync reads the files, and so would trigger itself.
WATCHED: list[type[FileSystemEvent]] = [
    *(DirCreatedEvent, DirDeletedEvent, DirMovedEvent),
    *(FileClosedEvent, FileCreatedEvent, FileDeletedEvent, FileModifiedEvent, FileMovedEvent),
]
#: Seconds between two scans when polling.
POLL_S = 5.0


class LimitReached(OSError):
    """The system's limit of inotify watches or instances is reached."""


class Observer:
    """Observes one folder. Calls the callbacks from other threads."""

    def __init__(
        self, folder: Path, on_event: Callable[[Event], None], on_loss: Callable[[str], None], *, polls: bool
    ) -> None:
        """`on_loss` gets the reason why events were lost: `overflow` or `limit`.

        Raises LimitReached or another OSError.
        """
        observer = PollingObserver(timeout=POLL_S) if polls else _native(on_loss)
        observer.schedule(Handler(on_event), str(folder), recursive=True, event_filter=WATCHED)
        try:
            observer.start()
        except OSError as error:
            observer.unschedule_all()
            observer.on_thread_stop()
            if error.errno in (errno.ENOSPC, errno.EMFILE):
                raise LimitReached(error.errno, error.strerror) from error
            raise
        self._observer = observer

    @property
    def is_alive(self) -> bool:
        """Whether the observer's threads still run."""
        emitters = self._observer.emitters
        return self._observer.is_alive() and bool(emitters) and all(emitter.is_alive() for emitter in emitters)

    def close(self) -> None:
        self._observer.stop()
        self._observer.join()


class Handler(FileSystemEventHandler):
    """Passes on the events of watchdog."""

    def __init__(self, on_event: Callable[[Event], None]) -> None:
        self._on_event = on_event

    def dispatch(self, event: FileSystemEvent) -> None:
        path, target = (str(each).replace(os.sep, "/") for each in (event.src_path, event.dest_path))
        self._on_event(Event(event.event_type, event.is_directory, path, target))


def _native(on_loss: Callable[[str], None]) -> BaseObserver:
    """Return an observer for this system. Raises LimitReached."""
    if not sys.platform.startswith("linux"):
        from watchdog.observers import Observer as SystemObserver

        return SystemObserver()
    from svc_cli.sync.watch.inotify import InotifyObserver

    try:
        return InotifyObserver(on_loss)
    except OSError as error:
        raise LimitReached(error.errno, error.strerror) from error


#: Network and shared file systems, which don't report the changes that other machines make.
SILENT = frozenset(
    {"9p", "afs", "ceph", "cifs", "drvfs", "glusterfs", "lustre", "ncpfs", "nfs", "nfs4", "prl_fs", "smb3", "smbfs"}
    | {"vboxsf", "virtiofs", "vmhgfs", "fuse.sshfs", "fuse.rclone", "fuse.s3fs", "fuse.glusterfs", "fuse.vmhgfs-fuse"}
)
#: The kernel's list of mounted file systems.
MOUNTS = Path("/proc/self/mounts")
#: The escape sequences in the paths of this list.
_ESCAPES = {"\\040": " ", "\\011": "\t", "\\012": "\n", "\\134": "\\"}


def find_silence(folder: Path) -> str | None:
    """Return the type of the folder's file system if it does not report all changes, otherwise None."""
    try:
        lines = MOUNTS.read_text("utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    kind = kind_of(str(folder.resolve()), lines)
    return kind if kind in SILENT else None


def kind_of(path: str, mounts: Iterable[str]) -> str | None:
    """Return the type of the file system at a path. `mounts` are the lines of /proc/self/mounts."""
    best, found = -1, None
    for line in mounts:
        parts = line.split(" ")
        if len(parts) < 3:
            continue
        point = parts[1].rstrip("/")
        for code, character in _ESCAPES.items():
            point = point.replace(code, character)
        # Use the longest mount point that contains the path. If several are equally long, use the last.
        if len(point) >= best and (path == point or path.startswith(f"{point}/")):
            best, found = len(point), parts[2]
    return found


def count_folders(root: Path) -> int:
    """Count the folders below `root`, including `root` itself."""
    return sum(1 for _ in os.walk(root))
