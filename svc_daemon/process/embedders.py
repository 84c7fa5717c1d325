"""The embedding model in use, whether it can be used, and how long it takes lately."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import ParamSpec, TypeVar

from svc_daemon.embed.contract import Embedder

P = ParamSpec("P")
T = TypeVar("T")

#: How much of the average time of a chunk is that of the latest batch.
NEWEST_PART = 0.2

#: Number of threads reserved for calls of models.
THREADS = 8


class EmbeddingState(StrEnum):
    """Whether the embedding model can be used."""

    #: No model is configured.
    OFF = "off"
    LOADING = "loading"
    READY = "ready"
    #: The model fails and is retried; `EmbedderInUse.message` has the reason.
    FAILING = "failing"


@dataclass(slots=True)
class EmbedderInUse:
    """The current embedding model. The model may change at any time, so read `embedder` only once per use."""

    #: None if no model is configured or loaded.
    embedder: Embedder | None = None
    state: EmbeddingState = EmbeddingState.OFF
    #: A sentence that says what is wrong with the model; None if nothing is wrong.
    message: str | None = None
    #: Seconds that a chunk took lately, from the list of chunks to the stored vector; None before the first batch.
    chunk_s: float | None = None
    threads: ThreadPoolExecutor = field(
        default_factory=partial(ThreadPoolExecutor, THREADS, thread_name_prefix="embed")
    )

    def note_batch(self, chunks: int, took_s: float) -> None:
        """Take a batch into the average time of a chunk. The latest batches count most."""
        latest_s = took_s / chunks
        self.chunk_s = latest_s if self.chunk_s is None else self.chunk_s + (latest_s - self.chunk_s) * NEWEST_PART

    async def run(self, call: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Run a long call of a model on a thread reserved for such calls."""
        return await asyncio.get_running_loop().run_in_executor(self.threads, lambda: call(*arguments, **named))
