"""A configurable choice of embedding models for tests: the model on the shelf is the one that the operator chose."""

import asyncio
import threading
from collections.abc import Callable, Sequence

from svc_daemon.embed.contract import EmbedFailed
from svc_daemon.workers.embedding import EmbeddingWorker
from tests.acceptance.installations import PATIENCE_S
from tests.api.daemons import Daemon
from tests.api.embedders import WordEmbedder


def start_embedding(daemon: Daemon, shelf: "Shelf") -> None:
    """Start an embedding worker that uses the model on the shelf."""
    daemon.run_worker(lambda: EmbeddingWorker(daemon.context, shelf))


class ShelfModel(WordEmbedder):
    """A word-based model with a configurable name and failures, which can be started and closed."""

    def __init__(self, model: str = "words@1") -> None:
        super().__init__()
        self.model = model
        self.is_stale = False
        #: The sizes of the batches that the model was asked to embed.
        self.batches: list[int] = []
        self.starts = 0
        self.is_closed = False
        self.start_failure: EmbedFailed | None = None
        #: Called with each batch before it is embedded; may raise EmbedFailed.
        self.on_batch: Callable[[Sequence[str]], object] = lambda _: None
        #: Batches wait until this is set.
        self.gate = threading.Event()
        self.gate.set()

    def start(self) -> None:
        self.starts += 1
        self.is_closed = False
        if self.start_failure is not None:
            raise self.start_failure

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        self.batches.append(len(texts))
        self.on_batch(texts)
        assert self.gate.wait(PATIENCE_S), "nobody opened the gate"
        if self.is_closed:
            raise EmbedFailed("closed")
        return super().embed(texts)

    def close(self) -> None:
        self.is_closed = True
        self.gate.set()


class Shelf:
    """An implementation of `Choice`."""

    def __init__(self) -> None:
        #: The model that is on the shelf at first.
        self.first = ShelfModel()
        self.model: ShelfModel | None = self.first
        #: If set, `make` returns this model instead of the chosen one, and `stamp` doesn't change.
        self.next: ShelfModel | None = None
        self.failure: EmbedFailed | None = None

    def make(self, loop: asyncio.AbstractEventLoop) -> ShelfModel | None:
        assert loop.is_running()
        if self.failure is not None:
            raise self.failure
        return self.next or self.model

    def stamp(self) -> object:
        return id(self.model)
