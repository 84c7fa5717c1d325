"""Threads that work for another one, which waits at a queue: Ctrl-C reaches it there, and leaves no lock behind.

The main thread doesn't wait for a future. An interrupt inside `wait` or `result` may keep the future's lock, and the
thread that ends the future then waits for it for ever.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TypeVar

from svc_cli.interrupts import shielded

T = TypeVar("T")

#: How often a waiting main thread looks up: the system may give a signal to another thread.
HEARTBEAT_S = 0.2
#: After an interrupt, requests under way have so long to end.
GRACE_S = 1.0


class Crew:
    """A pool of threads, whose tasks report their end to a queue."""

    def __init__(self, size: int, name: str) -> None:
        self.pool = ThreadPoolExecutor(size, thread_name_prefix=name)

    @shielded()
    def give(self, task: Callable[[], T], done: "SimpleQueue[Future[T]]") -> "Future[T]":
        """Have the task done, soon; its future goes to `done` when it has ended."""
        future = self.pool.submit(task)
        future.add_done_callback(done.put)
        return future

    @shielded()
    def end(self) -> None:
        """Begin nothing more. What is under way is not waited for."""
        self.pool.shutdown(wait=False, cancel_futures=True)


def take(done: "SimpleQueue[Future[T]]") -> "Future[T] | None":
    """The next future that has ended; None after a heartbeat without one."""
    with suppress(Empty):
        return done.get(timeout=HEARTBEAT_S)
    return None
