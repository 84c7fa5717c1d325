"""A whole upload: look at the bucket once, read ahead, send in parallel, then wait until all of it is ready."""

import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial, wraps
from queue import SimpleQueue
from typing import ParamSpec, TypeVar

from svc_cli.client.api import Client
from svc_cli.client.pacing import Stopped
from svc_cli.client.waiting import Watch, wait_until_settled
from svc_cli.errors import ApiError, Interrupted, SvcError
from svc_cli.interrupts import shielded
from svc_cli.progress import Flow, Progress
from svc_cli.uploads.crews import GRACE_S, Crew, take
from svc_cli.uploads.deliveries import Holdings, Parcel, Wishes, examine
from svc_cli.uploads.dispatches import Dispatch
from svc_cli.uploads.selections import Candidate, is_utf8
from svc_cli.uploads.shipments import Mode
from svc_cli.uploads.summaries import Item
from svc_daemon.wire import Json

P = ParamSpec("P")
T = TypeVar("T")

#: Up to so many titles are looked up one by one; beyond, the bucket is listed once.
FEW_TITLES = 4
#: Files that a reader takes at a time; a thread's turn costs more than a small file.
READ_AT_ONCE = 25


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
    _flow: Flow = field(default_factory=Flow)

    def deliver_all(self, candidates: Sequence[Candidate], holdings: Holdings, jobs: int, mode: Mode = "auto") -> None:
        """Deliver every file, `jobs` at a time; an error that every file would meet ends it, kept in `stopped_by`."""
        self.progress.begin("sending" if not self.wishes.is_dry else "comparing", len(candidates))
        readers = Crew(jobs, "read")
        dispatch = Dispatch(
            self.client,
            holdings.bucket_id or self.wishes.bucket,
            jobs,
            mode,
            on_end=lambda _, items: self._finish(*items),
            on_sent=self._flow.count,
            on_wait=self._show_progress,
        )
        self.batch_ids = dispatch.batch_ids
        with self._ended(readers), dispatch:
            for parcel in self._examined(readers, candidates, holdings, jobs):
                dispatch.add(parcel)
            dispatch.finish()

    def do_all(self, label: str, tasks: Sequence[Callable[[], Item]], jobs: int) -> None:
        """Run every task, `jobs` at a time; an error that every one would meet ends it, kept in `stopped_by`."""
        self.progress.begin(label, len(tasks))
        crew, done = Crew(jobs, "task"), SimpleQueue[Future[Item]]()
        under_way: set[Future[Item]] = set()
        with self._ended(crew):
            for task in tasks:
                under_way.add(crew.give(task, done))
            while under_way:
                self._take(done, under_way)
        deadline_s = time.monotonic() + (GRACE_S if isinstance(self.stopped_by, Interrupted) else float("inf"))
        with self._ended():
            while under_way and time.monotonic() < deadline_s:
                with suppress(SvcError):  # the first one ended it
                    self._take(done, under_way)

    def _take(self, done: "SimpleQueue[Future[Item]]", under_way: "set[Future[Item]]") -> None:
        """Take over the next task that ends, if one does soon; raises the error that every task would meet."""
        future = take(done)
        if future is None:
            return
        with shielded(), suppress(Stopped, CancelledError):
            under_way.remove(future)
            self._finish(future.result())

    @contextmanager
    def _ended(self, *crews: Crew) -> Iterator[None]:
        """Keep what ends the block early in `stopped_by`, and then begin nothing more."""
        try:
            yield
        except KeyboardInterrupt:
            self.stopped_by = interrupted()
        except SvcError as error:
            self.stopped_by = self.stopped_by or error
        finally:
            if self.stopped_by:
                self.client.stop()
            for crew in crews:
                crew.end()

    def _examined(
        self, readers: Crew, candidates: Sequence[Candidate], holdings: Holdings, jobs: int
    ) -> Iterator[Parcel]:
        """The files that are to be sent, in order, read a little ahead."""
        starts = iter(range(0, len(candidates), READ_AT_ONCE))
        ahead: deque[SimpleQueue[Future[list[Item | Parcel]]]] = deque()
        while True:
            while len(ahead) <= jobs and (start := next(starts, None)) is not None:
                some = candidates[start : start + READ_AT_ONCE]
                ahead.append(SimpleQueue())
                readers.give(partial(self._examine, some, holdings), ahead[-1])
            if not ahead:
                return
            while (future := take(ahead[0])) is None:
                self._show_progress()
            ahead.popleft()
            with shielded():
                examined = future.result()
            for found in examined:
                if isinstance(found, Parcel):
                    yield found
                else:
                    self._finish(found)

    def _examine(self, candidates: Sequence[Candidate], holdings: Holdings) -> list[Item | Parcel]:
        return [examine(self.client, candidate, holdings, self.wishes) for candidate in candidates]

    def wait_for_all(self, bucket_id: str, timeout_s: float | None) -> None:
        """Wait until every accepted source is ready or has failed; what ends the wait early is kept in `stopped_by`."""
        pending: defaultdict[str, list[Item]] = defaultdict(list)
        for item in self.items.values():
            if item.is_pending and item.source_id:
                # Two spellings of one page are one source.
                pending[item.source_id].append(item)
        if not pending or self.stopped_by:
            return
        self.progress.begin("indexing", len(pending))
        watch = Watch(list(pending), bucket_id)
        try:
            wait_until_settled(self.client, watch, timeout_s=timeout_s, on_change=self._show)
        except SvcError as error:  # a time-out, or a daemon that is gone: what is known by now is still reported
            self.stopped_by = error
        except KeyboardInterrupt:
            self.stopped_by = interrupted()
        for source_id, source in watch.seen.items():
            for item in pending[source_id] if source else ():
                item.follow(source)
                self.on_item(item)

    def _finish(self, *items: Item) -> None:
        for item in items:
            self.items[item.path] = item
            self.on_item(item)
        self._show_progress()

    def _show_progress(self) -> None:
        self.progress.update(len(self.items), self._flow.note(self.client.waiting_creates))

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
        found = client.bucket(bucket, members=False)
    except ApiError as error:
        if error.code != "bucket_not_found":
            raise
        return Holdings(None, {})
    refuse_archived(found)
    pages = [page for query in queries for page in client.source_pages(found["id"], query)]
    by_title: defaultdict[str, list[Json]] = defaultdict(list)
    for page in pages:
        for source in page["sources"]:
            by_title[source["title"]].append(source)
    return Holdings(found["id"], by_title)


def refuse_archived(bucket: Json) -> None:
    """Raises ApiError `bucket_not_found`, as the service does for what is new: no search finds what is there."""
    if bucket["status"] == "archived":
        message = f"The bucket {bucket['slug']!r} is archived: it takes nothing, and no search finds what it has."
        error = ApiError(404, {"code": "bucket_not_found", "message": message, "details": {"status": "archived"}})
        error.hint = f"`svc bucket archive --restore {bucket['slug']}` brings it back."
        raise error


def elapsed_ms(began_s: float) -> int:
    """Milliseconds since a reading of the monotonic clock."""
    return round((time.monotonic() - began_s) * 1000)


def interrupted() -> Interrupted:
    """What Ctrl-C ends in."""
    return Interrupted("Interrupted.", hint="run the same command again: it goes on where it stopped.")


def resumable(command: Callable[P, T]) -> Callable[P, T]:
    """A command that may be run again wherever it was interrupted."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return command(*args, **kwargs)
        except KeyboardInterrupt:
            raise interrupted() from None

    return run
