"""Hears the file system, through watchdog: by events, or by asking again and again where none come."""

import errno
import sys
from collections.abc import Callable
from pathlib import Path

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

from svc_cli.sync.watch.hints import Event

#: Opening and reading a file are no events: a sync reads files, and would wake itself.
HEARD: list[type[FileSystemEvent]] = [
    *(DirCreatedEvent, DirDeletedEvent, DirMovedEvent),
    *(FileClosedEvent, FileCreatedEvent, FileDeletedEvent, FileModifiedEvent, FileMovedEvent),
]
#: Between two looks at a folder that tells of no changes.
POLL_S = 5.0


class LimitReached(OSError):
    """The system gives no more watches."""


class Observer:
    """One folder that is listened to. `tell` and `lose` are called in other threads."""

    def __init__(
        self, folder: Path, tell: Callable[[Event], None], lose: Callable[[str], None], *, polls: bool
    ) -> None:
        """`lose` hears why events were lost: `overflow` or `limit`.

        Raises LimitReached where the system gives no watches, OSError for a folder that can't be listened to.
        """
        observer = PollingObserver(timeout=POLL_S) if polls else _native(lose)
        observer.schedule(_Ear(tell), str(folder), recursive=True, event_filter=HEARD)
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
        """Whether it still listens; it may say so of a folder that was replaced."""
        emitters = self._observer.emitters
        return self._observer.is_alive() and bool(emitters) and all(emitter.is_alive() for emitter in emitters)

    def close(self) -> None:
        self._observer.stop()
        self._observer.join()


class _Ear(FileSystemEventHandler):
    def __init__(self, tell: Callable[[Event], None]) -> None:
        self._tell = tell

    def dispatch(self, event: FileSystemEvent) -> None:
        self._tell(Event(event.event_type, event.is_directory, str(event.src_path), str(event.dest_path)))


def _native(lose: Callable[[str], None]) -> BaseObserver:
    """The system's own way to tell; on Linux one that says when it lost something. Raises LimitReached."""
    if not sys.platform.startswith("linux"):
        from watchdog.observers import Observer as SystemObserver

        return SystemObserver()
    from svc_cli.sync.watch.inotify import InotifyObserver

    try:
        return InotifyObserver(lose)
    except OSError as error:
        raise LimitReached(error.errno, error.strerror) from error
