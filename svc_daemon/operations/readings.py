"""Reading a source's stored bytes: for the index, and anew for whoever doubts what the index says."""

import asyncio
import hashlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from svc_daemon.core.documents import Extraction
from svc_daemon.errors import NotFound
from svc_daemon.extract.cages import Extractor
from svc_daemon.extract.failures import ExtractionFailed
from svc_daemon.operations.contexts import Context
from svc_daemon.operations.indexing import Reading, find_reading
from svc_daemon.store.sources import Source
from svc_daemon.wire.codes import ErrorCode, SourceErrorCode


@dataclass(frozen=True, slots=True)
class Rereading:
    """What the stored bytes are, and what stands in them now."""

    #: In hex; None where the bytes are gone.
    sha256: str | None
    extraction: Extraction | None
    #: Why there is no extraction.
    failure: ExtractionFailed | None = None


async def extract(context: Context, extractor: Extractor, reading: Reading) -> Extraction:
    """Have the cage read the source's bytes; raises ExtractionFailed."""
    source = reading.source
    path = context.blobs.find(source.blob_name)
    if path is None:
        # Trying again would not bring them back.
        raise ExtractionFailed(SourceErrorCode.STORED_BYTES_LOST, "The stored bytes are gone; upload the file again.")
    return await extractor.extract(
        path,
        filename=source.filename,
        content_type=source.content_type,
        chunking=reading.chunking,
    )


async def read_again(context: Context, extractor: Extractor, source: Source) -> Rereading:
    """Hash and read the stored bytes as they are now, whatever the index holds; raises NotFound."""
    reading = context.read(partial(find_reading, team_id=source.team_id, source_id=source.id))
    if reading is None:
        raise NotFound(ErrorCode.SOURCE_NOT_FOUND, f"There is no source {source.id!r}.")
    try:
        path = context.blobs.find(source.blob_name)
        if path is None:
            return Rereading(None, None)
        sha256 = await asyncio.to_thread(_hash, path)
        return Rereading(sha256, await extract(context, extractor, reading))
    except FileNotFoundError:
        return Rereading(None, None)
    except ExtractionFailed as failure:
        return Rereading(sha256, None, failure)


def _hash(path: Path) -> str:
    with path.open("rb") as blob:
        return hashlib.file_digest(blob, "sha256").hexdigest()
