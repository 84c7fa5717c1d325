"""Sends many files in parallel: collects them into groups, sends the groups in threads, and reports each as it ends.

The work is divided among:

shippers     threads that each handle one batch at a time
senders      threads that send single files
the caller   groups the files, collects and reports the results

Groups depend only on the order of the files. So the run after an interrupted run forms the same groups, and resumes
their sessions. The main thread waits for queues, never for futures: Ctrl-C could leave the lock of a future locked.
"""

import time
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future
from functools import partial
from queue import SimpleQueue
from types import TracebackType
from typing import Literal, Self

from svc_cli.client.batches import MOST_FILES
from svc_cli.client.new_files import BATCH_LEVELS, FIELD_LEVELS, count_levels
from svc_cli.client.retries import Stopped
from svc_cli.errors import UNFORESEEN, SvcError, understood
from svc_cli.interrupts import shielded
from svc_cli.transfer.runs import GRACE_S, ThreadPool, TransferRun, take
from svc_cli.transfer.transfers import Sender, Transfer, TransferGroup, is_of_files

Mode = Literal["auto", "one", "session", "batch"]

#: One batch is opened and one finalized while the bytes of a third are sent.
BATCHES_AT_ONCE = 3
#: A file larger than this is sent through an upload session, which can be resumed.
LARGE_BYTES = 8 * 1024 * 1024
#: Maximum total size of a batch's files.
BATCH_BYTES = 256 * 1024 * 1024


class Grouper:
    """Collects transfers into groups."""

    def __init__(self, mode: Mode) -> None:
        self._mode = mode
        self._waiting: list[Transfer] = []
        self._waiting_bytes = 0

    def add(self, transfer: Transfer) -> Iterator[TransferGroup]:
        """Add a transfer, and yield the groups that are now complete."""
        levels = count_levels(transfer.description.metadata)
        if self._mode == "one" or levels > FIELD_LEVELS:
            yield TransferGroup("one", (transfer,))
            return
        is_large = self._mode == "auto" and transfer.size_bytes > LARGE_BYTES
        if self._mode == "session" or is_large or levels > BATCH_LEVELS:
            yield TransferGroup("session", (transfer,))
            return
        if self._waiting_bytes + transfer.size_bytes > BATCH_BYTES:
            yield from self.rest()
        self._waiting.append(transfer)
        self._waiting_bytes += transfer.size_bytes
        if len(self._waiting) == MOST_FILES:
            yield from self.rest()

    def rest(self) -> Iterator[TransferGroup]:
        """Yield the remaining transfers as one group, if there are any."""
        group, self._waiting, self._waiting_bytes = sorted(self._waiting, key=lambda each: each.size_bytes), [], 0
        if group:
            yield TransferGroup("one" if len(group) == 1 and self._mode == "auto" else "batch", tuple(group))


class TransferQueue:
    """Sends several groups of files at a time. An exception in the `with` block stops the transfers."""

    def __init__(self, run: TransferRun, bucket_id: str, jobs: int, mode: Mode = "auto") -> None:
        self.run = run
        self._senders = ThreadPool(jobs, "send")
        self._shippers = ThreadPool(min(BATCHES_AT_ONCE, jobs), "ship")
        self._jobs = jobs
        note_batch = run.report.batch_ids.append
        self._sender = Sender(run.client, bucket_id, self._senders.pool, on_sent=run.sent.count, on_batch=note_batch)
        self._grouper = Grouper(mode)
        self._under_way: dict[Future[None], TransferGroup] = {}
        self._done: SimpleQueue[Future[None]] = SimpleQueue()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait until the running transfers have ended, and report them. After Ctrl-C, wait at most GRACE_S seconds."""
        if error is not None:
            self.run.client.stop()
        self._shippers.end()
        deadline_s = time.monotonic() + (GRACE_S if isinstance(error, KeyboardInterrupt) else float("inf"))
        try:
            while self._under_way and time.monotonic() < deadline_s:
                self._collect()  # further errors are ignored, because they would hide the first one
        finally:
            # End the senders last: shippers that are still running send their files through them.
            self._senders.end()

    def add(self, transfer: Transfer) -> None:
        """Queue a file. Raises SvcError for errors that affect every file."""
        for group in self._grouper.add(transfer):
            self.send(group)

    def send(self, group: TransferGroup) -> None:
        """Send a group as soon as a thread is free. Raises SvcError like `add`."""
        is_batch = group.kind == "batch"
        pool, most = (self._shippers, min(BATCHES_AT_ONCE, self._jobs)) if is_batch else (self._senders, self._jobs)
        while sum(each.kind == group.kind for each in self._under_way.values()) >= most:
            self._collect_or_raise()
        with shielded():
            self.begin(group)
            self._under_way[pool.give(partial(self._sender.send, group), self._done)] = group

    def flush(self) -> None:
        """Send the files collected so far, even if their group is not full."""
        for group in self._grouper.rest():
            self.send(group)

    def finish(self) -> None:
        """Send the remaining files, and wait until all are sent. Raises SvcError like `add`."""
        self.flush()
        while self._under_way:
            self._collect_or_raise()

    def begin(self, group: TransferGroup) -> None:
        """Called before a group is sent."""

    def end(self, group: TransferGroup) -> None:
        """Report the files of a group that was sent."""
        for transfer in group.transfers:
            self.run.add(transfer.item)

    def _collect_or_raise(self) -> None:
        if error := self._collect():
            raise error
        self.run.show()

    def _collect(self) -> SvcError | None:
        """Wait briefly for a group to finish, and report its files. Returns its error if that affects every file."""
        future = take(self._done)
        if future is None:
            return None
        with shielded():
            group = self._under_way.pop(future)
            try:
                future.result()
            except (Stopped, CancelledError):
                return None
            except (SvcError, *UNFORESEEN) as error:
                if isinstance(error, SvcError) and not is_of_files(error):
                    return error
                for item in (each.item for each in group.transfers if each.item.source_id is None):
                    item.refuse(understood(error))
            self.end(group)
        return None
