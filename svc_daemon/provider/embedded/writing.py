"""Stores, changes and removes documents.

- Small documents are written in batches. One transaction per batch takes a fifth of the time that a transaction per
  document would take.
- Large documents are written in slices with a transaction each, so that other writes can run in between. Searches see
  the document only after the last slice. It then replaces the earlier document, which is removed.
- To change a document's buckets or title, a copy of the document, with its vectors, replaces the original.
- After a crash, hidden documents are removed when the file is next opened.
"""

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from svc_daemon.databases.sqlite import SqliteDatabase
from svc_daemon.provider.embedded import document_rows, documents, embeddings
from svc_daemon.provider.embedded.document_rows import MayReplace
from svc_daemon.provider.embedded.packing import PackedDocument, cut_batches, is_large
from svc_daemon.provider.errors import ProviderFailed
from svc_daemon.provider.ranked_chunks import distinct

P = ParamSpec("P")
T = TypeVar("T")


class Run(Protocol):
    """Runs a step in a transaction and returns its result."""

    def __call__(
        self, step: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T: ...


def put(database: SqliteDatabase, packed: Sequence[PackedDocument]) -> set[str]:
    """Store each document, unless the index already has its generation or a later one.

    Returns the ids of sources for which nothing was stored.
    """
    run, stored = _each_in(database), set[str]()
    for batch in cut_batches(packed):
        if batch[0].is_large:
            is_newer = partial(_is_newer, batch[0])
            if is_newer(run(documents.find, batch[0].source_id)) and _replace(run, batch[0], is_newer):
                stored.add(batch[0].source_id)
            continue
        newer, large = run(_put_batch, batch)
        stored |= newer
        for key in large:
            _remove(run, key)
    return {document.source_id for document in packed} - stored


def set_buckets(database: SqliteDatabase, source_id: str, generation: int, bucket_ids: Sequence[str]) -> None:
    """Set the document's buckets; do nothing if it already has these buckets. Raises DocumentMissing."""
    wanted = distinct(bucket_ids)

    def work(run: Run) -> None:
        shown = run(documents.get, source_id, generation)
        _replace_by_copy(run, shown, replace(run(documents.read_packed, shown), bucket_ids=wanted))

    stored = database.read(
        lambda connection: documents.list_buckets(
            connection, documents.get(connection, source_id, generation)["document_key"]
        )
    )
    if stored != wanted:
        _transact(database, work, in_slices=_is_large(database, source_id))


def set_title(database: SqliteDatabase, source_id: str, title: str) -> None:
    """Set the title, encoded by `storable`; do nothing if it is the same already. Raises DocumentMissing."""

    def work(run: Run) -> None:
        shown = run(documents.get, source_id)
        _replace_by_copy(run, shown, replace(run(documents.read_packed, shown), title=title))

    if database.read(lambda connection: documents.get(connection, source_id)["title"] != title):
        _transact(database, work, in_slices=_is_large(database, source_id))


def delete(database: SqliteDatabase, source_id: str) -> None:
    """Remove the source's document, if there is one."""

    def work(run: Run) -> None:
        key = run(lambda connection: document_rows.hide(connection, documents.find(connection, source_id)))
        if key is not None:
            _remove(run, key)

    if database.read(lambda connection: documents.find(connection, source_id)) is not None:
        _transact(database, work, in_slices=_is_large(database, source_id))


def remove_left_overs(database: SqliteDatabase) -> None:
    """Remove documents that an earlier process has not finished writing or removing. Call this before any write."""
    for key in database.read(document_rows.list_hidden):
        _remove(_each_in(database), key)


def _put_batch(connection: sqlite3.Connection, batch: Sequence[PackedDocument]) -> tuple[set[str], list[int]]:
    """Write a batch of small documents in the open transaction.

    Returns the ids of the stored sources, and the keys of replaced large documents, which the caller must remove.
    """
    newest: dict[str, PackedDocument] = {}
    for document in batch:
        if document.source_id not in newest or newest[document.source_id].generation < document.generation:
            newest[document.source_id] = document
    shown = documents.find_all(connection, list(newest))
    newer = [document for source_id, document in newest.items() if _is_newer(document, shown.get(source_id))]
    if not newer:
        return set(), []
    replaced = [shown[document.source_id] for document in newer if document.source_id in shown]
    for row in replaced:
        document_rows.hide(connection, row)
    document_rows.create_shown(connection, newer)
    large = [row["document_key"] for row in replaced if is_large(row["chunks"], row["pieces"])]
    document_rows.remove_small(
        connection, [row["document_key"] for row in replaced if row["document_key"] not in large]
    )
    return {document.source_id for document in newer}, large


def _is_newer(document: PackedDocument, shown: sqlite3.Row | None) -> bool:
    return shown is None or shown["generation"] < document.generation


def _transact(database: SqliteDatabase, work: Callable[[Run], None], *, in_slices: bool) -> None:
    if in_slices:
        work(_each_in(database))
    else:
        database.write(lambda connection: work(_all_on(connection)))


def _each_in(database: SqliteDatabase) -> Run:
    """Return a function that runs each step in a transaction of its own."""

    def run(step: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return database.write(lambda connection: step(connection, *args, **kwargs))

    return run


def _all_on(connection: sqlite3.Connection) -> Run:
    """Return a function that runs each step in this open transaction."""

    def run(step: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return step(connection, *args, **kwargs)

    return run


def _is_large(database: SqliteDatabase, source_id: str) -> bool:
    shown = database.read(lambda connection: documents.find(connection, source_id))
    return shown is not None and is_large(shown["chunks"], shown["pieces"])


def _replace_by_copy(run: Run, original: sqlite3.Row, copy: PackedDocument) -> None:
    """Replace the original by its copy. Raises ProviderFailed if the original is no longer visible."""
    key = original["document_key"]
    if not _replace(run, copy, lambda shown: shown is not None and shown["document_key"] == key, origin_key=key):
        raise ProviderFailed(f"{copy.source_id} was changed by another call at the same time.", retryable=True)


def _replace(
    run: Run,
    document: PackedDocument,
    may_replace: MayReplace,
    *,
    origin_key: int | None = None,
) -> bool:
    """Write the document, then show it in place of the visible one. Returns False if `may_replace` forbids that.

    If the document is a copy of the document with the key `origin_key`, the vectors of the original are copied too.
    """
    key = run(document_rows.create, document, is_hidden=True)
    for piece, text_zlib in enumerate(document.pieces):
        run(document_rows.add_pieces, [(key, piece, text_zlib)])
    for ordinal, rows in document.slices():
        run(document_rows.add_chunks, key, ordinal, rows)
        if origin_key is not None:
            run(embeddings.copy, origin_key, key, ordinal, len(rows))
    left = run(document_rows.show, document.source_id, key, may_replace, is_copy=origin_key is not None)
    if left is not None:
        _remove(run, left)
    return left != key


def _remove(run: Run, document_key: int) -> None:
    """Remove a hidden document. Its row is deleted last, so that after a crash, the next start removes the rest."""
    while run(document_rows.remove_last_chunks, document_key):
        pass
    while run(document_rows.remove_last_piece, document_key):
        pass
    run(document_rows.remove_row, document_key)
