"""Linux: watchdog's observer over a kernel queue that says when it overflowed, or got no more watches."""

import errno
from collections.abc import Callable

from watchdog.observers.api import BaseObserver
from watchdog.observers.inotify import InotifyEmitter
from watchdog.observers.inotify_c import CallbackId, InotifyEvent, InotifyFD, Mask, WatchCallback, WatchDescriptor


class KernelQueue(InotifyFD):
    """One inotify instance. watchdog mends its watches after an overflow and tells nobody; so this one does."""

    def __init__(self, lose: Callable[[str], None]) -> None:
        super().__init__()
        self._lose = lose

    def handle_event(self, event: InotifyEvent) -> None:
        super().handle_event(event)
        if event.is_queue_overflow:
            self._lose("overflow")

    def add_callback(self, path: bytes, mask: Mask, callback: WatchCallback, id_: CallbackId) -> WatchDescriptor:
        """Watch a folder; watchdog goes on without one that it was not given."""
        try:
            return super().add_callback(path, mask, callback, id_)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                self._lose("limit")
            raise


class InotifyObserver(BaseObserver):
    """An observer with a kernel queue of its own."""

    def __init__(self, lose: Callable[[str], None]) -> None:
        self._queue = KernelQueue(lose)
        self._queue.start()
        super().__init__(InotifyEmitter, inotify_fd=self._queue)

    def on_thread_stop(self) -> None:
        super().on_thread_stop()
        self._queue.stop()
        self._queue.join()
