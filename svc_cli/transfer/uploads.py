"""Uploads files: decides what to do with each, reads ahead, and sends in parallel.

If a source has the file's title and bytes, nothing is sent. If a source has the title but other bytes, that is a
conflict.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePosixPath
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Literal

from svc_cli.client.api import Client
from svc_cli.client.new_files import Decision, Description, OnConflict, decide, find_twin, lacks, title_conflict
from svc_cli.errors import UNFORESEEN, ApiError, FileRefused, SvcError, understood
from svc_cli.interrupts import shielded
from svc_cli.transfer.contents import read
from svc_cli.transfer.queues import Mode, TransferQueue
from svc_cli.transfer.reports import ReportItem
from svc_cli.transfer.runs import ThreadPool, TransferRun, take
from svc_cli.transfer.selections import SelectedFile
from svc_cli.transfer.skips import is_utf8
from svc_cli.transfer.transfers import Transfer, stops_everything
from svc_daemon.wire import JsonMapping
from svc_daemon.wire.light.names import MAX_NAME_BYTES

if TYPE_CHECKING:
    from svc_cli.client.types import BucketFieldsDict

#: Maximum number of titles to look up one by one. If there are more, the whole bucket is listed.
FEW_TITLES = 4
#: Number of files that a thread reads in one task, since switching between threads is expensive.
READ_AT_ONCE = 25


@dataclass(frozen=True, slots=True)
class KnownSources:
    """The bucket's sources when the run began. `bucket_id` is None if there was no bucket."""

    bucket_id: str | None
    #: Sources by title, oldest first.
    by_title: Mapping[str, Sequence[JsonMapping]]
    #: The titles of the files of this run.
    own: frozenset[str] = frozenset()
    #: Whether these are all sources of the bucket, and not only those with these titles.
    is_whole: bool = True
    by_bytes: Mapping[str, Sequence[JsonMapping]] = field(default_factory=dict)

    def find(self, client: Client, title: str, sha256: str, on_conflict: OnConflict) -> Decision:
        """Decide what to do with a file, which may be in the bucket under a longer or shorter title."""
        found = decide(self.by_title.get(title, ()), sha256, on_conflict)
        if found.action not in ("created", "conflict") or on_conflict == "as_new" or self.bucket_id is None:
            return found
        same = self.by_bytes.get(sha256, ())
        if not self.is_whole:
            same = list(client.sources(self.bucket_id, status="all", sha256=sha256))
        return find_twin(title, sha256, [each for each in same if each["title"] not in self.own]) or found


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


def send_files(
    run: TransferRun, files: Sequence[SelectedFile], known: KnownSources, options: UploadOptions, max_bytes: int
) -> None:
    """Send every file. An error that affects all files ends the run, and is stored in the report."""
    readers = ThreadPool(options.jobs, "read")
    some = [files[start : start + READ_AT_ONCE] for start in range(0, len(files), READ_AT_ONCE)]
    tasks = [partial(_examine_some, run.client, each, known, options, max_bytes) for each in some]
    run.progress.begin("sending" if not options.is_dry else "comparing", len(files))
    with run.ended(readers):
        found = _read_ahead(run, readers, tasks, options.jobs)
        send_entries(TransferQueue(run, known.bucket_id or options.bucket, options.jobs, options.mode), found)


def send_entries(queue: TransferQueue, entries: "Iterable[ReportItem | Transfer]") -> None:
    """Send the transfers, and only report the other entries. Raises SvcError for errors that affect every file."""
    in_batch: set[str] = set()
    with queue:
        for each in entries:
            if isinstance(each, Transfer):
                # An export may contain the same title and content twice, but a batch may not. Begin another batch.
                if each.member.client_file_id in in_batch:
                    queue.flush()
                    in_batch.clear()
                in_batch.add(each.member.client_file_id)
                queue.add(each)
            else:
                queue.run.add(each)
        queue.finish()


def _read_ahead(
    run: TransferRun, readers: ThreadPool, tasks: "Sequence[Callable[[], list[ReportItem | Transfer]]]", jobs: int
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
            run.show()
        ahead.popleft()
        with shielded():
            examined = future.result()
        yield from examined


def _examine_some(
    client: Client, files: Sequence[SelectedFile], known: KnownSources, options: UploadOptions, max_bytes: int
) -> list[ReportItem | Transfer]:
    """Return a transfer for each file to send, and an item for each other file.

    Raises SvcError only for errors that affect all files.
    """
    found: list[ReportItem | Transfer] = []
    for file in files:
        item = ReportItem(path=file.title, action="created", is_named=file.is_named)
        try:
            found.append(_examine(client, file, item, known, options, max_bytes))
        except (SvcError, *UNFORESEEN) as error:
            if isinstance(error, SvcError) and stops_everything(error):
                raise
            item.refuse(understood(error))
            found.append(item)
    return found


def _examine(
    client: Client, file: SelectedFile, item: ReportItem, known: KnownSources, options: UploadOptions, max_bytes: int
) -> ReportItem | Transfer:
    if not is_utf8(file.title):
        raise FileRefused("the name is not UTF-8.", code="svc_name_not_utf8", hint="rename it, or give --title.")
    content = read(file.path, max_bytes, root=file.root)
    item.size_bytes, item.sha256 = content.size_bytes, content.sha256
    item.action, source = known.find(client, file.title, content.sha256, options.on_conflict)
    item.as_title = source["title"] if source and source["title"] != file.title else None
    if item.action == "conflict" and source:
        item.status, item.ready = source["status"], bool(source["ready"])
        hint = "--replace replaces it when the new version is ready, --as-new keeps both."
        item.conflict(source["id"], title_conflict(source, hint).summarized())
    elif item.action == "unchanged" and source:
        changes = lacks(source, options.tags, options.metadata)
        is_added = bool(changes and item.as_title)
        item.follow(client.update_source(source["id"], **changes) if is_added and not options.is_dry else source)
        if changes and not is_added:
            item.warnings.append("its tags and metadata stay as they are, because nothing is sent.")
    elif options.is_dry:
        item.source_id = source["id"] if source else None
    elif item.action == "retried" and source:
        item.follow(client.retry_source(source["id"]))
    else:
        # What is set on the old version stays, newer values first.
        old = known.by_title[file.title][-1] if source else {}
        # A title may be longer than the name of a file.
        name = PurePosixPath(item.path).name or item.path
        description = Description(
            filename=name if len(name.encode()) <= MAX_NAME_BYTES else file.path.name,
            title=item.path,
            tags=tuple(dict.fromkeys((*old.get("tags", ()), *options.tags))),
            metadata={**old.get("metadata", {}), **options.metadata},
            sha256=item.sha256,
            replaces=source["id"] if source else None,
        )
        return Transfer(item, content, description)
    return item


def find_or_create(
    client: Client,
    name: str,
    note: Callable[[str], None],
    *,
    may_create: bool,
    is_dry: bool,
    fields: "BucketFieldsDict | None" = None,
) -> JsonMapping | None:
    """Return the bucket. A missing one is created with these fields if that is allowed; in a dry run, None is returned.

    Raises ApiError `bucket_not_found` for a missing bucket that may not be created, and for an archived one.
    """
    try:
        bucket: JsonMapping = client.bucket(name, members=False)
    except ApiError as error:
        # A name with an underscore is an id. A bucket with a given id can't be created: the service chooses the ids.
        if error.code != "bucket_not_found" or not may_create or "_" in name:
            raise
        if is_dry:
            note(f"the bucket {name} would be created.")
            return None
        bucket = client.ensure_bucket(name, **(fields or {}))
        if bucket.get("created"):
            note(f"created the bucket {name}.")
    if bucket["status"] == "archived":
        message = f"The bucket {bucket['slug']!r} is archived: it accepts no uploads, and no search finds its sources."
        archived = ApiError(404, {"code": "bucket_not_found", "message": message, "details": {"status": "archived"}})
        archived.hint = f"`svc bucket archive --restore {bucket['slug']}` brings it back."
        raise archived
    return bucket


def look(client: Client, bucket: JsonMapping | None, titles: Sequence[str] | None = None) -> KnownSources:
    """Return the bucket's sources; with `titles`, at least those named so. A new or missing bucket has none."""
    if bucket is None:
        return KnownSources(None, {})
    own = frozenset(titles or ())
    if bucket.get("created"):
        return KnownSources(bucket["id"], {}, own)
    queries: list[dict[str, str]] = [{"status": "all"}]
    is_whole = titles is None or len(titles) > FEW_TITLES
    if titles is not None and not is_whole:
        queries = [{"status": "all", "title": title} for title in titles if is_utf8(title)]
    by_title: defaultdict[str, list[JsonMapping]] = defaultdict(list)
    by_bytes: defaultdict[str, list[JsonMapping]] = defaultdict(list)
    for query in queries:
        for source in client.sources(bucket["id"], **query):
            by_title[source["title"]].append(source)
            by_bytes[str(source["sha256"])].append(source)
    return KnownSources(bucket["id"], by_title, own, is_whole, by_bytes)
