"""A whole upload: look at the bucket once, deliver files in parallel, then wait until they are ready."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from svc_cli.client.api import Client
from svc_cli.client.pacing import Stopped
from svc_cli.client.waiting import Watch, wait_until_settled
from svc_cli.errors import ApiError, Interrupted, SvcError
from svc_cli.progress import Progress
from svc_cli.uploads.decisions import Json
from svc_cli.uploads.deliveries import Holdings, Wishes, deliver
from svc_cli.uploads.selections import Candidate, is_utf8
from svc_cli.uploads.summaries import Item

#: Up to so many titles are looked up one by one; beyond, the bucket is listed once.
FEW_TITLES = 4
#: How often a waiting main thread looks up, so that Ctrl-C is felt.
HEARTBEAT_S = 0.2


@dataclass(slots=True)
class Run:
    """The state of one upload while it goes on; `items` is in the order of the candidates."""

    client: Client
    wishes: Wishes
    progress: Progress
    #: Called with each item when it is delivered and again when its source has settled.
    on_item: Callable[[Item], None]
    items: dict[str, Item] = field(default_factory=dict)
    stopped_by: SvcError | None = None

    def deliver_all(self, candidates: Sequence[Candidate], holdings: Holdings, jobs: int) -> None:
        """Deliver every file, `jobs` at a time; an error that every file would meet ends it, kept in `stopped_by`."""
        self.progress.begin("sending" if not self.wishes.is_dry else "comparing", len(candidates))
        pool = ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="upload")
        try:
            waiting = {pool.submit(deliver, self.client, candidate, holdings, self.wishes) for candidate in candidates}
            while waiting and self.stopped_by is None:
                done, waiting = wait(waiting, timeout=HEARTBEAT_S, return_when=FIRST_COMPLETED)
                self._collect(done)
        except KeyboardInterrupt:
            self.stopped_by = _interrupted()
        finally:
            if self.stopped_by:
                self.client.stop()
            pool.shutdown(wait=True, cancel_futures=True)
            if self.stopped_by:
                self._collect(future for future in waiting if future.done() and not future.cancelled())

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

    def _collect(self, done: "Iterable[Future[Item]]") -> None:
        for future in done:
            try:
                item = future.result()
            except Stopped:
                continue
            except SvcError as error:
                self.stopped_by = self.stopped_by or error
                continue
            self.items[item.path] = item
            self.progress.update(len(self.items), _size(sum(each.sent_bytes for each in self.items.values())))
            self.on_item(item)

    def _show(self, watch: Watch) -> None:
        failed = sum(source.get("status") == "failed" for source in watch.seen.values())
        self.progress.update(watch.settled_count, f"{failed} failed" if failed else "")


def look(client: Client, bucket: str, titles: Sequence[str]) -> Holdings:
    """What the bucket holds under these titles; an absent bucket holds nothing."""
    try:
        if len(titles) <= FEW_TITLES:
            asked = [{"status": "all", "title": title} for title in titles if is_utf8(title)]
            pages = [page for query in asked for page in client.source_pages(bucket, query)]
        else:
            pages = list(client.source_pages(bucket, {"status": "all"}))
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


def _interrupted() -> Interrupted:
    return Interrupted("Interrupted.", hint="run the same command again: it goes on where it stopped.")


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 1024**2:.1f} MB" if size_bytes >= 1024**2 else f"{size_bytes / 1024:.0f} KB"
