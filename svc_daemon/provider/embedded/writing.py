"""Putting, changing and removing documents.

Theory of operation. A document goes through hidden, shown, hidden, gone. It is written hidden; one step then shows it
and hides the one whose place it takes, which is removed. A change of buckets or title is the same: a copy is written
and takes the original's place, since FTS5 has to write every posting again in any case. Vectors are copied along: a
model would take a hundred times as long, and a new title changes them little.

For a usual document all steps run in one transaction. A large one gets a transaction for each, a slice of its chunks
at a time, so that the log stays small and other writes get in between; it still shows in one step. What a crash or a
failure leaves hidden is removed when the file is opened again.
"""

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from svc_daemon.database import Database
from svc_daemon.provider.embedded import documents, embeddings, memberships, steps
from svc_daemon.provider.embedded.packing import PackedDocument, is_large
from svc_daemon.provider.embedded.steps import MayReplace
from svc_daemon.provider.errors import ProviderFailed

P = ParamSpec("P")
T = TypeVar("T")


class Run(Protocol):
    """Runs a step in a transaction and returns its result."""

    def __call__(
        self, step: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T: ...


def put(database: Database, document: PackedDocument, bucket_ids: Sequence[str]) -> None:
    """Store, index and show the document, unless this generation or a later one is shown."""

    def is_newer(shown: sqlite3.Row | None) -> bool:
        return shown is None or shown["generation"] < document.generation

    def work(run: Run) -> None:
        if is_newer(run(documents.find, document.source_id)):
            _replace(run, document, bucket_ids, is_newer)

    _transact(database, work, in_slices=document.is_large)


def set_buckets(database: Database, source_id: str, generation: int, bucket_ids: Sequence[str]) -> None:
    """Make the document's buckets exactly these; only reads where they already are. Raises DocumentMissing."""

    def work(run: Run) -> None:
        shown = run(documents.get, source_id, generation)
        _replace_by_copy(run, shown, run(documents.read_packed, shown), bucket_ids)

    stored = database.read(
        lambda connection: memberships.list_buckets(
            connection, documents.get(connection, source_id, generation)["document_key"]
        )
    )
    if stored != memberships.distinct(bucket_ids):
        _transact(database, work, in_slices=_is_large(database, source_id))


def set_title(database: Database, source_id: str, title: str) -> None:
    """Give the document this storable title; only reads where it already has it. Raises DocumentMissing."""

    def work(run: Run) -> None:
        shown = run(documents.get, source_id)
        copy = replace(run(documents.read_packed, shown), title=title)
        _replace_by_copy(run, shown, copy, run(memberships.list_buckets, shown["document_key"]))

    if database.read(lambda connection: documents.get(connection, source_id)["title"] != title):
        _transact(database, work, in_slices=_is_large(database, source_id))


def delete(database: Database, source_id: str) -> None:
    """Remove the document; only reads where it isn't there."""

    def work(run: Run) -> None:
        key = run(lambda connection: steps.hide(connection, documents.find(connection, source_id)))
        if key is not None:
            _remove(run, key)

    if database.read(lambda connection: documents.find(connection, source_id)) is not None:
        _transact(database, work, in_slices=_is_large(database, source_id))


def remove_left_overs(database: Database) -> None:
    """Remove what an earlier process left hidden. For a file that nothing else uses yet."""
    for key in database.read(steps.list_hidden):
        _remove(_each_in(database), key)


def _transact(database: Database, work: Callable[[Run], None], *, in_slices: bool) -> None:
    if in_slices:
        work(_each_in(database))
    else:
        database.write(lambda connection: work(_all_on(connection)))


def _each_in(database: Database) -> Run:
    """Every step in a transaction of its own."""

    def run(step: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return database.write(lambda connection: step(connection, *args, **kwargs))

    return run


def _all_on(connection: sqlite3.Connection) -> Run:
    """Every step in the transaction that is open on this connection."""

    def run(step: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return step(connection, *args, **kwargs)

    return run


def _is_large(database: Database, source_id: str) -> bool:
    shown = database.read(lambda connection: documents.find(connection, source_id))
    return shown is not None and is_large(shown["chunks"], shown["pieces"])


def _replace_by_copy(run: Run, original: sqlite3.Row, copy: PackedDocument, bucket_ids: Sequence[str]) -> None:
    """Show the copy in place of its original. Raises ProviderFailed where that is no longer shown."""
    key = original["document_key"]
    if not _replace(
        run, copy, bucket_ids, lambda shown: shown is not None and shown["document_key"] == key, origin_key=key
    ):
        raise ProviderFailed(f"{copy.source_id} was changed by another call at the same time.", retryable=True)


def _replace(
    run: Run,
    document: PackedDocument,
    bucket_ids: Sequence[str],
    may_replace: MayReplace,
    *,
    origin_key: int | None = None,
) -> bool:
    """Write the document and show it in place of the one shown. False where `may_replace` refuses that.

    A copy takes the vectors of the document with `origin_key` along.
    """
    key = run(steps.create_hidden, document, bucket_ids)
    for piece, text_zlib in enumerate(document.pieces):
        run(steps.add_piece, key, piece, text_zlib)
    for ordinal, rows in document.slices():
        run(steps.add_chunks, key, ordinal, rows)
        if origin_key is not None:
            run(embeddings.copy, origin_key, key, ordinal, len(rows))
    left = run(steps.show, document.source_id, key, may_replace, is_copy=origin_key is not None)
    if left is not None:
        _remove(run, left)
    return left != key


def _remove(run: Run, document_key: int) -> None:
    """Remove a hidden document, its row last: while that is there, the rest is found after a crash."""
    while run(steps.remove_last_chunks, document_key):
        pass
    while run(steps.remove_last_piece, document_key):
        pass
    run(steps.remove_row, document_key)
