"""Runs an upload, an import or a sync: its threads, its progress, and the wait until its sources are ready."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import wraps
from queue import Empty, SimpleQueue
from typing import ParamSpec, TypeVar

from svc_cli.client.api import Client
from svc_cli.client.retries import Stopped
from svc_cli.client.waiting import Watch, wait_until_settled
from svc_cli.errors import Interrupted, SvcError
from svc_cli.interrupts import shielded
from svc_cli.progress import Progress, SentBytes
from svc_cli.render import scan_progress
from svc_cli.transfer.reports import Report, ReportItem
from svc_daemon.wire import JsonMapping

P = ParamSpec("P")
T = TypeVar("T")

#: Maximum seconds that the main thread blocks, because it can't handle Ctrl-C meanwhile.
HEARTBEAT_S = 0.2
#: Seconds that running requests get to finish after an interrupt.
GRACE_S = 1.0


class ThreadPool:
    """A thread pool that puts the future of each finished task into a queue."""

    def __init__(self, size: int, name: str) -> None:
        self.pool = ThreadPoolExecutor(size, thread_name_prefix=name)

    @shielded()
    def give(self, task: Callable[[], T], done: "SimpleQueue[Future[T]]") -> "Future[T]":
        """Queue the task. When it is finished, its future is put into `done`."""
        future = self.pool.submit(task)
        future.add_done_callback(done.put)
        return future

    @shielded()
    def end(self) -> None:
        """Cancel the tasks that have not started. Does not wait for running tasks."""
        self.pool.shutdown(wait=False, cancel_futures=True)


def take(done: "SimpleQueue[Future[T]]") -> "Future[T] | None":
    """Return the next finished future; None if none finishes within HEARTBEAT_S."""
    with suppress(Empty):
        return done.get(timeout=HEARTBEAT_S)
    return None


@dataclass
class TransferRun:
    """One upload, import or sync while it runs."""

    client: Client
    progress: Progress
    report: Report
    #: Called when a file was sent, skipped or failed, and again when its source is ready or failed.
    on_item: Callable[[ReportItem], None]
    sent: SentBytes = field(default_factory=SentBytes, init=False)

    def add(self, item: ReportItem) -> None:
        """Report the result for a file."""
        self.report.add(item)
        self.show()
        self.on_item(item)

    def show(self) -> None:
        """Show the progress."""
        self.progress.update(self.report.done, self.sent.note(self.client.waiting_creates))

    def do_all(
        self,
        tasks: Sequence[Callable[[], ReportItem]],
        jobs: int,
        on_done: Callable[[ReportItem], None] = lambda _: None,
    ) -> None:
        """Run the tasks, `jobs` at a time. An error that affects all of them ends the run.

        The calling thread calls `on_done` with what each task returns, before that is reported.
        """
        pool, done = ThreadPool(jobs, "task"), SimpleQueue[Future[ReportItem]]()
        under_way: set[Future[ReportItem]] = set()
        with self.ended(pool):
            for task in tasks:
                under_way.add(pool.give(task, done))
            while under_way:
                self._take(done, under_way, on_done)
        is_interrupted = isinstance(self.report.stopped_by, Interrupted)
        deadline_s = time.monotonic() + (GRACE_S if is_interrupted else float("inf"))
        with self.ended():
            while under_way and time.monotonic() < deadline_s:
                with suppress(SvcError):  # only the first error, which ended the run, is reported
                    self._take(done, under_way, on_done)

    def wait(
        self,
        timeout_s: float | None,
        save: Callable[[Mapping[str, JsonMapping]], None] = lambda _: None,
    ) -> None:
        """Wait until all accepted sources are ready or failed, and no longer than the client may. Raises WaitTimedOut.

        Even after an error, the last known states of the sources are reported, and given to `save`.
        """
        pending: defaultdict[str, list[ReportItem]] = defaultdict(list)
        for item in self.report.items.values():
            if item.is_pending and item.source_id:
                # Several spellings of a URL may share a source.
                pending[item.source_id].append(item)
        if not pending:
            return
        self.progress.begin("indexing", len(pending))
        watch = Watch(pending)

        def show(seen: Watch) -> None:
            notes = [f"{seen.failed_count} failed"] if seen.failed_count else []
            notes += [scan_progress(seen.scan)] if seen.scan else []
            notes += [seen.waits_for] if seen.waits_for else []
            self.progress.update(seen.settled_count, ", ".join(notes))

        try:
            timeout_s = self.client.deadline.within(timeout_s)
            wait_until_settled(self.client, watch, timeout_s=timeout_s, on_change=show)
        finally:
            seen = {source_id: source for source_id, source in watch.seen.items() if source}
            for source_id, source in seen.items():
                for item in pending[source_id]:
                    item.follow(source)
                    self.on_item(item)
            save(seen)

    def finish(self, timeout_s: float | None) -> None:
        """Wait like `wait`, unless the run was ended early. An error is stored in the report."""
        if not self.report.stopped_by:
            with self.ended():
                self.wait(timeout_s)

    @contextmanager
    def caught(self) -> Iterator[None]:
        """Store the first error of the block in the report."""
        try:
            yield
        except KeyboardInterrupt as interrupt:
            self.report.stopped_by = interrupted(interrupt)
        except SvcError as error:
            self.report.stopped_by = self.report.stopped_by or error

    @contextmanager
    def ended(self, *pools: ThreadPool) -> Iterator[None]:
        """End the thread pools after the block. An error in the block is stored in the report, and ends the run."""
        try:
            with self.caught():
                yield
        finally:
            if self.report.stopped_by:
                self.client.stop()
            for pool in pools:
                pool.end()

    def _take(
        self,
        done: "SimpleQueue[Future[ReportItem]]",
        under_way: "set[Future[ReportItem]]",
        on_done: Callable[[ReportItem], None],
    ) -> None:
        """Record the result of the task that ends next, if one ends soon. Raises errors that affect every task."""
        future = take(done)
        if future is None:
            return
        with shielded(), suppress(Stopped, CancelledError):
            under_way.remove(future)
            item = future.result()
            on_done(item)
            self.add(item)


def interrupted(interrupt: KeyboardInterrupt) -> Interrupted:
    """Return the error for a run that was ended by Ctrl-C or another signal."""
    return Interrupted.of(interrupt, "run the same command again to continue where it stopped.")


def resumable(command: Callable[P, T]) -> Callable[P, T]:
    """Make a command raise Interrupted when it is interrupted, with a hint to run the command again."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return command(*args, **kwargs)
        except KeyboardInterrupt as interrupt:
            raise interrupted(interrupt) from None

    return run
