"""The queue of a database's writer: one thread commits the queued work in groups."""

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from svc_daemon.errors import ShuttingDown

T = TypeVar("T")
Job = tuple[Callable[[Any], Any], "Future[Any]"]
#: The result of a piece of work, or its error.
Outcome = tuple[Any, BaseException | None]


class GroupWriter:
    """Calls `commit` with groups of queued work, on its own thread. Thread-safe.

    `commit` must resolve the futures.
    """

    def __init__(self, name: str, commit: Callable[[Sequence[Job]], None], limit: int) -> None:
        """`limit` is the maximum number of pieces of work per group."""
        self._commit = commit
        self._limit = limit
        self._is_closed = False
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._submit_lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[Any], T]) -> "Future[T]":
        """Queue `work`. The future is resolved after the commit of this work. Raises ShuttingDown after `close`."""
        future: Future[T] = Future()
        with self._submit_lock:  # nothing must be queued after the None that stops the thread
            if self._is_closed:
                raise ShuttingDown
            self._queue.put((work, future))
        return future

    def close(self) -> bool:
        """Finish the queued work and stop the thread. Returns False if the writer was closed before."""
        with self._submit_lock:
            if self._is_closed:
                return False
            self._is_closed = True
            self._queue.put(None)
        self._thread.join()
        return True

    def _run(self) -> None:
        while (job := self._queue.get()) is not None:
            waiting, last = self._gather(job)
            # Leave out work that was cancelled. From now on, the rest can't be cancelled.
            group = [(work, future) for work, future in waiting if future.set_running_or_notify_cancel()]
            if group:
                self._commit(group)
            if last:
                return

    def _gather(self, first: Job) -> tuple[list[Job], bool]:
        """Return the next group, and whether it is the last."""
        group = [first]
        while len(group) < self._limit:
            try:
                job = self._queue.get_nowait()
            except queue.Empty:
                return group, False
            if job is None:
                return group, True
            group.append(job)
        return group, False


def resolve(future: "Future[Any]", result: Any, failure: BaseException | None) -> None:
    if failure is not None:
        future.set_exception(failure)
    else:
        future.set_result(result)
