"""The embedded provider: stores and searches documents in SQLite files, one for each team."""

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from svc_daemon.provider import contract
from svc_daemon.provider.embedded import document_rows, documents, embeddings, writing
from svc_daemon.provider.embedded.files import IndexFiles
from svc_daemon.provider.embedded.indexes import TeamIndex
from svc_daemon.provider.embedded.packing import pack
from svc_daemon.provider.embedded.searching import Overtaken, search
from svc_daemon.provider.embedded.semantics import SignsCache, warm_up
from svc_daemon.provider.errors import DocumentMissing, ProviderError, SearchTimeout
from svc_daemon.provider.ranked_chunks import storable

T = TypeVar("T")

#: Number of documents that are listed in one transaction.
LIST_PAGE = 500
#: A search's deadline is checked after this many instructions of SQLite's virtual machine, about every millisecond.
STEPS_PER_LOOK = 10_000
#: Default size in bytes of the cache of vector signs, enough for about two million vectors.
SIGNS_BYTES = 128 * 1024**2


class EmbeddedProvider:
    """A search provider with SQLite files in one folder, which no other process may use."""

    def __init__(
        self,
        folder: Path,
        *,
        clock: Callable[[], float] = time.monotonic,
        on_broken: Callable[[ProviderError], None] = lambda _: None,
        on_damaged: Callable[[str], None] = lambda _: None,
        on_building: Callable[[str], None] = lambda _: None,
        signs_bytes: int = SIGNS_BYTES,
    ) -> None:
        """Open the indexes in `folder`. `clock` returns monotonic seconds.

        `on_broken` is called if a write to an index fails. That index then refuses writes until a restart.

        `on_damaged` is called once for each damaged index, on any thread, with its team's id, and `on_building` when
        the words of its documents begin to be indexed again. `signs_bytes` limits the cache for semantic searches.
        """
        self._files = IndexFiles(folder, on_broken=on_broken, on_damaged=on_damaged, on_building=on_building)
        self._clock = clock
        self._signs = SignsCache(signs_bytes)

    def put_documents(self, team_id: str, documents: Sequence[contract.IndexDocument]) -> set[str]:
        packed = [pack(document) for document in documents]
        if not packed:
            return set()
        index = self._files.get(team_id)
        with self._files.translated(team_id):
            return writing.put(index, packed)

    def set_buckets(self, team_id: str, source_id: str, generation: int, bucket_ids: Sequence[str]) -> None:
        index = self._index_of(team_id, source_id)
        with self._files.translated(team_id):
            writing.set_buckets(index, source_id, generation, bucket_ids)

    def set_title(self, team_id: str, source_id: str, title: str, tags: Sequence[str] | None = None) -> None:
        index = self._index_of(team_id, source_id)
        with self._files.translated(team_id):
            writing.set_title(index, source_id, storable(title), tags)

    def delete_document(self, team_id: str, source_id: str) -> None:
        index = self._files.find(team_id)
        if index is None:
            return
        with self._files.translated(team_id):
            writing.delete(index, source_id)

    def get_document(self, team_id: str, source_id: str) -> contract.DocumentState | None:
        return self._read(team_id, lambda connection: documents.find_state(connection, source_id), None)

    def get_text(self, team_id: str, source_id: str) -> contract.StoredText | None:
        return self._read(team_id, lambda connection: documents.find_text(connection, source_id), None)

    def list_documents(self, team_id: str) -> Iterator[contract.ListedDocument]:
        index = self._files.find(team_id)
        page = self._list_page(index, "") if index is not None else []
        while index is not None and page:
            yield from page
            page = self._list_page(index, page[-1].source_id)

    def search(self, team_id: str, query: contract.SearchQuery) -> contract.HitPage:
        index = self._files.find(team_id)
        if index is None:
            return contract.HitPage()

        def work(connection: sqlite3.Connection) -> contract.HitPage:
            with self._interrupted_at(connection, query.deadline_s):
                return search(connection, index, self._signs, query, lambda: self._check(query.deadline_s))

        with self._files.translated(team_id):
            while True:
                try:
                    return index.database.read(work)
                except Overtaken:
                    self._check(query.deadline_s)

    def warm_up(self, team_id: str, model: str, bucket_ids: Sequence[str]) -> None:
        index = self._files.find(team_id)
        if index is None:
            return
        with self._files.translated(team_id):
            for bucket_id in bucket_ids:
                # One transaction per bucket, so that none is open for long.
                index.database.read(lambda connection: warm_up(connection, index, self._signs, model, bucket_id))  # noqa: B023 - run at once

    def list_unembedded(self, team_id: str, model: str, limit: int) -> list[contract.ChunkText]:
        return self._read(team_id, lambda connection: embeddings.list_missing(connection, model, limit), [])

    def put_vectors(self, team_id: str, model: str, vectors: Sequence[tuple[str, bytes]]) -> None:
        index = self._files.find(team_id)
        if index is None or not vectors:
            return
        with self._files.translated(team_id):
            signed = embeddings.sign(vectors)
            index.database.write(lambda connection: embeddings.put(connection, model, signed))

    def get_vectors(self, team_id: str, source_id: str, model: str) -> dict[str, bytes]:
        return self._read(team_id, lambda connection: embeddings.find_vectors(connection, source_id, model), {})

    def count_unembedded(
        self, team_id: str, model: str, bucket_ids: Sequence[str] | None = None
    ) -> contract.VectorCount:
        return self._read(
            team_id,
            lambda connection: embeddings.count_missing(connection, model, bucket_ids),
            contract.VectorCount(0, 0),
        )

    def drop_vectors(self, team_id: str, keep_model: str | None) -> None:
        index = self._files.find(team_id)
        if index is None:
            return
        with self._files.translated(team_id):
            embeddings.drop(index.database, keep_model)

    def purge(self, team_id: str) -> bool:
        index = self._files.find(team_id)
        if index is None:
            return False
        with self._files.translated(team_id):
            index.clear_garbage(more_than=0)
            if not index.database.read(document_rows.is_purge_due):
                return False
            index.database.write(document_rows.purge)
            index.build()
            index.database.empty_log()
        return True

    def find_building(self, team_id: str) -> contract.Building | None:
        index = self._files.find(team_id)
        return None if index is None else index.building()

    def list_teams(self) -> list[str]:
        return self._files.list_teams()

    def delete_team(self, team_id: str) -> None:
        self._files.delete(team_id)
        self._signs.forget(team_id)

    def check_reachable(self) -> None:
        """Does nothing: local files are always reachable."""

    def close(self) -> None:
        self._files.close()

    def _index_of(self, team_id: str, source_id: str) -> TeamIndex:
        index = self._files.find(team_id)
        if index is None:
            raise DocumentMissing(source_id)
        return index

    def _read(self, team_id: str, work: Callable[[sqlite3.Connection], T], missing: T) -> T:
        """Run `work` in one snapshot of the team's index; return `missing` if the team has none."""
        index = self._files.find(team_id)
        if index is None:
            return missing
        with self._files.translated(team_id):
            return index.database.read(work)

    def _list_page(self, index: TeamIndex, source_id: str) -> list[contract.ListedDocument]:
        with self._files.translated(index.team_id):
            return index.database.read(lambda connection: documents.list_after(connection, source_id, LIST_PAGE))

    @contextmanager
    def _interrupted_at(self, connection: sqlite3.Connection, deadline_s: float | None) -> Iterator[None]:
        """Within the block, interrupt the connection's statements at the deadline."""
        if deadline_s is None:
            yield
            return
        self._check(deadline_s)
        connection.set_progress_handler(lambda: self._clock() >= deadline_s, STEPS_PER_LOOK)
        try:
            yield
        finally:
            connection.set_progress_handler(None, STEPS_PER_LOOK)

    def _check(self, deadline_s: float | None) -> None:
        if deadline_s is not None and self._clock() >= deadline_s:
            raise SearchTimeout
