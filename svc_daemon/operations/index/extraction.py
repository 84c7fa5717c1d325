"""Extracts the text of stored files."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from svc_daemon.core.readiness import PAGE
from svc_daemon.core.text.chunking import ChunkingOptions, Extraction, RecognizedPage
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import NotFound
from svc_daemon.extract.documents import ExtractionFailed, StoredDocument
from svc_daemon.extract.extractors import Extractor
from svc_daemon.operations.index.documents import check_room
from svc_daemon.process.contexts import Context
from svc_daemon.store.rows.buckets import chunking_of, find_bucket
from svc_daemon.store.rows.sources.recognized_pages import list_pages
from svc_daemon.store.rows.sources.sources import SourceRow, find_source
from svc_daemon.wire.light.error_codes import ErrorCode, SourceErrorCode


@dataclass(frozen=True, slots=True)
class SourceReading:
    """A source whose text is to be extracted, and the chunk sizes for the text."""

    source: SourceRow
    #: The chunk sizes of the source's oldest bucket.
    chunking: ChunkingOptions


@dataclass(frozen=True, slots=True)
class Rereading:
    """The hash and the text of a source's stored file, computed again."""

    #: The source as it was when its file was read.
    source: SourceRow
    #: SHA-256 of the stored file in hexadecimal; None if the file is missing.
    sha256: str | None
    extraction: Extraction | None
    #: Why no text could be extracted; None if extraction did not fail.
    failure: ExtractionFailed | None = None


def find_reading(connection: Connection, team_id: str, source_id: str) -> SourceReading | None:
    """Return the source and its chunk sizes; None if there is no such source."""
    source = find_source(connection, team_id, source_id)
    return SourceReading(source, list_chunkings(connection, [source])[source.id]) if source else None


def list_chunkings(connection: Connection, sources: Sequence[SourceRow]) -> dict[str, ChunkingOptions]:
    """Map each source's id to the chunk sizes of its oldest bucket."""
    oldest = {source.id: (source.team_id, next(iter(source.places), "")) for source in sources}
    buckets = {place: find_bucket(connection, *place) for place in set(oldest.values())}
    chunkings = {place: chunking_of(bucket) if bucket else ChunkingOptions() for place, bucket in buckets.items()}
    return {source_id: chunkings[place] for source_id, place in oldest.items()}


async def read(
    context: Context,
    extractor: Extractor,
    reading: SourceReading,
    *,
    awaits_recognition: bool = False,
    unread: Iterable[RecognizedPage] = (),
) -> Extraction:
    """Extract the text of the source's stored file. Pages of scans have the text that was recognised, if any.

    Raises ExtractionFailed, or ProviderFailed if the disk is nearly full. With `awaits_recognition`, raises
    NeedsRecognition if pages of a scan were not recognised yet, other than those of `unread`.
    """
    await asyncio.to_thread(check_room, context)
    stored = stored_document(context, reading)
    recognized = {page.page: page for page in unread} | dict(stored.recognized)
    stored = replace(stored, awaits_recognition=awaits_recognition, recognized=recognized)
    return await extract(context, extractor, reading, stored)


async def read_wave(
    context: Context, extractor: Extractor, readings: Sequence[SourceReading]
) -> list[Extraction | Exception]:
    """Extract the text of several sources of one team in a single child process.

    Returns an extraction or an exception for each source: an error of `read`, or NotRead if the source must be read in
    a separate process.
    """
    await asyncio.to_thread(check_room, context)
    results = await extractor.extract_wave([stored_document(context, reading) for reading in readings])
    for place, result in enumerate(results):
        if isinstance(result, FileNotFoundError):
            results[place] = await _find_cause(context, readings[place], result)
    return results


async def read_again(context: Context, extractor: Extractor, team_id: str, source_id: str) -> Rereading:
    """Hash the source's stored file and extract its text; raises NotFound.

    A file that has another hash, or none, is read once more if the source was given another one meanwhile.
    """
    reading = _get_reading(context, team_id, source_id)
    rereading = await _read_stored(context, extractor, reading)
    if rereading.sha256 == reading.source.sha256:
        return rereading
    now = _get_reading(context, team_id, source_id)
    is_same = now.source.blob_name == reading.source.blob_name
    return rereading if is_same else await _read_stored(context, extractor, now)


def _get_reading(context: Context, team_id: str, source_id: str) -> SourceReading:
    reading = context.read(partial(find_reading, team_id=team_id, source_id=source_id))
    if reading is None:
        raise NotFound(ErrorCode.SOURCE_NOT_FOUND, f"There is no source {source_id!r}.")
    return reading


async def _read_stored(context: Context, extractor: Extractor, reading: SourceReading) -> Rereading:
    source = reading.source
    try:
        sha256 = await context.blobs.blob(source.blob_name).hash()
    except FileNotFoundError:
        return Rereading(source, None, None)
    try:
        return Rereading(source, sha256, await extract(context, extractor, reading))
    except ExtractionFailed as failure:
        is_lost = failure.code == SourceErrorCode.STORED_BYTES_LOST
        return Rereading(source, None, None) if is_lost else Rereading(source, sha256, None, failure)


async def extract(
    context: Context, extractor: Extractor, reading: SourceReading, stored: StoredDocument | None = None
) -> Extraction:
    """Extract the source's text in the sandboxed extractor; raises ExtractionFailed."""
    try:
        return await extractor.extract(stored or stored_document(context, reading))
    except FileNotFoundError as missing:
        raise await _find_cause(context, reading, missing) from None


def stored_document(context: Context, reading: SourceReading) -> StoredDocument:
    """Describe the source's stored file for the extractor, with the pages that were recognised in it."""
    source = reading.source
    return StoredDocument(
        content=context.blobs.blob(source.blob_name),
        filename=source.filename,
        content_type=source.content_type,
        chunking=reading.chunking,
        is_page=source.type == PAGE,
        recognized=context.read(lambda connection: list_pages(connection, source.id, source.sha256)),
    )


async def _find_cause(context: Context, reading: SourceReading, missing: FileNotFoundError) -> Exception:
    """Return an error if the source's stored file is lost; otherwise return `missing`.

    Without its stored file, the source fails. If another file is missing, the installation is broken, and the source
    must not fail.
    """
    if await context.blobs.blob(reading.source.blob_name).find() is not None:
        return missing
    return ExtractionFailed(SourceErrorCode.STORED_BYTES_LOST, "The stored bytes are gone; upload the file again.")
