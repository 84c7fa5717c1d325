"""The Milvus provider: stores and searches documents in collections that all teams share."""

from collections.abc import Callable, Iterator, Sequence

from svc_daemon.cluster.milvus import chunks, editions, embeddings, writing
from svc_daemon.cluster.milvus.chunks import TeamCountsCache
from svc_daemon.cluster.milvus.searching import MilvusSearch
from svc_daemon.cluster.milvus.server import MilvusServer
from svc_daemon.cluster.milvus.writing import Stamps
from svc_daemon.provider import contract
from svc_daemon.provider.ranked_chunks import distinct, storable


class MilvusProvider:
    """A search provider with a Milvus server, which other nodes may use too."""

    def __init__(self, server: MilvusServer, *, now_ns: Callable[[], int], random_bits: Callable[[], int]) -> None:
        """`now_ns` returns the time in nanoseconds since 1970, and `random_bits` 32 random bits."""
        self._server = server
        self._stamps = Stamps(now_ns, random_bits)
        self._counts = TeamCountsCache()

    def put_documents(self, team_id: str, documents: Sequence[contract.IndexDocument]) -> set[str]:
        if not documents:
            return set()
        skipped = writing.put(self._server, self._stamps, team_id, documents)
        self._counts.forget(team_id)
        return skipped

    def set_buckets(self, team_id: str, source_id: str, generation: int, bucket_ids: Sequence[str]) -> None:
        writing.set_buckets(self._server, self._stamps, team_id, source_id, generation, distinct(bucket_ids))

    def set_title(self, team_id: str, source_id: str, title: str, tags: Sequence[str] | None = None) -> None:  # noqa: ARG002 - it knows documents by their titles alone
        writing.set_title(self._server, self._stamps, team_id, source_id, storable(title))
        self._counts.forget(team_id)

    def delete_document(self, team_id: str, source_id: str) -> None:
        writing.delete(self._server, self._stamps, team_id, source_id)
        self._counts.forget(team_id)

    def get_document(self, team_id: str, source_id: str) -> contract.DocumentState | None:
        shown = editions.find_shown(self._server, team_id, [source_id]).get(source_id)
        if shown is None:
            return None
        return contract.DocumentState(
            state=contract.STATE_ACTIVE,
            document_id=contract.document_id(source_id, shown.generation),
            generation=shown.generation,
            chunks=shown.chunks,
            bucket_ids=shown.bucket_ids,
        )

    def get_text(self, team_id: str, source_id: str) -> contract.StoredText | None:
        return chunks.find_text(self._server, team_id, source_id)

    def list_documents(self, team_id: str) -> Iterator[contract.ListedDocument]:
        return editions.list_shown(self._server, team_id)

    def search(self, team_id: str, query: contract.SearchQuery) -> contract.HitPage:
        counts = self._counts.of_team(team_id)
        now_ms = self._stamps.now_ms
        return MilvusSearch(server=self._server, team_id=team_id, query=query, counts=counts, now_ms=now_ms).run()

    def warm_up(self, team_id: str, model: str, bucket_ids: Sequence[str]) -> None:
        """Does nothing: Milvus keeps loaded collections in its own memory."""

    def list_unembedded(self, team_id: str, model: str, limit: int) -> list[contract.ChunkText]:
        return embeddings.list_missing(self._server, team_id, model, limit)

    def put_vectors(self, team_id: str, model: str, vectors: Sequence[tuple[str, bytes]]) -> None:
        if vectors:
            embeddings.put(self._server, team_id, model, vectors)

    def get_vectors(self, team_id: str, source_id: str, model: str) -> dict[str, bytes]:
        return embeddings.find_vectors(self._server, team_id, source_id, model)

    def count_unembedded(
        self, team_id: str, model: str, bucket_ids: Sequence[str] | None = None
    ) -> contract.VectorCount:
        return embeddings.count_missing(self._server, team_id, model, bucket_ids)

    def drop_vectors(self, team_id: str, keep_model: str | None) -> None:
        embeddings.drop(self._server, team_id, keep_model)

    def purge(self, team_id: str) -> bool:  # noqa: ARG002 - Milvus does this by itself, when it compacts its segments
        return False

    def find_building(self, team_id: str) -> None:
        """Words are never indexed again without their documents."""

    def list_teams(self) -> list[str]:
        return editions.list_teams(self._server)

    def delete_team(self, team_id: str) -> None:
        editions.remove_team(self._server, team_id)
        self._counts.forget(team_id)

    def check_reachable(self) -> None:
        self._server.check_reachable()

    def close(self) -> None:
        self._server.close()
