"""Indexing a single document: read its stored bytes, and put its text into the index."""

import asyncio
import errno
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from svc_daemon.core.text.chunking import Extraction
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import NotFound
from svc_daemon.extract.cages import Extractor
from svc_daemon.extract.failures import ExtractionFailed
from svc_daemon.extract.waves import StoredDocument
from svc_daemon.operations.indexing import IndexedDocument, IndexEntry, SourceReading, find_reading, put_back
from svc_daemon.process.contexts import Context
from svc_daemon.provider.contract import IndexDocument
from svc_daemon.provider.errors import ProviderFailed
from svc_daemon.store.sources import SourceRow, find_source, list_titles, update_state
from svc_daemon.store.tasks import is_held
from svc_daemon.wire.codes import ErrorCode, SourceErrorCode


@dataclass(frozen=True, slots=True)
class Rereading:
    """The result of reading a source's stored bytes again: their hash, and the text extracted from them."""

    #: SHA-256 of the stored bytes, in hexadecimal; None if there are none.
    sha256: str | None
    extraction: Extraction | None
    #: Why no text could be extracted; None if it was extracted, or if there are no stored bytes.
    failure: ExtractionFailed | None = None


async def extract(context: Context, extractor: Extractor, reading: SourceReading) -> Extraction:
    """Extract the text of the source's bytes in the sandboxed extractor; raises ExtractionFailed."""
    try:
        return await extractor.extract(_stored(context, reading))
    except FileNotFoundError:
        if await context.blobs.blob(reading.source.blob_name).find() is not None:
            raise
        raise _lost() from None


async def read_again(context: Context, extractor: Extractor, source: SourceRow) -> Rereading:
    """Hash and extract the stored bytes as they are now, regardless of the index; raises NotFound."""
    reading = context.read(partial(find_reading, team_id=source.team_id, source_id=source.id))
    if reading is None:
        raise NotFound(ErrorCode.SOURCE_NOT_FOUND, f"There is no source {source.id!r}.")
    try:
        sha256 = await context.blobs.blob(source.blob_name).hash()
        return Rereading(sha256, await extract(context, extractor, reading))
    except FileNotFoundError:
        return Rereading(None, None)
    except ExtractionFailed as failure:
        is_lost = failure.code == SourceErrorCode.STORED_BYTES_LOST
        return Rereading(None, None) if is_lost else Rereading(sha256, None, failure)


async def read(context: Context, extractor: Extractor, reading: SourceReading) -> Extraction:
    """Extract the source's stored bytes. Raises ExtractionFailed, or ProviderFailed if the disk is nearly full."""
    await asyncio.to_thread(check_room, context)
    return await extract(context, extractor, reading)


async def read_wave(
    context: Context, extractor: Extractor, readings: Sequence[SourceReading]
) -> list[Extraction | Exception]:
    """Extract the stored bytes of several sources of one team in a single child process.

    Returns an entry for each source: the extraction, an exception that `read` would raise, or NotRead. Raises
    ProviderFailed if the disk is nearly full.
    """
    await asyncio.to_thread(check_room, context)
    results = await extractor.extract_wave([_stored(context, reading) for reading in readings])
    return [_lost() if isinstance(result, FileNotFoundError) else result for result in results]


def _stored(context: Context, reading: SourceReading) -> StoredDocument:
    return StoredDocument(
        content=context.blobs.blob(reading.source.blob_name),
        filename=reading.source.filename,
        content_type=reading.source.content_type,
        chunking=reading.chunking,
    )


def put(context: Context, documents: Sequence[tuple[SourceRow, Extraction]]) -> list[IndexEntry]:
    """Put these documents, all of one team, into the index under the sources' current titles. Raises ProviderError."""
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
    for source, _ in documents:
        title = titles.get(source.id, source.title)
        if source.id in titles:
            # The document in the index has an older title if the source was renamed after the task was claimed.
            context.provider.set_title(team_id, source.id, title)
        state = context.provider.get_document(team_id, source.id)
        is_ours = state is not None and state.generation == source.generation
        kept_generation = state.generation if state is not None and source.id in kept else None
        entries.append(IndexEntry(title, state.bucket_ids if state is not None and is_ours else None, kept_generation))
    return entries


async def queue_kept(context: Context, documents: Sequence[IndexedDocument]) -> None:
    """Queue documents again whose text the index didn't take, as generations after the one that it kept.

    It keeps a text of a later state if the state database was restored from an older copy. That text may be of other
    bytes, or split with other chunk sizes.
    """

    def work(connection: Connection) -> None:
        for document in documents:
            task, kept = document.claim.task, document.entry.kept_generation or 0
            source = find_source(connection, task.team_id, document.claim.source.id)
            if source is not None and is_held(connection, task):
                update_state(connection, replace(source, generation=max(kept, source.generation) + 1))
                put_back(connection, context, task)

    await context.write(work)
    context.wakes.indexing.set()


def undo(context: Context, source: SourceRow) -> None:
    """Remove a document from the index if its source was deleted in the meantime."""
    if context.read(lambda connection: find_source(connection, source.team_id, source.id)) is None:
        context.provider.delete_document(source.team_id, source.id)


def check_room(context: Context) -> None:
    """Raise ProviderFailed if the disk is nearly full: on a full disk, even deletes would fail."""
    if not context.blobs.has_room(context.limits.free_disk_bytes):
        failure = ProviderFailed("The disk is nearly full.", retryable=True)
        raise failure from OSError(errno.ENOSPC, "below the reserve")


def _lost() -> ExtractionFailed:
    # This failure is permanent: a retry would not help.
    return ExtractionFailed(SourceErrorCode.STORED_BYTES_LOST, "The stored bytes are gone; upload the file again.")
