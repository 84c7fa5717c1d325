"""Exports a bucket: waits until nothing in it is being indexed, lists its sources, then reads their texts and bytes.

The texts are first written to a temporary file without a name. The manifest contains their hashes, so it can be written
only after all texts were read, but it comes before them in the archive.
"""

import hashlib
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO

from svc_cli.client.api import Client
from svc_cli.client.waiting import Watch, is_settled, wait_until_settled
from svc_cli.downloads import checked, replacing
from svc_cli.errors import ApiError, SvcError, UsageError
from svc_cli.exits import Exit
from svc_cli.exports.archives import ArchiveWriter
from svc_cli.exports.manifests import (
    ExportedBucket,
    ExportedQuestion,
    ExportedSource,
    ExportManifest,
    in_order,
)
from svc_cli.progress import Progress
from svc_daemon.wire import JsonMapping
from svc_daemon.wire.buckets import Chunking


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


class TextSpool:
    """Stores texts in a temporary file, and finds them by their SHA-256."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        #: Offset and size of each text in the file, by its SHA-256.
        self.places: dict[str, tuple[int, int]] = {}

    def add(self, text: str) -> str:
        """Store a text; returns its SHA-256."""
        data = text.encode()
        sha256 = hashlib.sha256(data).hexdigest()
        if sha256 not in self.places:
            self.places[sha256] = (self._file.seek(0, 2), len(data))
            self._file.write(data)
        return sha256

    def read(self, sha256: str) -> bytes:
        offset, size_bytes = self.places[sha256]
        self._file.seek(offset)
        return self._file.read(size_bytes)


def write_export(client: Client, bucket: str, output: str, progress: Progress, timeout_s: float | None) -> Exported:
    """Export a bucket to the file `output`. An existing file is replaced only when the export is complete.

    Raises WaitTimedOut if a source is still being indexed after `timeout_s`, and BucketChanged if a source is deleted
    or replaced during the export.
    """
    if output == "-":
        raise UsageError("An export is written to a file, not to standard output.")
    folder = Path(output).resolve().parent
    try:
        with replacing(output) as file, TemporaryFile(dir=folder) as spooled:
            found = client.bucket(bucket, members=False)
            listed = list_settled(client, found["id"], progress, timeout_s)
            manifest = _read_manifest(client, found, listed, spool := TextSpool(spooled), progress)
            return _write_members(client, ArchiveWriter(file, manifest), listed, spool, progress)
    except ApiError as error:
        if error.code != "source_not_found":
            raise
        raise BucketChanged(
            f"A source of {bucket} was deleted or replaced while it was exported; nothing was written.",
            hint="run the same command again.",
        ) from error


def list_settled(client: Client, bucket_id: str, progress: Progress, timeout_s: float | None) -> list[JsonMapping]:
    """Wait until each source of the bucket is ready or has failed. Returns all sources, listed when none was being
    indexed.
    """
    deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
    while True:
        pages = list(client.source_pages(bucket_id, {"status": "all"}))
        sources: list[JsonMapping] = [source for page in pages for source in page["sources"]]
        pending = [source["id"] for source in sources if not is_settled(source)]
        if not pending and len({page["revision"] for page in pages}) == 1:
            return sources
        progress.begin("waiting for indexing", len(pending))
        wait_until_settled(
            client,
            Watch(pending, bucket_id),
            timeout_s=None if deadline_s is None else max(0.0, deadline_s - time.monotonic()),
            on_change=lambda seen: progress.update(seen.settled_count),
        )


def _read_manifest(
    client: Client, bucket: JsonMapping, listed: list[JsonMapping], spool: TextSpool, progress: Progress
) -> ExportManifest:
    """Read the texts of the listed sources into the spool, and return the manifest, which describes the bucket."""
    files = [source for source in listed if source["type"] != "qa"]
    asked = [source for source in listed if source["type"] == "qa"]
    progress.begin("reading texts", len(files))
    sources = []
    for done, source in enumerate(files, start=1):
        text = spool.add(client.source_text(source["id"])["text"]) if source["status"] == "active" else None
        described = {name: source[name] for name in ExportedSource.model_fields.keys() - {"bytes", "text"}}
        sources.append(ExportedSource(**described, bytes=source["sha256"], text=text))
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
        sources=in_order(sources),
        questions=in_order(
            [ExportedQuestion(**{name: each[name] for name in ExportedQuestion.model_fields}) for each in asked]
        ),
        members=sizes | {f"texts/{sha256}": size_bytes for sha256, (_, size_bytes) in spool.places.items()},
    )


def _write_members(
    client: Client, archive: ArchiveWriter, listed: list[JsonMapping], spool: TextSpool, progress: Progress
) -> Exported:
    """Write the bytes of the listed sources, the texts in the spool, and the end of the archive."""
    by_sha256, members = {source["sha256"]: source for source in listed}, archive.manifest.members
    progress.begin("reading files", len(members))
    for done, (name, size_bytes) in enumerate(sorted(members.items()), start=1):
        folder, _, sha256 = name.partition("/")
        if folder == "texts":
            archive.add(name, size_bytes, [spool.read(sha256)])
        else:
            source = by_sha256[sha256]
            archive.add(name, size_bytes, checked(source, client.source_content(source["id"])))
        progress.update(done)
    return Exported(archive.manifest, archive.end(), archive.size_bytes)
