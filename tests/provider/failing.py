"""A provider that fails when it is told to: what the tests of workers and operations run against."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from svc_daemon.provider.contract import (
    ChunkText,
    DocumentState,
    HitPage,
    IndexDocument,
    ListedDocument,
    SearchProvider,
    SearchQuery,
    StoredText,
    VectorCount,
)
from svc_daemon.provider.errors import ProviderError


@dataclass(slots=True)
class _Order:
    """A failure that is still to come."""

    error: ProviderError
    #: How many calls it is for.
    left: int
    #: Whether the call takes effect all the same, as when only the answer is lost.
    after_effect: bool


class FailingProvider:
    """Passes every call on to another provider, but for those it was told to fail."""

    def __init__(self, provider: SearchProvider) -> None:
        self._provider = provider
        self._lock = threading.Lock()
        self._orders: dict[str, _Order] = {}

    def fail(self, method: str, error: ProviderError, *, times: int = 1, after_effect: bool = False) -> None:
        """Let the next `times` calls of this method raise `error`, in place of their effect or after it."""
        if not hasattr(SearchProvider, method):
            raise ValueError(f"A provider has no method {method!r}.")
        with self._lock:
            self._orders[method] = _Order(error, times, after_effect)

    def put_document(self, team_id: str, document: IndexDocument, bucket_ids: Sequence[str]) -> None:
        with self._as_told("put_document"):
            self._provider.put_document(team_id, document, bucket_ids)

    def set_buckets(self, team_id: str, source_id: str, generation: int, bucket_ids: Sequence[str]) -> None:
        with self._as_told("set_buckets"):
            self._provider.set_buckets(team_id, source_id, generation, bucket_ids)

    def set_title(self, team_id: str, source_id: str, title: str) -> None:
        with self._as_told("set_title"):
            self._provider.set_title(team_id, source_id, title)

    def delete_document(self, team_id: str, source_id: str) -> None:
        with self._as_told("delete_document"):
            self._provider.delete_document(team_id, source_id)

    def get_document(self, team_id: str, source_id: str) -> DocumentState | None:
        with self._as_told("get_document"):
            return self._provider.get_document(team_id, source_id)

    def get_text(self, team_id: str, source_id: str) -> StoredText | None:
        with self._as_told("get_text"):
            return self._provider.get_text(team_id, source_id)

    def list_documents(self, team_id: str) -> Iterator[ListedDocument]:
        with self._as_told("list_documents"):
            yield from self._provider.list_documents(team_id)

    def list_teams(self) -> list[str]:
        with self._as_told("list_teams"):
            return self._provider.list_teams()

    def search(self, team_id: str, query: SearchQuery) -> HitPage:
        with self._as_told("search"):
            return self._provider.search(team_id, query)

    def warm_up(self, team_id: str, model: str, bucket_ids: Sequence[str]) -> None:
        with self._as_told("warm_up"):
            self._provider.warm_up(team_id, model, bucket_ids)

    def list_unembedded(self, team_id: str, model: str, limit: int) -> list[ChunkText]:
        with self._as_told("list_unembedded"):
            return self._provider.list_unembedded(team_id, model, limit)

    def put_vectors(self, team_id: str, model: str, vectors: Sequence[tuple[str, bytes]]) -> None:
        with self._as_told("put_vectors"):
            self._provider.put_vectors(team_id, model, vectors)

    def count_unembedded(self, team_id: str, model: str, bucket_ids: Sequence[str] | None = None) -> VectorCount:
        with self._as_told("count_unembedded"):
            return self._provider.count_unembedded(team_id, model, bucket_ids)

    def drop_vectors(self, team_id: str, keep_model: str | None) -> None:
        with self._as_told("drop_vectors"):
            self._provider.drop_vectors(team_id, keep_model)

    def delete_team(self, team_id: str) -> None:
        with self._as_told("delete_team"):
            self._provider.delete_team(team_id)

    def close(self) -> None:
        with self._as_told("close"):
            self._provider.close()

    def _take(self, method: str) -> _Order | None:
        with self._lock:
            order = self._orders.get(method)
            if order is None or order.left == 0:
                return None
            order.left -= 1
            return order

    @contextmanager
    def _as_told(self, method: str) -> Iterator[None]:
        """One call: fails on the way in or on the way out, as ordered."""
        order = self._take(method)
        if order is not None and not order.after_effect:
            raise order.error
        yield
        if order is not None:
            raise order.error
