"""Exports a bucket: waits until nothing in it is being indexed, then reads its sources.

Texts and vectors are first written to a temporary file: the manifest contains their hashes, but comes before them.
"""

import base64
import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO

from svc_cli.client.api import Client
from svc_cli.client.waiting import Watch, is_settled, wait_until_settled
from svc_cli.errors import ApiError, SvcError, UsageError
from svc_cli.exits import Exit
from svc_cli.exports.archives import ArchiveWriter
from svc_cli.exports.manifests import (
    MEMBER_FIELDS,
    ExportedBucket,
    ExportedModel,
    ExportedQuestion,
    ExportedSource,
    ExportManifest,
    in_order,
)
from svc_cli.progress import Progress
from svc_cli.transfer.downloads import checked, replacing
from svc_daemon.wire import JsonMapping
from svc_daemon.wire.buckets import Chunking

#: Minimum and maximum seconds between two checks for missing vectors. Within these limits, the pause is a tenth of the
#: time waited so far, because each check makes the service count all vectors of the bucket.
LOOK_S, LONGEST_LOOK_S = 0.2, 5.0
#: Seconds without a new vector after which an export stops waiting.
STALLED_S = 30.0


class BucketChanged(SvcError):
    """A source was deleted or replaced while the bucket was exported; no file was written."""

    code = "svc_bucket_changed"
    exit = Exit.TEMPORARY
    retryable = True


@dataclass(frozen=True, slots=True)
class Exported:
    """The result of an export."""

    manifest: ExportManifest
    #: SHA-256 of the whole file.
    sha256: str
    size_bytes: int
    #: Number of passages without a vector.
    without_vector: int


class MemberSpool:
    """Stores texts and vectors in a temporary file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        #: Offset and size of the bytes of each member, by its name.
        self.places: dict[str, tuple[int, int]] = {}

    def add(self, folder: str, data: bytes) -> str:
        """Store the bytes of a member. Returns their SHA-256."""
        sha256 = hashlib.sha256(data).hexdigest()
        if f"{folder}/{sha256}" not in self.places:
            self.places[f"{folder}/{sha256}"] = (self._file.seek(0, 2), len(data))
            self._file.write(data)
        return sha256

    def read(self, name: str) -> bytes:
        offset, size_bytes = self.places[name]
        self._file.seek(offset)
        return self._file.read(size_bytes)


class ExportReading:
    """Reads the sources of a bucket, and adds their texts and vectors to the export."""

    def __init__(self, client: Client, spool: MemberSpool, *, with_vectors: bool) -> None:
        self._client = client
        self._spool = spool
        self._with_vectors = with_vectors
        #: The model of all vectors that were read; None if there were none.
        self.model: ExportedModel | None = None
        self.without_vector = 0

    def read(self, source: JsonMapping) -> ExportedSource:
        """Read the text and the vectors of a source. Raises BucketChanged if the embedding model was replaced."""
        described = {name: source[name] for name in ExportedSource.model_fields.keys() - MEMBER_FIELDS}
        text = vectors = None
        if source["status"] == "active":
            read_source = self._client.source_vectors if self._with_vectors else self._client.source_text
            read = read_source(source["id"])
            text = self._spool.add("texts", read["text"].encode())
            vectors = self._keep_vectors(read)
        return ExportedSource(**described, bytes=source["sha256"], text=text, vectors=vectors)

    def _keep_vectors(self, read: JsonMapping) -> str | None:
        """Store the vectors of a source. Returns the SHA-256 of the stored bytes; None if there are no vectors."""
        if read.get("model") is None:
            return None
        rows = [
            (bytes.fromhex(each["text_sha256"]), base64.b64decode(each["vector"]))
            for each in read["chunks"]
            if each["vector"] is not None
        ]
        self.without_vector += len(read["chunks"]) - len(rows)
        if not rows:
            return None
        model = ExportedModel(name=read["model"], dimension=len(rows[0][1]) // 4)
        if self.model not in (None, model):
            raise BucketChanged(
                "The embedding model was replaced during the export; nothing was written.",
                hint="run the same command again.",
            )
        self.model = model
        return self._spool.add("vectors", b"".join(part for row in rows for part in row))


def write_export(client: Client, bucket: str, output: str, progress: Progress, *, with_vectors: bool) -> Exported:
    """Export a bucket to the file `output`, which is replaced only when the export is complete.

    Raises WaitTimedOut if a source is still being indexed at the client's deadline, and BucketChanged if the bucket
    changed during the export.
    """
    if output == "-":
        raise UsageError("An export is written to a file, not to standard output.")
    folder = Path(output).resolve().parent
    try:
        with replacing(output) as file, TemporaryFile(dir=folder) as spooled:
            found = client.bucket(bucket, members=False)
            listed = list_settled(client, found["id"], progress)
            if with_vectors:
                wait_embedded(client, found["id"], progress, client.deadline.within(None))
            reading = ExportReading(client, spool := MemberSpool(spooled), with_vectors=with_vectors)
            manifest = _read_manifest(found, listed, reading, spool, progress)
            archive = ArchiveWriter(file, manifest)
            _write_members(client, archive, listed, spool, progress)
            return Exported(manifest, archive.end(), archive.size_bytes, reading.without_vector)
    except ApiError as error:
        if error.code != "source_not_found":
            raise
        raise BucketChanged(
            f"A source of {bucket} was deleted or replaced while it was exported; nothing was written.",
            hint="run the same command again.",
        ) from error


def list_settled(client: Client, bucket_id: str, progress: Progress) -> list[JsonMapping]:
    """Wait until each source of the bucket is ready or has failed. Returns all sources."""
    while True:
        pages = list(client.source_pages(bucket_id, {"status": "all"}))
        sources: list[JsonMapping] = [source for page in pages for source in page["sources"]]
        pending = [source["id"] for source in sources if not is_settled(source)]
        if not pending and len({page["revision"] for page in pages}) == 1:
            return sources
        progress.begin("waiting for indexing", len(pending))
        wait_until_settled(
            client,
            Watch(pending),
            timeout_s=client.deadline.within(None),
            on_change=lambda seen: progress.update(seen.settled_count),
        )


def wait_embedded(
    client: Client,
    bucket_id: str,
    progress: Progress,
    timeout_s: float | None,
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Wait until each passage of the bucket has a vector, but no longer than `timeout_s`.

    Also returns if the service computes no vectors, or no new one for STALLED_S seconds. Missing vectors are left out
    of the export.
    """
    began_s = changed_s = clock()
    least: int | None = None
    while True:
        found = client.bucket_vectors(bucket_id)
        if not found["missing"] or found["state"] not in ("loading", "ready"):
            return
        if least is None:
            progress.begin("waiting for vectors", found["passages"])
        if least is None or found["missing"] < least:
            least, changed_s = found["missing"], clock()
        if clock() - changed_s > STALLED_S or (timeout_s is not None and clock() - began_s > timeout_s):
            return
        progress.update(found["passages"] - found["missing"])
        sleep(min(LONGEST_LOOK_S, max(LOOK_S, (clock() - began_s) / 10)))


def _read_manifest(
    bucket: JsonMapping, listed: list[JsonMapping], reading: ExportReading, spool: MemberSpool, progress: Progress
) -> ExportManifest:
    """Read the listed sources, and return the manifest."""
    files = [source for source in listed if source["type"] != "qa"]
    asked = [source for source in listed if source["type"] == "qa"]
    progress.begin("reading texts", len(files))
    sources = []
    for done, source in enumerate(files, start=1):
        sources.append(reading.read(source))
        progress.update(done)
    sizes = {f"bytes/{source['sha256']}": source["size_bytes"] for source in files}
    return ExportManifest(
        bucket=ExportedBucket(
            slug=bucket["slug"],
            name=bucket["name"],
            description=bucket["description"],
            metadata=bucket["metadata"],
            chunking=Chunking(**bucket["chunking"]) if bucket["chunking"] else None,
        ),
        model=reading.model,
        sources=in_order(sources),
        questions=in_order(
            [ExportedQuestion(**{name: each[name] for name in ExportedQuestion.model_fields}) for each in asked]
        ),
        members=sizes | {name: size_bytes for name, (_, size_bytes) in spool.places.items()},
    )


def _write_members(
    client: Client, archive: ArchiveWriter, listed: list[JsonMapping], spool: MemberSpool, progress: Progress
) -> None:
    """Write the files of the listed sources, and the texts and vectors in `spool`."""
    by_sha256, members = {source["sha256"]: source for source in listed}, archive.manifest.members
    progress.begin("reading files", len(members))
    for done, (name, size_bytes) in enumerate(sorted(members.items()), start=1):
        # The bytes of plain text and Markdown are usually equal to their extracted text, which `spool` already has.
        sha256 = name.partition("/")[2]
        spooled = name if name in spool.places else f"texts/{sha256}"
        if spooled in spool.places:
            archive.add(name, size_bytes, [spool.read(spooled)])
        else:
            source = by_sha256[sha256]
            archive.add(name, size_bytes, checked(source, client.source_content(source["id"])))
        progress.update(done)
