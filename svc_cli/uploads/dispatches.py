"""Sends files as they are given: packs them, sees several batches at a time to their end, tells what became of each.

Two kinds of threads. Senders put out bytes, so many files at a time over all batches. Shippers see one batch each from
its create to its finalize, so that the next batch is opened while the bytes of the one before it still go out. The
caller's thread packs and collects, and only it is told of beginnings and ends.
"""

import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from functools import partial
from queue import SimpleQueue
from types import TracebackType
from typing import Self

from svc_cli.client.api import Client
from svc_cli.client.pacing import Stopped
from svc_cli.client.storage import OnSent
from svc_cli.errors import SvcError
from svc_cli.interrupts import shielded
from svc_cli.uploads.crews import GRACE_S, Crew, take
from svc_cli.uploads.deliveries import Parcel
from svc_cli.uploads.lines import Line
from svc_cli.uploads.sendings import send
from svc_cli.uploads.shipments import Mode, Packer, Shipment
from svc_cli.uploads.summaries import Item

#: Batches under way at a time: one is opened and one finalized while the bytes of a third go out.
BATCHES_AT_ONCE = 3

OnBegin = Callable[[Shipment], None]
OnEnd = Callable[[Shipment, list[Item]], None]


class Dispatch:
    """The way out for many files; a context manager, whose end stops what is under way where something went wrong."""

    def __init__(
        self,
        client: Client,
        bucket_id: str,
        jobs: int,
        mode: Mode = "auto",
        *,
        on_end: OnEnd,
        on_begin: OnBegin = lambda _: None,
        on_sent: OnSent = lambda _: None,
        on_wait: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_sent` hears of bytes that went out, in any thread; the others are called in the caller's, `on_wait` now
        and then while there is nothing to tell."""
        self._senders = Crew(jobs, "send")
        self._shippers = Crew(BATCHES_AT_ONCE, "ship")
        self._line = Line(client, bucket_id, self._senders.pool, jobs, on_sent)
        self._packer = Packer(mode)
        self._on_begin, self._on_end, self._on_wait = on_begin, on_end, on_wait
        self._under_way: dict[Future[list[Item]], Shipment] = {}
        self._done: SimpleQueue[Future[list[Item]]] = SimpleQueue()

    @property
    def batch_ids(self) -> list[str]:
        """The batches that were opened."""
        return self._line.batch_ids

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Report what still ends; after an interrupt, wait only a moment for it."""
        if error is not None:
            self._line.client.stop()
        self._shippers.end()
        deadline_s = time.monotonic() + (GRACE_S if isinstance(error, KeyboardInterrupt) else float("inf"))
        try:
            while self._under_way and time.monotonic() < deadline_s:
                self._collect()  # a further error would only hide the first one
        finally:
            self._senders.end()  # a shipper whose request is answered meanwhile has bytes to give to them

    def add(self, parcel: Parcel) -> None:
        """Send a file, soon. Raises SvcError for what would stop every file."""
        for shipment in self._packer.add(parcel):
            self.ship(shipment)

    def ship(self, shipment: Shipment) -> None:
        """Send files together, as soon as there is room for them. Raises SvcError as `add`."""
        is_batch = shipment.kind == "batch"
        crew, most = (self._shippers, BATCHES_AT_ONCE) if is_batch else (self._senders, self._line.jobs)
        while sum(each.kind == shipment.kind for each in self._under_way.values()) >= most:
            self._collect_or_raise()
        with shielded():
            self._on_begin(shipment)
            self._under_way[crew.give(partial(send, self._line, shipment), self._done)] = shipment

    def flush(self) -> None:
        """Send what is packed so far, full or not."""
        for shipment in self._packer.rest():
            self.ship(shipment)

    def finish(self) -> None:
        """Send the rest and see everything to its end. Raises SvcError as `add`."""
        self.flush()
        while self._under_way:
            self._collect_or_raise()

    def _collect_or_raise(self) -> None:
        if error := self._collect():
            raise error
        self._on_wait()

    def _collect(self) -> SvcError | None:
        """Report the next shipment that ends, if one does soon; returns the error where it would stop every file."""
        future = take(self._done)
        if future is None:
            return None
        with shielded():
            shipment = self._under_way.pop(future)
            try:
                self._on_end(shipment, future.result())
            except (Stopped, CancelledError):
                return None
            except SvcError as error:
                return error
        return None
