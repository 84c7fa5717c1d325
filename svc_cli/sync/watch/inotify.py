"""An observer for Linux that reports when events are lost."""

import errno
from collections.abc import Callable

from watchdog.observers.api import BaseObserver
from watchdog.observers.inotify import InotifyEmitter
from watchdog.observers.inotify_c import CallbackId, InotifyEvent, InotifyFD, Mask, WatchCallback, WatchDescriptor


class KernelQueue(InotifyFD):
    """An inotify instance. Calls `on_loss` with `overflow` if its queue was full, or `limit` if a watch was refused."""

    def __init__(self, on_loss: Callable[[str], None]) -> None:
        super().__init__()
        self._on_loss = on_loss

    def handle_event(self, event: InotifyEvent) -> None:
        super().handle_event(event)
        if event.is_queue_overflow:
            self._on_loss("overflow")

    def add_callback(self, path: bytes, mask: Mask, callback: WatchCallback, id_: CallbackId) -> WatchDescriptor:
        """Watch a folder. If the system allows no more watches, call `on_loss`; watchdog doesn't report this."""
        try:
            return super().add_callback(path, mask, callback, id_)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                self._on_loss("limit")
            raise


class InotifyObserver(BaseObserver):
    """A watchdog observer that uses a KernelQueue instead of watchdog's own class."""

    def __init__(self, on_loss: Callable[[str], None]) -> None:
        self._queue = KernelQueue(on_loss)
        self._queue.start()
        super().__init__(InotifyEmitter, inotify_fd=self._queue)

    def on_thread_stop(self) -> None:
        super().on_thread_stop()
        self._queue.stop()
        self._queue.join()
