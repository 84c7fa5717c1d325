"""Imports an export into a bucket: checks the whole file, then sends what the bucket lacks.

The service computes all vectors that it doesn't get, so an import continues after errors here.

Two sources are the same if title and SHA-256 are equal. An import that was killed can be completed by running it again.
"""

import base64
import hashlib
import os
import stat
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from svc_cli.client.api import Client
from svc_cli.client.new_files import Description, title_conflict
from svc_cli.client.transport import Reply
from svc_cli.errors import FileRefused, PathMissing, SvcError
from svc_cli.exports.archives import Archive, read_archive
from svc_cli.exports.manifests import (
    HASH_BYTES,
    MEMBER_FIELDS,
    ExportedModel,
    ExportedQuestion,
    ExportedSource,
    ExportManifest,
    ExportRefused,
    canonical,
)
from svc_cli.progress import Progress
from svc_cli.transfer.contents import FileContent, Stamp, stamp_of
from svc_cli.transfer.imports import create_once
from svc_cli.transfer.reports import ReportItem
from svc_cli.transfer.rooted_files import find_way_out, open_named, refuse_way_out
from svc_cli.transfer.transfers import Transfer, stops_everything
from svc_daemon.wire import JsonMapping

if TYPE_CHECKING:
    from svc_cli.client.types import OfferedVectorDict


T = TypeVar("T")

#: Maximum size of the vectors in one request. Encoded in base64, they must stay below 1 MB.
MOST_BYTES = 512 * 1024
#: Maximum number of vectors in one request.
MOST_ROWS = 2000
#: Maximum number of files whose vectors are sent in one request.
FILES_AT_ONCE = 100


class VectorSender:
    """Sends the vectors of an export to the service, unless the service uses another embedding model."""

    def __init__(self, client: Client, bucket_id: str, model: ExportedModel | None) -> None:
        """`model` is the export's embedding model. If it is None, no vectors are sent."""
        self._client = client
        self._bucket_id = bucket_id
        self._model = model
        #: Number of vectors that the export has for the files to send.
        self.found = 0
        #: Number of vectors that the service kept.
        self.kept = 0
        #: Whether the service refuses the vectors, or uses another model.
        self.is_refused = False

    def offer_before(self, entries: "Iterable[tuple[T, FileContent | None]]") -> Iterator[T]:
        """Yield the entries, each after its vectors were sent."""
        waiting: list[T] = []
        rows: list[OfferedVectorDict] = []
        most_rows = max(1, min(MOST_ROWS, MOST_BYTES // self._model.row_bytes)) if self._model else 0
        for entry, content in entries:
            waiting.append(entry)
            for row in self._read(content):
                rows.append(row)
                if len(rows) == most_rows:
                    self._offer(rows)
                    rows = []
            if not rows or len(waiting) == FILES_AT_ONCE:
                self._offer(rows)
                yield from waiting
                waiting, rows = [], []
        self._offer(rows)
        yield from waiting

    def _read(self, content: FileContent | None) -> "Iterator[OfferedVectorDict]":
        """Yield the vectors of one file. Stops early if they can't be read."""
        if content is None or self._model is None:
            return
        size_bytes, rest = self._model.row_bytes, b""
        with suppress(FileRefused):
            for block in content.blocks(0):
                rest += block
                whole_bytes = len(rest) - len(rest) % size_bytes
                for start in range(0, whole_bytes, size_bytes):
                    text, vector = rest[start : start + HASH_BYTES], rest[start + HASH_BYTES : start + size_bytes]
                    self.found += 1
                    yield {"text_sha256": text.hex(), "vector": base64.b64encode(vector).decode()}
                rest = rest[whole_bytes:]

    def _offer(self, rows: "list[OfferedVectorDict]") -> None:
        if not rows or self._model is None or self.is_refused:
            return
        try:
            answer = self._client.offer_vectors(self._bucket_id, self._model.name, rows)
        except SvcError as error:
            # Go on without vectors. An error such as a revoked key occurs again when the files are sent, and then
            # ends the import.
            self.is_refused = not error.retryable
            return
        self.kept += answer["kept"]
        self.is_refused = not answer["kept"] and answer["model"] != self._model.name


Entry = ExportedSource | ExportedQuestion
#: Bytes read between two updates of the progress.
SHOWN_BYTES = 1024**2


@dataclass(frozen=True, slots=True)
class OpenedExport:
    """An export that was checked."""

    path: Path
    #: Device, inode, size and modification time. If they change, nothing more is sent from the file.
    stamp: Stamp
    archive: Archive

    def content(self, folder: str, sha256: str) -> FileContent:
        """Return a file in the archive. Its bytes are read only when they are sent."""
        name = f"{folder}/{sha256}"
        size_bytes, start = self.archive.manifest.members[name], self.archive.offsets[name]
        return FileContent(self.path, sha256, size_bytes, stamp=self.stamp, start=start)


@dataclass(frozen=True, slots=True)
class PlannedEntry:
    """What to do with one entry of the export, and the bucket's source that it concerns, if any."""

    #: The title or question. If several entries have the same title or question, a number is added.
    label: str
    entry: Entry
    #: `created`: the bucket lacks the entry. `unchanged`: the bucket has it. `retried`: the bucket has it, but indexing
    #: has failed. `conflict`: the bucket has other content under the same title.
    action: Literal["created", "unchanged", "retried", "conflict"]
    source: JsonMapping | None = None


def open_export(path: Path, progress: Progress) -> OpenedExport:
    """Read and check an export. Raises ExportRefused, and PathMissing if there is no file."""
    refuse_way_out(path, find_way_out(path), "imported")
    try:
        descriptor = open_named(path)
    except FileNotFoundError as error:
        raise PathMissing(f"There is no file {path}.") from error
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode):
        os.close(descriptor)
        raise ExportRefused(f"{path} is not a regular file.", hint="an import reads the file twice; save it first.")
    with os.fdopen(descriptor, "rb") as file:
        progress.begin("reading MB", facts.st_size // SHOWN_BYTES)
        archive = read_archive(file, lambda read_bytes: progress.update(read_bytes // SHOWN_BYTES))
        if stamp_of(os.fstat(descriptor)) != stamp_of(facts):
            raise ExportRefused(f"{path} changed while it was read.", hint="run the command again.")
    return OpenedExport(path, stamp_of(facts), archive)


def plan_import(manifest: ExportManifest, known: Sequence[JsonMapping], *, as_new: bool) -> list[PlannedEntry]:
    """Decide what to do with each entry of an export. `known` are the bucket's sources."""
    entries: list[Entry] = [*manifest.sources, *manifest.questions]
    here: defaultdict[Hashable, list[JsonMapping]] = defaultdict(list)
    for source in known:
        here[_identity_in_bucket(source)].append(source)
    exported = {_identity(entry) for entry in entries}
    files = [source for source in known if source["type"] != "qa"]
    others = {str(each["title"]): each for each in files if _identity_in_bucket(each) not in exported}
    # Pair the entries with sources in the bucket: first sources equal in every field, then sources equal in
    # title and bytes.
    pairs: dict[int, JsonMapping] = {}
    for compared in (("filename", "content_type", "tags", "metadata"), ()):
        for place, entry in enumerate(entries):
            candidates = here[_identity(entry)] if place not in pairs else []
            names = [name for name in compared if hasattr(entry, name)]
            alike = (each for each in candidates if all(getattr(entry, name) == each[name] for name in names))
            found = next(alike, None)
            if found is not None:
                candidates.remove(found)
                pairs[place] = found
    labels: Counter[str] = Counter()
    planned = []
    for place, entry in enumerate(entries):
        title = entry.title if isinstance(entry, ExportedSource) else entry.question
        labels[title] += 1
        label = title if labels[title] == 1 else f"{title} ({labels[title]})"
        here_already, other = pairs.get(place), others.get(title) if isinstance(entry, ExportedSource) else None
        if here_already is not None:
            action: Literal["retried", "unchanged"] = "retried" if here_already["status"] == "failed" else "unchanged"
            planned.append(PlannedEntry(label, entry, action, here_already))
        elif other is not None and not as_new:
            planned.append(PlannedEntry(label, entry, "conflict", other))
        else:
            planned.append(PlannedEntry(label, entry, "created"))
    return planned


def _identity(entry: Entry) -> Hashable:
    if isinstance(entry, ExportedSource):
        return entry.title, entry.bytes
    return entry.question, entry.answer, *entry.alternate_questions


def _identity_in_bucket(source: JsonMapping) -> Hashable:
    if source["type"] != "qa":
        return source["title"], source["sha256"]
    return source["question"], source["answer"], *source["alternate_questions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketImport:
    """Carries out the planned import into one bucket."""

    client: Client
    bucket_id: str
    opened: OpenedExport
    #: Sends the vectors of each source before the source is sent.
    vectors: VectorSender
    #: Whether sources keep the name of the synced folder that they came from.
    keeps_mappings: bool
    is_dry: bool

    def files(self, plan: Sequence[PlannedEntry]) -> Iterator[ReportItem | Transfer]:
        """Yield a transfer for each source to send, and a report item for every other source.

        The vectors of a source are sent before its transfer is yielded.
        """
        return self.vectors.offer_before(self._files(plan))

    def _files(self, plan: Sequence[PlannedEntry]) -> Iterator[tuple[ReportItem | Transfer, FileContent | None]]:
        """Yield the transfers and report items, each with the vectors to send first, if any."""
        for planned in plan:
            source = planned.entry
            if not isinstance(source, ExportedSource):
                continue
            content, item = self.opened.content("bytes", source.bytes), self._item(planned)
            item.size_bytes, item.sha256 = content.size_bytes, content.sha256
            if item.action != "created" or self.is_dry:
                yield item, None
                continue
            described = source.model_dump(exclude={*MEMBER_FIELDS, *([] if self.keeps_mappings else ["mapping"])})
            description = Description(**described, sha256=source.bytes)
            vectors = self.opened.content("vectors", source.vectors) if source.vectors else None
            yield Transfer(item, content, description), vectors

    def questions(self, plan: Sequence[PlannedEntry]) -> list[Callable[[], ReportItem]]:
        """Return a function for each question that adds the question and its answer if the bucket lacks them."""
        return [partial(self._ask, each) for each in plan if isinstance(each.entry, ExportedQuestion)]

    def _ask(self, planned: PlannedEntry) -> ReportItem:
        item = self._item(planned)
        if item.action != "created" or self.is_dry:
            return item
        fields = planned.entry.model_dump(exclude=None if self.keeps_mappings else {"mapping"})
        bucket_id = self.bucket_id

        def add(epoch: int) -> Reply[Any]:
            key = f"svc-question-{hashlib.sha256(canonical([bucket_id, epoch, fields])).hexdigest()}"
            return self.client.add_question(bucket_id, **fields, idempotency_key=key)

        try:
            item.follow(create_once(self.client, bucket_id, add))
        except SvcError as error:
            if stops_everything(error):
                raise
            item.refuse(error)
        return item

    def _item(self, planned: PlannedEntry) -> ReportItem:
        item, source = ReportItem(path=planned.label, action=planned.action), planned.source
        if source is None:
            return item
        if planned.action == "conflict":
            item.status, item.ready = source["status"], bool(source["ready"])
            item.conflict(source["id"], title_conflict(source, "--as-new adds it beside that.").summarized())
        elif planned.action == "unchanged":
            item.follow(source)
        elif self.is_dry:
            item.source_id = source["id"]
        else:
            try:
                item.follow(self.client.retry_source(source["id"]))
            except SvcError as error:
                if stops_everything(error):
                    raise
                item.refuse(error)
        return item
