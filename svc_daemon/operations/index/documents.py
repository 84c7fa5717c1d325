"""Adds the documents of sources to the search index, and removes them again."""

import errno
from collections.abc import Sequence
from dataclasses import dataclass

from svc_daemon.core.text.chunking import Extraction
from svc_daemon.process.contexts import Context
from svc_daemon.provider.contract import IndexDocument
from svc_daemon.provider.errors import ProviderFailed
from svc_daemon.store.rows.sources.sources import SourceRow, list_titles


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
                own_title=extraction.title or "",
                tags=source.tags,
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
