"""A whole upload: look at the bucket once, read and send in parallel, then wait until all of it is ready.

Three kinds of threads. Readers hash files a little ahead of those that are sent. Senders put out bytes, so many files
at a time over all batches. Shippers see one batch each from its create to its finalize, so that the next batch is
opened while the bytes of the one before it still go out. The main thread reads along, packs and collects.
"""

import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field

from svc_cli.client.api import Client
from svc_cli.client.pacing import Stopped
from svc_cli.client.waiting import Watch, wait_until_settled
from svc_cli.errors import ApiError, Interrupted, SvcError
from svc_cli.progress import Progress
from svc_cli.uploads.decisions import Json
from svc_cli.uploads.deliveries import Holdings, Parcel, Wishes, examine
from svc_cli.uploads.lines import Line
from svc_cli.uploads.selections import Candidate, is_utf8
from svc_cli.uploads.sendings import send
from svc_cli.uploads.shipments import Mode, Packer, Shipment
from svc_cli.uploads.summaries import Item

#: Up to so many titles are looked up one by one; beyond, the bucket is listed once.
FEW_TITLES = 4
#: How often a waiting main thread looks up, so that Ctrl-C is felt.
HEARTBEAT_S = 0.2
#: Files that a reader takes at a time; a thread's turn costs more than a small file.
READ_AT_ONCE = 25
#: Batches under way at a time: one is opened and one finalized while the bytes of a third go out.
BATCHES_AT_ONCE = 3


@dataclass(slots=True)
class Run:
    """The state of one upload while it goes on; `items` is in the order in which they came to their end."""

    client: Client
    wishes: Wishes
    progress: Progress
    #: Called with each item when it is delivered and again when its source has settled.
    on_item: Callable[[Item], None]
    items: dict[str, Item] = field(default_factory=dict)
    stopped_by: SvcError | None = None
    batch_ids: list[str] = field(default_factory=list)
    _sent_bytes: int = 0
    _under_way: dict[str, set["Future[list[Item]]"]] = field(default_factory=lambda: defaultdict(set))

    def deliver_all(self, candidates: Sequence[Candidate], holdings: Holdings, jobs: int, mode: Mode = "auto") -> None:
        """Deliver every file, `jobs` at a time; an error that every file would meet ends it, kept in `stopped_by`."""
        self.progress.begin("sending" if not self.wishes.is_dry else "comparing", len(candidates))
        readers = ThreadPoolExecutor(jobs, thread_name_prefix="read")
        senders = ThreadPoolExecutor(jobs, thread_name_prefix="send")
        shippers = ThreadPoolExecutor(BATCHES_AT_ONCE, thread_name_prefix="ship")
        bucket_id = holdings.bucket_id or self.wishes.bucket
        line = Line(self.client, bucket_id, senders, jobs, self._count, self.batch_ids)
        packer = Packer(mode)
        with self._ended(readers, shippers, senders):
            for parcel in self._examined(readers, candidates, holdings, jobs):
                self._ship(packer.add(parcel), line, shippers)
            self._ship(packer.rest(), line, shippers)
            self._collect_until(0, *self._under_way)

    def do_all(self, label: str, tasks: Sequence[Callable[[], Item]], jobs: int) -> None:
        """Run every task, `jobs` at a time; an error that every one would meet ends it, kept in `stopped_by`."""
        self.progress.begin(label, len(tasks))
        pool = ThreadPoolExecutor(jobs, thread_name_prefix="task")
        with self._ended(pool):
            self._under_way["single"] = {pool.submit(_as_list, task) for task in tasks}
            self._collect_until(0, "single")

    @contextmanager
    def _ended(self, *pools: ThreadPoolExecutor) -> Iterator[None]:
        """See the work of the block to its end, whatever that is; what is under way then is still collected."""
        try:
            yield
        except KeyboardInterrupt:
            self.stopped_by = _interrupted()
        except SvcError as error:
            self.stopped_by = self.stopped_by or error
        finally:
            if self.stopped_by:
                self.client.stop()
            for pool in pools:
                pool.shutdown(wait=True, cancel_futures=True)
            self._collect(future for futures in self._under_way.values() for future in futures)

    def _examined(
        self, readers: ThreadPoolExecutor, candidates: Sequence[Candidate], holdings: Holdings, jobs: int
    ) -> Iterator[Parcel]:
        """The files that are to be sent, in order, read a little ahead."""
        starts = iter(range(0, len(candidates), READ_AT_ONCE))
        ahead: deque[Future[list[Item | Parcel]]] = deque()
        while self.stopped_by is None:
            while len(ahead) <= jobs and (start := next(starts, None)) is not None:
                some = candidates[start : start + READ_AT_ONCE]
                ahead.append(readers.submit(self._examine, some, holdings))
            if not ahead:
                return
            for found in ahead.popleft().result():
                if isinstance(found, Parcel):
                    yield found
                else:
                    self._finish(found)

    def _examine(self, candidates: Sequence[Candidate], holdings: Holdings) -> list[Item | Parcel]:
        return [examine(self.client, candidate, holdings, self.wishes) for candidate in candidates]

    def _ship(self, shipments: Iterable[Shipment], line: Line, shippers: ThreadPoolExecutor) -> None:
        """Start sending, as soon as there is room for it."""
        for shipment in shipments:
            is_batch = shipment.kind == "batch"
            room = BATCHES_AT_ONCE if is_batch else line.jobs
            self._collect_until(room - 1, "batch" if is_batch else "single")
            if self.stopped_by is not None:
                return
            future = (shippers if is_batch else line.pool).submit(send, line, shipment)
            self._under_way["batch" if is_batch else "single"].add(future)

    def _collect_until(self, most: int, *kinds: str) -> None:
        """Collect what has come to its end until at most so many of each kind are under way."""
        for kind in kinds:
            while len(self._under_way[kind]) > most and self.stopped_by is None:
                done, self._under_way[kind] = wait(self._under_way[kind], HEARTBEAT_S, return_when=FIRST_COMPLETED)
                self._collect(done)
                self._show_progress()

    def wait_for_all(self, bucket_id: str, timeout_s: float | None) -> None:
        """Wait until every accepted source is ready or has failed; what ends the wait early is kept in `stopped_by`."""
        pending = {item.source_id: item for item in self.items.values() if item.is_pending and item.source_id}
        if not pending or self.stopped_by:
            return
        self.progress.begin("indexing", len(pending))
        watch = Watch(list(pending), bucket_id)
        try:
            wait_until_settled(self.client, watch, timeout_s=timeout_s, on_change=self._show)
        except SvcError as error:  # a time-out, or a daemon that is gone: what is known by now is still reported
            self.stopped_by = error
        except KeyboardInterrupt:
            self.stopped_by = _interrupted()
        for source_id, source in watch.seen.items():
            if source:
                pending[source_id].follow(source)
                self.on_item(pending[source_id])

    def _collect(self, done: "Iterable[Future[list[Item]]]") -> None:
        for future in done:
            if future.cancelled():
                continue
            try:
                items = future.result()
            except (Stopped, CancelledError):
                continue
            except SvcError as error:
                self.stopped_by = self.stopped_by or error
                continue
            for item in items:
                self._finish(item)

    def _finish(self, item: Item) -> None:
        self.items[item.path] = item
        self._show_progress()
        self.on_item(item)

    def _count(self, size_bytes: int) -> None:
        self._sent_bytes += size_bytes

    def _show_progress(self) -> None:
        self.progress.update(len(self.items), _size(self._sent_bytes))

    def _show(self, watch: Watch) -> None:
        failed = sum(source.get("status") == "failed" for source in watch.seen.values())
        self.progress.update(watch.settled_count, f"{failed} failed" if failed else "")


def look(client: Client, bucket: str, titles: Sequence[str]) -> Holdings:
    """What the bucket holds under these titles; an absent bucket holds nothing."""
    if len(titles) > FEW_TITLES:
        return look_at_all(client, bucket)
    return _look(client, bucket, [{"status": "all", "title": title} for title in titles if is_utf8(title)])


def look_at_all(client: Client, bucket: str) -> Holdings:
    """Everything that the bucket holds; an absent bucket holds nothing."""
    return _look(client, bucket, [{"status": "all"}])


def _look(client: Client, bucket: str, queries: Sequence[dict[str, str]]) -> Holdings:
    try:
        pages = [page for query in queries for page in client.source_pages(bucket, query)]
    except ApiError as error:
        if error.code != "bucket_not_found":
            raise
        return Holdings(None, {})
    by_title: defaultdict[str, list[Json]] = defaultdict(list)
    for page in pages:
        for source in page["sources"]:
            by_title[source["title"]].append(source)
    return Holdings(str(pages[0]["bucket_id"]) if pages else client.bucket(bucket)["id"], by_title)


def elapsed_ms(began_s: float) -> int:
    """Milliseconds since a reading of the monotonic clock."""
    return round((time.monotonic() - began_s) * 1000)


def _as_list(task: Callable[[], Item]) -> list[Item]:
    return [task()]


def _interrupted() -> Interrupted:
    return Interrupted("Interrupted.", hint="run the same command again: it goes on where it stopped.")


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 1024**2:.1f} MB" if size_bytes >= 1024**2 else f"{size_bytes / 1024:.0f} KB"
