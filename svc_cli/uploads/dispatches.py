"""Sends files as they are given: packs them, sees several batches at a time to their end, tells what became of each.

Two kinds of threads. Senders put out bytes, so many files at a time over all batches. Shippers see one batch each from
its create to its finalize, so that the next batch is opened while the bytes of the one before it still go out. The
caller's thread packs and collects, and only it is told of beginnings and ends.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import Self

from svc_cli.client.api import Client
from svc_cli.client.pacing import Stopped
from svc_cli.client.storage import OnSent
from svc_cli.errors import SvcError
from svc_cli.uploads.deliveries import Parcel
from svc_cli.uploads.lines import Line
from svc_cli.uploads.sendings import send
from svc_cli.uploads.shipments import Mode, Packer, Shipment
from svc_cli.uploads.summaries import Item

#: How often a waiting main thread looks up, so that Ctrl-C is felt.
HEARTBEAT_S = 0.2
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
        self._senders = ThreadPoolExecutor(jobs, thread_name_prefix="send")
        self._shippers = ThreadPoolExecutor(BATCHES_AT_ONCE, thread_name_prefix="ship")
        self._line = Line(client, bucket_id, self._senders, jobs, on_sent)
        self._packer = Packer(mode)
        self._on_begin, self._on_end, self._on_wait = on_begin, on_end, on_wait
        self._under_way: defaultdict[str, dict[Future[list[Item]], Shipment]] = defaultdict(dict)

    @property
    def batch_ids(self) -> list[str]:
        """The batches that were opened."""
        return self._line.batch_ids

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._line.client.stop()
        for pool in (self._shippers, self._senders):
            pool.shutdown(wait=True, cancel_futures=True)
        for under_way in self._under_way.values():
            # What came to its end meanwhile is told; a further error would only hide the first one.
            self._collect(under_way, list(under_way))

    def add(self, parcel: Parcel) -> None:
        """Send a file, soon. Raises SvcError for what would stop every file."""
        for shipment in self._packer.add(parcel):
            self.ship(shipment)

    def ship(self, shipment: Shipment) -> None:
        """Send files together, as soon as there is room for them. Raises SvcError as `add`."""
        is_batch = shipment.kind == "batch"
        under_way = self._under_way[shipment.kind]
        self._collect_until((BATCHES_AT_ONCE if is_batch else self._line.jobs) - 1, shipment.kind)
        self._on_begin(shipment)
        under_way[(self._shippers if is_batch else self._senders).submit(send, self._line, shipment)] = shipment

    def flush(self) -> None:
        """Send what is packed so far, full or not."""
        for shipment in self._packer.rest():
            self.ship(shipment)

    def finish(self) -> None:
        """Send the rest and see everything to its end. Raises SvcError as `add`."""
        self.flush()
        self._collect_until(0, *self._under_way)

    def _collect_until(self, most: int, *kinds: str) -> None:
        for kind in kinds:
            under_way = self._under_way[kind]
            while len(under_way) > most:
                done, _ = wait(under_way, HEARTBEAT_S, return_when=FIRST_COMPLETED)
                if error := self._collect(under_way, done):
                    raise error
                self._on_wait()

    def _collect(
        self, under_way: dict["Future[list[Item]]", Shipment], done: "Iterable[Future[list[Item]]]"
    ) -> SvcError | None:
        """Tell what became of shipments; the first error that would stop every file."""
        stopping: SvcError | None = None
        for future in done:
            shipment = under_way.pop(future)
            try:
                self._on_end(shipment, future.result())
            except (Stopped, CancelledError):
                continue
            except SvcError as error:
                stopping = stopping or error
        return stopping
