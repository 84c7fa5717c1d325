"""A choice of models for tests: the one on the shelf is what the operator has chosen."""

import asyncio
import threading
from collections.abc import Callable, Sequence

from svc_daemon.embed.contract import EmbedFailed
from svc_daemon.workers.embedding import EmbeddingWorker
from tests.acceptance.installations import PATIENCE_S
from tests.api.daemons import Daemon
from tests.api.embedders import WordEmbedder


def start_embedding(daemon: Daemon, shelf: "Shelf") -> None:
    """Have the model on the shelf make vectors."""
    daemon.run_worker(lambda: EmbeddingWorker(daemon.context, shelf))


class ShelfModel(WordEmbedder):
    """A model that knows three things, can be opened and closed, and has a name of its own."""

    def __init__(self, model: str = "words@1") -> None:
        super().__init__()
        self.model = model
        self.is_stale = False
        #: Sizes of the batches that it was asked to embed.
        self.batches: list[int] = []
        self.starts = 0
        self.is_closed = False
        self.start_failure: EmbedFailed | None = None
        #: Called with each batch first; may raise EmbedFailed.
        self.on_batch: Callable[[Sequence[str]], object] = lambda _: None
        #: Batches wait here.
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
    """A Choice."""

    def __init__(self) -> None:
        #: What is on the shelf at first.
        self.first = ShelfModel()
        self.model: ShelfModel | None = self.first
        #: Made in place of the one that was chosen, whose stamp stays.
        self.next: ShelfModel | None = None
        self.failure: EmbedFailed | None = None

    def make(self, loop: asyncio.AbstractEventLoop) -> ShelfModel | None:
        assert loop.is_running()
        if self.failure is not None:
            raise self.failure
        return self.next or self.model

    def stamp(self) -> object:
        return id(self.model)
