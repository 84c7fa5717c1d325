"""A provider whose calls can be held, so that a test can act in the middle of one."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from svc_daemon.provider.contract import HitPage, IndexDocument, SearchQuery
from svc_daemon.provider.embedded.provider import EmbeddedProvider
from tests.provider.failing import FailingProvider

#: Longer than anything of a test takes on a busy machine.
PATIENCE_S = 30.0


class Hold:
    """Calls of one provider method wait here until they are let go."""

    def __init__(self) -> None:
        self._entered = threading.Event()
        self._released = threading.Event()

    def wait_entered(self) -> None:
        """Return when a call has come in."""
        assert self._entered.wait(PATIENCE_S), "no call came in"

    def release(self) -> None:
        self._released.set()

    def pass_through(self) -> None:
        """The call's side: come in, and wait to be let go."""
        self._entered.set()
        assert self._released.wait(PATIENCE_S), "nobody let the call go"


class HeldProvider(FailingProvider):
    """A failing provider whose calls can also be held: writes before their effect, searches after it."""

    def __init__(self, provider: EmbeddedProvider) -> None:
        super().__init__(provider)
        self._holds: dict[str, Hold] = {}

    @contextmanager
    def held(self, method: str) -> Iterator[Hold]:
        """Hold every call of `put_document`, `set_buckets`, `set_title` or `search`; let go at the end of the block."""
        hold = self._holds[method] = Hold()
        try:
            yield hold
        finally:
            del self._holds[method]
            hold.release()

    def put_document(self, team_id: str, document: IndexDocument, bucket_ids: Sequence[str]) -> None:
        self._wait("put_document")
        super().put_document(team_id, document, bucket_ids)

    def set_buckets(self, team_id: str, source_id: str, generation: int, bucket_ids: Sequence[str]) -> None:
        self._wait("set_buckets")
        super().set_buckets(team_id, source_id, generation, bucket_ids)

    def set_title(self, team_id: str, source_id: str, title: str) -> None:
        self._wait("set_title")
        super().set_title(team_id, source_id, title)

    def search(self, team_id: str, query: SearchQuery) -> HitPage:
        page = super().search(team_id, query)
        self._wait("search")
        return page

    def _wait(self, method: str) -> None:
        if hold := self._holds.get(method):
            hold.pass_through()
