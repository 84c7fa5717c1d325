"""What it takes to bring one document that was read into the index, whichever worker does it."""

import asyncio
import errno

from svc_daemon.core.documents import Extraction
from svc_daemon.extract.cages import Extractor
from svc_daemon.operations.contexts import Context
from svc_daemon.operations.indexing import Reading
from svc_daemon.operations.readings import extract
from svc_daemon.provider.contract import IndexDocument
from svc_daemon.provider.errors import ProviderFailed
from svc_daemon.store.sources import Source, find_source


async def read(context: Context, extractor: Extractor, reading: Reading) -> Extraction:
    """Have the stored bytes read, unless the index could not take them; raises ExtractionFailed, ProviderFailed."""
    await asyncio.to_thread(check_room, context)
    return await extract(context, extractor, reading)


def put(context: Context, source: Source, extraction: Extraction) -> None:
    """Give the document to the index, under the title that the source has by then. Raises ProviderError."""
    check_room(context)
    document = IndexDocument(
        source_id=source.id,
        generation=source.generation,
        title=source.title,
        text=extraction.text,
        chunks=extraction.chunks,
    )
    provider = context.provider
    provider.put_document(source.team_id, document, source.searched_places)
    now = _find(context, source)
    if now is not None:
        # It may have changed since the claim, or since an earlier one whose document a kill has left there.
        provider.set_title(source.team_id, source.id, now.title)


def undo(context: Context, source: Source) -> None:
    """Whoever put the document was overtaken: if that was by a delete, what was put must not stay."""
    if _find(context, source) is None:
        context.provider.delete_document(source.team_id, source.id)


def check_room(context: Context) -> None:
    """Raises ProviderFailed where an index must not grow now: a disk that it fills takes no delete."""
    if not context.blobs.has_room(context.limits.free_disk_bytes):
        failure = ProviderFailed("The disk is nearly full.", retryable=True)
        raise failure from OSError(errno.ENOSPC, "below the reserve")


def _find(context: Context, source: Source) -> Source | None:
    """The source as it stands now."""
    return context.read(lambda connection: find_source(connection, source.team_id, source.id))
