"""The model in use, as operations and workers know it. The embedding worker alone changes it."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ParamSpec, TypeVar

from svc_daemon.embed.contract import Embedder

P = ParamSpec("P")
T = TypeVar("T")

#: Calls of a model at the same time. A server that hangs must not take the threads that everything else runs on.
THREADS = 8


class EmbeddingState(StrEnum):
    """How it stands with the model."""

    #: None is chosen.
    OFF = "off"
    LOADING = "loading"
    READY = "ready"
    #: It is tried again and again; the message says what is wrong.
    FAILING = "failing"


def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, thread_name_prefix="embed")


@dataclass(slots=True)
class Embedding:
    """Another model may be chosen while the service runs: whoever needs one looks here, and once."""

    #: None where none is chosen, or none could be opened so far.
    embedder: Embedder | None = None
    state: EmbeddingState = EmbeddingState.OFF
    #: A sentence, where something is wrong.
    message: str | None = None
    threads: ThreadPoolExecutor = field(default_factory=_threads)

    async def run(self, call: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Have a model do something that takes long, on a thread of its own."""
        return await asyncio.get_running_loop().run_in_executor(self.threads, lambda: call(*arguments, **named))
