"""Which model the operator chose: a server that was named, else the one that is installed, else none."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from svc_daemon.embed.contract import Embedder, EmbedFailed
from svc_daemon.embed.failures import ModelProblem
from svc_daemon.embed.models import ModelFolder
from svc_daemon.embed.processes import LocalEmbedder
from svc_daemon.settings import EmbedSettings


class OpenEmbedder(Embedder, Protocol):
    """One that has to be started, and holds something."""

    @property
    def is_stale(self) -> bool:
        """Whether it is another model by now, and has to be opened anew."""
        ...

    def start(self) -> None:
        """Have the model ready; before that, `model` and `dimension` may not be known. Raises EmbedFailed."""

    def close(self) -> None:
        """Let go of it; what is under way fails. Not on the loop's own thread."""


class Choice(Protocol):
    """What to open; it may change at any time."""

    def make(self, loop: asyncio.AbstractEventLoop) -> OpenEmbedder | None:
        """The chosen model, to be started; None where none is chosen. Raises EmbedFailed."""
        ...

    def stamp(self) -> object:
        """Equal to an earlier one as long as the same is chosen."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorsChoice:
    """A Choice: by settings and by what is installed."""

    folder: ModelFolder
    #: Where the process that runs an installed model complains.
    words: Path
    #: None where the installed model is to be used.
    server: EmbedSettings | None = None
    #: Whole time of a call to it.
    timeout_s: float = 60
    #: Texts that are embedded at the same time here; 0 is one for each core.
    threads: int = 0
    monotonic: Callable[[], float] = time.monotonic

    def make(self, loop: asyncio.AbstractEventLoop) -> OpenEmbedder | None:
        if self.server is not None:
            # It brings httpx along, which takes longer to import than the whole daemon to start.
            from svc_daemon.embed.servers import ServerEmbedder  # noqa: PLC0415

            return ServerEmbedder(
                self.server, self.folder.server, loop, timeout_s=self.timeout_s, monotonic=self.monotonic
            )
        try:
            model = self.folder.find()
        except ModelProblem as problem:
            raise EmbedFailed(f"{problem.message} {problem.hint}") from problem
        if model is None:
            return None
        return LocalEmbedder(self.folder, model, threads=self.threads, words=self.words, monotonic=self.monotonic)

    def stamp(self) -> int | None:
        return None if self.server is not None else self.folder.stamp()
