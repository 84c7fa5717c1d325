"""Stores, changes and removes documents.

- The postings of a document are committed before its row is visible to searches.
- Small documents are written in batches. Batches and changes that wait at the same time have one commit of the
  postings.
- Large documents are written in slices with a transaction each, so that other writes can run in between. Searches see
  the document only after the last slice. It then replaces the earlier document, which is removed.
- A document whose buckets or names change gets other postings, under a new number.
- After a crash, hidden documents are removed when the file is next opened, and postings without a document too.
"""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from typing import Any

from svc_daemon.databases.group_commits import resolve
from svc_daemon.errors import StorageError
from svc_daemon.provider.embedded import document_rows, documents
from svc_daemon.provider.embedded.indexes import Change, Prepared, TeamIndex, remove_large
from svc_daemon.provider.embedded.packing import (
    PackedDocument,
    Wording,
    cut_batches,
    is_large,
    pack_names,
    unpack_names,
)
from svc_daemon.provider.errors import ProviderError
from svc_daemon.provider.ranked_chunks import distinct


def put(index: TeamIndex, packed: Sequence[PackedDocument]) -> set[str]:
    """Store each document, unless the index already has its generation or a later one.

    Returns the ids of sources for which nothing was stored.
    """
    stored = set[str]()
    for batch in cut_batches(packed):
        stored |= _put_large(index, batch[0]) if batch[0].is_large else _put_batch(index, batch)
    return {document.source_id for document in packed} - stored


def set_buckets(index: TeamIndex, source_id: str, generation: int, bucket_ids: Sequence[str]) -> None:
    """Set the document's buckets; do nothing if it already has these buckets. Raises DocumentMissing."""
    wanted = distinct(bucket_ids)

    def prepare() -> Prepared | None:
        stored = index.database.read(lambda connection: documents.get(connection, source_id, generation))
        wording = index.database.read(lambda connection: documents.read_wording(connection, stored))
        return None if wording.bucket_ids == wanted else _prepare_rewording(index, stored, bucket_ids=wanted)

    _change(index, [source_id], prepare)


def set_title(index: TeamIndex, source_id: str, title: str, tags: Sequence[str] | None) -> None:
    """Set the title, and the tags unless they are None; do nothing if they are the same. Raises DocumentMissing."""

    def prepare() -> Prepared | None:
        stored = index.database.read(lambda connection: documents.get(connection, source_id))
        own_title, *old_tags = unpack_names(stored["names"]) or ("",)
        names = pack_names((own_title, *(old_tags if tags is None else tags)))
        if (stored["title"], stored["names"] or pack_names([""])) == (title, names):
            return None
        return _prepare_rewording(index, stored, title=title, names=names)

    _change(index, [source_id], prepare)


def delete(index: TeamIndex, source_id: str) -> None:
    """Remove the source's document, if there is one."""

    def work(connection: sqlite3.Connection) -> sqlite3.Row | None:
        shown = documents.find(connection, source_id)
        document_rows.hide(connection, shown)
        if shown is not None and not is_large(shown["chunks"], shown["pieces"]):
            document_rows.remove_small(connection, [shown["document_key"]])
            return None
        return shown

    if index.database.read(lambda connection: documents.find(connection, source_id)) is None:
        return
    with index.writing:
        large = index.database.write(work)
        index.clear_garbage()
    if large is not None:
        remove_large(index, large["document_key"])


def _change(index: TeamIndex, source_ids: Iterable[str], prepare: Callable[[], Prepared | None]) -> Any:
    """Change the documents of these sources, and return what the work on the rows returns.

    All changes that wait at the same time have one commit of the postings, since that takes ten milliseconds.
    """
    mine = Change(frozenset(source_ids), prepare)
    index.waiting.append(mine)
    with index.writing:
        while not mine.made.done():
            _make(index, _take_waiting(index.waiting))
            index.clear_garbage()
    return mine.made.result()


def _take_waiting(waiting: list[Change]) -> list[Change]:
    """Take the changes that can be made together: of those of one source, the first."""
    taken, source_ids = list[Change](), set[str]()
    for each in [*waiting]:
        if source_ids.isdisjoint(each.source_ids):
            taken.append(each)
            waiting.remove(each)
        source_ids |= each.source_ids
    return taken


def _make(index: TeamIndex, changes: Sequence[Change]) -> None:
    """Make these changes. Each gets what its work returns, or the error."""
    try:
        prepared = [(change.made, ready) for change in changes if (ready := _prepare(change)) is not None]
        if prepared:
            with index.posting() as add:
                for _, ready in prepared:
                    add(ready.postings)
        written = [(made, index.database.submit(ready.work)) for made, ready in prepared]
        for made, write in written:
            failure = write.exception()
            resolve(made, None if failure else write.result(), failure)
    except BaseException as error:
        for change in changes:
            if not change.made.done():
                change.made.set_exception(error)
        raise


def _prepare(change: Change) -> Prepared | None:
    """Prepare the change. If there is nothing to do, or an error, the change has ended."""
    try:
        prepared = change.prepare()
    except (ProviderError, StorageError, OSError) as error:
        change.made.set_exception(error)
        return None
    if prepared is None:
        change.made.set_result(None)
    return prepared


def _put_batch(index: TeamIndex, batch: Sequence[PackedDocument]) -> set[str]:
    """Write a batch of small documents. Returns the ids of the stored sources."""
    newest: dict[str, PackedDocument] = {}
    for document in batch:
        if document.source_id not in newest or newest[document.source_id].generation < document.generation:
            newest[document.source_id] = document

    numbers = dict(zip(newest, index.take_numbers(len(newest)), strict=True))
    # Other batches can be committed while the terms are made.
    postings = {
        source_id: [*_wording_of(document, numbers[source_id]).postings(0, document.chunk_rows)]
        for source_id, document in newest.items()
    }
    newer: list[PackedDocument] = []

    def prepare() -> Prepared | None:
        shown = index.database.read(lambda connection: documents.find_all(connection, list(newest)))
        newer.extend(each for each in newest.values() if _is_newer(each, shown.get(each.source_id)))
        replaced = [shown[each.source_id] for each in newer if each.source_id in shown]
        numbered = [(numbers[each.source_id], each) for each in newer]
        work = partial(_show_instead, replaced=replaced, numbered=numbered)
        return Prepared(chain.from_iterable(postings[each.source_id] for each in newer), work) if newer else None

    for key in _change(index, newest, prepare) or ():
        remove_large(index, key)
    return {document.source_id for document in newer}


def _show_instead(
    connection: sqlite3.Connection, replaced: Sequence[sqlite3.Row], numbered: Sequence[tuple[int, PackedDocument]]
) -> list[int]:
    """Show the new documents instead of those that they replace. Returns the keys of replaced large ones."""
    for row in replaced:
        document_rows.hide(connection, row)
    large = [row["document_key"] for row in replaced if is_large(row["chunks"], row["pieces"])]
    document_rows.remove_small(
        connection, [row["document_key"] for row in replaced if row["document_key"] not in large]
    )
    document_rows.create_shown(connection, numbered)
    return large


def _put_large(index: TeamIndex, document: PackedDocument) -> set[str]:
    """Write a document in slices. Returns its source's id in a set, which is empty if the index had a later one."""
    database = index.database
    with index.writing:
        if not _is_newer(document, database.read(lambda connection: documents.find(connection, document.source_id))):
            return set()
        (number,) = index.take_numbers(1)
        key = database.write(lambda connection: document_rows.create(connection, document, number, is_hidden=True))
    for piece, text_zlib in enumerate(document.pieces):
        database.write(lambda connection: document_rows.add_pieces(connection, [(key, piece, text_zlib)]))  # noqa: B023 - run at once
    for ordinal, rows in document.slices():
        database.write(lambda connection: document_rows.add_chunks(connection, key, ordinal, rows))  # noqa: B023
    while True:
        uncommitted = index.uncommitted
        with index.writing:
            # Commits of other writes may have kept a part of what an earlier round has added.
            index.remove([number])
        for ordinal, rows in document.slices():
            postings = [*_wording_of(document, number).postings(ordinal, rows)]
            with index.writing:
                index.add(postings)
        with index.writing:
            if index.uncommitted != uncommitted:
                # Another write has failed, for example, and what was added is lost.
                continue
            shown = database.read(lambda connection: documents.find(connection, document.source_id))
            if is_newer := _is_newer(document, shown):
                with index.posting():
                    pass
                left = database.write(lambda connection: document_rows.show(connection, document.source_id, key))
            else:
                left = key
            index.clear_garbage()
            break
    if left is not None:
        remove_large(index, left)
    return {document.source_id} if is_newer else set()


def _prepare_rewording(index: TeamIndex, stored: sqlite3.Row, **changes: object) -> Prepared:
    """Change the document's buckets or names, in its row and, under a new number, in the postings."""
    (number,) = index.take_numbers(1)
    wording = index.database.read(
        lambda connection: documents.read_wording(connection, stored, posted_as=number, **changes)
    )
    postings = chain.from_iterable(wording.postings(*slice_) for slice_ in index.read_slices(stored))
    return Prepared(postings, lambda connection: document_rows.reword(connection, stored, wording))


def _wording_of(document: PackedDocument, number: int) -> Wording:
    return Wording(
        posted_as=number,
        title=document.title,
        names=document.names,
        language=document.language,
        bucket_ids=document.bucket_ids,
    )


def _is_newer(document: PackedDocument, shown: sqlite3.Row | None) -> bool:
    return shown is None or shown["generation"] < document.generation
