"""Observes a folder by file system events, or by polling if the file system reports no changes."""

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

from svc_cli.sync.watch.file_events import Event

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
        observer.schedule(_Handler(on_event), str(folder), recursive=True, event_filter=WATCHED)
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


class _Handler(FileSystemEventHandler):
    def __init__(self, on_event: Callable[[Event], None]) -> None:
        self._on_event = on_event

    def dispatch(self, event: FileSystemEvent) -> None:
        self._on_event(Event(event.event_type, event.is_directory, str(event.src_path), str(event.dest_path)))


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
