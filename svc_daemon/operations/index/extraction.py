"""Extracts the text of stored files, and adds the documents of sources to the search index or removes them."""

import asyncio
import errno
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from svc_daemon.core.text.chunking import ChunkingOptions, Extraction
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import NotFound
from svc_daemon.extract.documents import ExtractionFailed, StoredDocument
from svc_daemon.extract.extractors import Extractor
from svc_daemon.process.contexts import Context
from svc_daemon.provider.contract import IndexDocument
from svc_daemon.provider.errors import ProviderFailed
from svc_daemon.store.rows.buckets import chunking_of, find_bucket
from svc_daemon.store.rows.sources import SourceRow, find_source, list_titles
from svc_daemon.wire.error_codes import ErrorCode, SourceErrorCode


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A document's title and buckets in the index, after `put`.

    `put` has no effect if the index already has the same generation of the document, or a later one.
    """

    title: str
    #: The document's buckets in the index; None if the index has another generation of the document.
    bucket_ids: Sequence[str] | None
    #: The generation that the index already had and kept; None if the index stored the new generation.
    kept_generation: int | None = None

    def is_current(self, source: SourceRow) -> bool:
        """Return whether the index has the source's current title and buckets."""
        has_its_buckets = self.bucket_ids is not None and set(self.bucket_ids) == set(source.searched_places)
        return has_its_buckets and self.title == source.title


def put(context: Context, documents: Sequence[tuple[SourceRow, Extraction]]) -> list[IndexEntry]:
    """Store these documents of one team in the index, with their current titles.

    Returns an entry for each document, in the same order. Raises ProviderError.
    """
    check_room(context)
    team_id = documents[0][0].team_id
    kept = context.provider.put_documents(
        team_id,
        [
            IndexDocument(
                source_id=source.id,
                generation=source.generation,
                title=source.title,
                text=extraction.text,
                chunks=extraction.chunks,
                bucket_ids=source.searched_places,
            )
            for source, extraction in documents
        ],
    )
    source_ids = [source.id for source, _ in documents]
    titles = context.read(lambda connection: list_titles(connection, team_id, source_ids))
    entries = []
    # Calls to an index on a server are slow, so read back only documents that the index may not have stored.
    for source, _ in documents:
        title = titles.get(source.id, source.title)
        if source.id in titles and (title != source.title or source.id in kept):
            # The source was renamed after the worker claimed it, or the index kept an old title.
            context.provider.set_title(team_id, source.id, title)
        if source.id not in kept:
            entries.append(IndexEntry(title, source.searched_places))
            continue
        state = context.provider.get_document(team_id, source.id)
        is_ours = state is not None and state.generation == source.generation
        kept_generation = state.generation if state is not None else None
        entries.append(IndexEntry(title, state.bucket_ids if state is not None and is_ours else None, kept_generation))
    return entries


def undo(context: Context, sources: Sequence[SourceRow]) -> None:
    """Remove the documents of sources that were deleted meanwhile. All sources must be of one team."""
    team_id, source_ids = sources[0].team_id, [source.id for source in sources]
    there = context.read(lambda connection: list_titles(connection, team_id, source_ids))
    for source_id in source_ids:
        if source_id not in there:
            context.provider.delete_document(team_id, source_id)


def check_room(context: Context) -> None:
    """Raise ProviderFailed if the disk is nearly full, because on a full disk even deletes fail."""
    if not context.blobs.has_room(context.limits.free_disk_bytes):
        failure = ProviderFailed("The disk is nearly full.", retryable=True)
        raise failure from OSError(errno.ENOSPC, "below the reserve")


@dataclass(frozen=True, slots=True)
class SourceReading:
    """A source whose text is to be extracted, and the chunk sizes for the text."""

    source: SourceRow
    #: The chunk sizes of the source's oldest bucket.
    chunking: ChunkingOptions


@dataclass(frozen=True, slots=True)
class Rereading:
    """The hash and the text of a source's stored file, computed again."""

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


async def read(context: Context, extractor: Extractor, reading: SourceReading) -> Extraction:
    """Extract the text of the source's stored file.

    Raises ExtractionFailed, or ProviderFailed if the disk is nearly full.
    """
    await asyncio.to_thread(check_room, context)
    return await extract(context, extractor, reading)


async def read_wave(
    context: Context, extractor: Extractor, readings: Sequence[SourceReading]
) -> list[Extraction | Exception]:
    """Extract the text of several sources of one team in a single child process.

    Returns an extraction or an exception for each source: an error of `read`, or NotRead if the source must be read in
    a separate process.
    """
    await asyncio.to_thread(check_room, context)
    results = await extractor.extract_wave([_stored(context, reading) for reading in readings])
    for place, result in enumerate(results):
        if isinstance(result, FileNotFoundError):
            results[place] = await _find_cause(context, readings[place], result)
    return results


async def read_again(context: Context, extractor: Extractor, source: SourceRow) -> Rereading:
    """Hash the source's stored file and extract its text; raises NotFound."""
    reading = context.read(partial(find_reading, team_id=source.team_id, source_id=source.id))
    if reading is None:
        raise NotFound(ErrorCode.SOURCE_NOT_FOUND, f"There is no source {source.id!r}.")
    try:
        sha256 = await context.blobs.blob(source.blob_name).hash()
    except FileNotFoundError:
        return Rereading(None, None)
    try:
        return Rereading(sha256, await extract(context, extractor, reading))
    except ExtractionFailed as failure:
        is_lost = failure.code == SourceErrorCode.STORED_BYTES_LOST
        return Rereading(None, None) if is_lost else Rereading(sha256, None, failure)


async def extract(context: Context, extractor: Extractor, reading: SourceReading) -> Extraction:
    """Extract the source's text in the sandboxed extractor; raises ExtractionFailed."""
    try:
        return await extractor.extract(_stored(context, reading))
    except FileNotFoundError as missing:
        raise await _find_cause(context, reading, missing) from None


def _stored(context: Context, reading: SourceReading) -> StoredDocument:
    return StoredDocument(
        content=context.blobs.blob(reading.source.blob_name),
        filename=reading.source.filename,
        content_type=reading.source.content_type,
        chunking=reading.chunking,
    )


async def _find_cause(context: Context, reading: SourceReading, missing: FileNotFoundError) -> Exception:
    """Return an error if the source's stored file is lost; otherwise return `missing`.

    Without its stored file, the source fails. If another file is missing, the installation is broken, and the source
    must not fail.
    """
    if await context.blobs.blob(reading.source.blob_name).find() is not None:
        return missing
    return ExtractionFailed(SourceErrorCode.STORED_BYTES_LOST, "The stored bytes are gone; upload the file again.")
