"""Runs an upload: reads files ahead, sends them in parallel, then waits until their sources are ready."""

import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial, wraps
from pathlib import PurePath
from queue import SimpleQueue
from typing import Any, Literal, ParamSpec, TypeVar

from svc_cli.client.api import Client
from svc_cli.client.new_files import Description
from svc_cli.client.retries import Stopped
from svc_cli.client.waiting import Watch, wait_until_settled
from svc_cli.errors import ApiError, FileRefused, Interrupted, SvcError
from svc_cli.interrupts import shielded
from svc_cli.progress import Flow, Progress
from svc_cli.transfer.contents import read
from svc_cli.transfer.ignores import is_utf8
from svc_cli.transfer.items import KnownSources, OnConflict, ReportItem, decide, title_conflict
from svc_cli.transfer.queues import GRACE_S, Crew, Mode, TransferQueue, take
from svc_cli.transfer.selections import SelectedFile
from svc_cli.transfer.transfers import Transfer, stops_everything
from svc_daemon.wire import JsonMapping

P = ParamSpec("P")
T = TypeVar("T")

#: Maximum number of titles to look up one by one. If there are more, the whole bucket is listed.
FEW_TITLES = 4
#: Number of files that a thread reads in one task, since switching between threads is expensive.
READ_AT_ONCE = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadOptions:
    """The options of an upload, taken from flags and settings and already checked."""

    paths: tuple[str, ...]
    #: The slug or id of the bucket.
    bucket: str
    title: str | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any]
    on_conflict: OnConflict = "ask"
    wait: Literal["ready", "accepted"] = "ready"
    timeout_s: float | None = None
    mode: Mode = "auto"
    #: Number of files sent at a time.
    jobs: int
    no_create: bool = False
    is_strict: bool = False
    #: Only decide what to do with each file; send nothing.
    is_dry: bool = False


@dataclass(slots=True)
class UploadRun:
    """The state of one upload or import while it runs."""

    client: Client
    progress: Progress
    #: Called when a file was sent, skipped or failed, and again when its source is ready or failed.
    on_item: Callable[[ReportItem], None]
    #: The results by path, in the order of completion.
    items: dict[str, ReportItem] = field(default_factory=dict)
    #: The error that ended the run early.
    stopped_by: SvcError | None = None
    batch_ids: list[str] = field(default_factory=list)
    _flow: Flow = field(default_factory=Flow)

    def send_all(
        self, files: Sequence[SelectedFile], known: KnownSources, options: UploadOptions, max_bytes: int
    ) -> None:
        """Send every file. An error that affects all files ends the run, and is stored in `stopped_by`."""
        readers = Crew(options.jobs, "read")
        some = [files[start : start + READ_AT_ONCE] for start in range(0, len(files), READ_AT_ONCE)]
        tasks = [partial(_examine_some, self.client, each, known, options, max_bytes) for each in some]
        self.progress.begin("sending" if not options.is_dry else "comparing", len(files))
        with self._ended(readers):
            self._send(
                self._read_ahead(readers, tasks, options.jobs),
                known.bucket_id or options.bucket,
                options.jobs,
                options.mode,
            )

    def send_entries(self, entries: "Iterable[ReportItem | Transfer]", total: int, bucket_id: str, jobs: int) -> None:
        """Send the transfers in batches, and only report the other entries. Handles errors like `send_all`."""
        self.progress.begin("sending", total)
        with self._ended():
            self._send(entries, bucket_id, jobs, "batch")

    def _send(self, found: "Iterable[ReportItem | Transfer]", bucket_id: str, jobs: int, mode: Mode) -> None:
        queue = TransferQueue(
            self.client,
            bucket_id,
            jobs,
            mode,
            on_end=lambda group: self._finish(*(each.item for each in group.transfers)),
            on_sent=self._flow.count,
            on_wait=self._show_progress,
        )
        self.batch_ids = queue.batch_ids
        in_batch: set[str] = set()
        with queue:
            for each in found:
                if isinstance(each, Transfer):
                    # An export may contain the same title and content twice, but a batch may not. Begin another batch.
                    if each.member.client_file_id in in_batch:
                        queue.flush()
                        in_batch.clear()
                    in_batch.add(each.member.client_file_id)
                    queue.add(each)
                else:
                    self._finish(each)
            queue.finish()

    def do_all(self, label: str, tasks: Sequence[Callable[[], ReportItem]], jobs: int) -> None:
        """Run the tasks, `jobs` at a time. Handles errors like `send_all`."""
        self.progress.begin(label, len(tasks))
        crew, done = Crew(jobs, "task"), SimpleQueue[Future[ReportItem]]()
        under_way: set[Future[ReportItem]] = set()
        with self._ended(crew):
            for task in tasks:
                under_way.add(crew.give(task, done))
            while under_way:
                self._take(done, under_way)
        deadline_s = time.monotonic() + (GRACE_S if isinstance(self.stopped_by, Interrupted) else float("inf"))
        with self._ended():
            while under_way and time.monotonic() < deadline_s:
                with suppress(SvcError):  # only the first error, which ended the run, is reported
                    self._take(done, under_way)

    def wait_for_all(self, bucket_id: str, timeout_s: float | None) -> None:
        """Wait until all accepted sources are ready or failed. An error is stored in `stopped_by`."""
        pending: defaultdict[str, list[ReportItem]] = defaultdict(list)
        for item in self.items.values():
            if item.is_pending and item.source_id:
                # Several spellings of a URL may share a source.
                pending[item.source_id].append(item)
        if not pending or self.stopped_by:
            return
        self.progress.begin("indexing", len(pending))
        batches = {source_id: item.batch_id for source_id, (item, *_) in pending.items() if item.batch_id}
        watch = Watch(pending, bucket_id, batches)

        def show(seen: Watch) -> None:
            self.progress.update(seen.settled_count, f"{seen.failed_count} failed" if seen.failed_count else "")

        try:
            wait_until_settled(self.client, watch, timeout_s=timeout_s, on_change=show)
        except SvcError as error:  # a timeout or an unreachable daemon: report what is known so far
            self.stopped_by = error
        except KeyboardInterrupt:
            self.stopped_by = interrupted()
        for source_id, source in watch.seen.items():
            for item in pending[source_id] if source else ():
                item.follow(source)
                self.on_item(item)

    def _read_ahead(
        self, readers: Crew, tasks: "Sequence[Callable[[], list[ReportItem | Transfer]]]", jobs: int
    ) -> "Iterator[ReportItem | Transfer]":
        """Yield the results of the tasks in order. At most `jobs` + 1 tasks are started in advance."""
        rest = iter(tasks)
        ahead: deque[SimpleQueue[Future[list[ReportItem | Transfer]]]] = deque()
        while True:
            while len(ahead) <= jobs and (task := next(rest, None)) is not None:
                ahead.append(SimpleQueue())
                readers.give(task, ahead[-1])
            if not ahead:
                return
            while (future := take(ahead[0])) is None:
                self._show_progress()
            ahead.popleft()
            with shielded():
                examined = future.result()
            yield from examined

    def _take(self, done: "SimpleQueue[Future[ReportItem]]", under_way: "set[Future[ReportItem]]") -> None:
        """Record the result of the task that ends next, if one ends soon. Raises errors that affect every task."""
        future = take(done)
        if future is None:
            return
        with shielded(), suppress(Stopped, CancelledError):
            under_way.remove(future)
            self._finish(future.result())

    @contextmanager
    def _ended(self, *crews: Crew) -> Iterator[None]:
        """End the thread pools after the block. An error in the block is stored in `stopped_by`."""
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

    def _finish(self, *items: ReportItem) -> None:
        for item in items:
            self.items[item.path] = item
            self.on_item(item)
        self._show_progress()

    def _show_progress(self) -> None:
        self.progress.update(len(self.items), self._flow.note(self.client.waiting_creates))


def _examine_some(
    client: Client, files: Sequence[SelectedFile], known: KnownSources, options: UploadOptions, max_bytes: int
) -> list[ReportItem | Transfer]:
    """Return a transfer for each file to send, and an item for each other file.

    Raises SvcError only for errors that affect all files.
    """
    found: list[ReportItem | Transfer] = []
    for file in files:
        item = ReportItem(path=file.title, action="created")
        try:
            found.append(_examine(client, file, item, known, options, max_bytes))
        except SvcError as error:
            if stops_everything(error):
                raise
            item.refuse(error)
            found.append(item)
    return found


def _examine(
    client: Client, file: SelectedFile, item: ReportItem, known: KnownSources, options: UploadOptions, max_bytes: int
) -> ReportItem | Transfer:
    if not is_utf8(file.title):
        raise FileRefused("the name is not UTF-8.", code="svc_name_not_utf8", hint="rename it, or give --title.")
    content = read(file.path, max_bytes, root=file.root)
    item.size_bytes, item.sha256 = content.size_bytes, content.sha256
    item.action, source = decide(known.by_title.get(file.title, ()), content.sha256, options.on_conflict)
    if item.action == "conflict" and source:
        item.status, item.ready = source["status"], bool(source["ready"])
        hint = "--replace replaces it when the new version is ready, --as-new keeps both."
        item.conflict(source["id"], title_conflict(source, hint))
    elif item.action == "unchanged" and source:
        item.follow(source)
    elif options.is_dry:
        item.source_id = source["id"] if source else None
    elif item.action == "retried" and source:
        item.follow(client.retry_source(source["id"]))
    else:
        description = Description(
            filename=PurePath(item.path).name or item.path,
            title=item.path,
            tags=options.tags,
            metadata=dict(options.metadata),
            sha256=item.sha256,
            replaces=source["id"] if source else None,
        )
        return Transfer(item, content, description)
    return item


def look(client: Client, bucket: str, titles: Sequence[str] | None = None) -> KnownSources:
    """Return the bucket's sources; with `titles`, at least those with these titles. A missing bucket has none.

    Raises ApiError `bucket_not_found` for an archived bucket.
    """
    try:
        found = client.bucket(bucket, members=False)
    except ApiError as error:
        if error.code != "bucket_not_found":
            raise
        return KnownSources(None, {})
    refuse_archived(found)
    queries: list[dict[str, str]] = [{"status": "all"}]
    if titles is not None and len(titles) <= FEW_TITLES:
        queries = [{"status": "all", "title": title} for title in titles if is_utf8(title)]
    by_title: defaultdict[str, list[JsonMapping]] = defaultdict(list)
    for query in queries:
        for source in client.sources(found["id"], **query):
            by_title[source["title"]].append(source)
    return KnownSources(found["id"], by_title)


def refuse_archived(bucket: JsonMapping) -> None:
    """Raise ApiError `bucket_not_found` if the bucket is archived."""
    if bucket["status"] == "archived":
        message = f"The bucket {bucket['slug']!r} is archived: it accepts no uploads, and no search finds its sources."
        error = ApiError(404, {"code": "bucket_not_found", "message": message, "details": {"status": "archived"}})
        error.hint = f"`svc bucket archive --restore {bucket['slug']}` brings it back."
        raise error


def elapsed_ms(began_s: float) -> int:
    """Return the milliseconds since `began_s` on the monotonic clock."""
    return round((time.monotonic() - began_s) * 1000)


def interrupted() -> Interrupted:
    """Return the error for a run that was ended by Ctrl-C."""
    return Interrupted("Interrupted.", hint="run the same command again to continue where it stopped.")


def resumable(command: Callable[P, T]) -> Callable[P, T]:
    """Make a command raise Interrupted on Ctrl-C, with a hint to run the command again."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return command(*args, **kwargs)
        except KeyboardInterrupt:
            raise interrupted() from None

    return run
