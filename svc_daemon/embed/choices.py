"""Which model the operator chose: a server in the settings, or the installed model, or none."""

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
    """An Embedder that is started and closed."""

    @property
    def is_stale(self) -> bool:
        """Whether it runs another model by now, and has to be opened again."""
        ...

    def start(self) -> None:
        """Load the model; before that, `model` and `dimension` may not be known. Raises EmbedFailed."""

    def close(self) -> None:
        """Release it; calls in progress fail. Not on the loop's own thread."""


class Choice(Protocol):
    """Which model to use; it may change at any time."""

    def make(self, loop: asyncio.AbstractEventLoop) -> OpenEmbedder | None:
        """The chosen model, to be started; None where none is chosen. Raises EmbedFailed."""
        ...

    def stamp(self) -> object:
        """Equal to an earlier stamp as long as the same model is chosen."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorsChoice:
    """A Choice by the settings and by what is installed."""

    folder: ModelFolder
    #: Errors of the process that runs an installed model.
    error_log: Path
    #: None where the installed model is to be used.
    server: EmbedSettings | None = None
    #: Whole time of a call to it.
    timeout_s: float = 60
    #: Texts that are embedded at the same time here; 0 is one for each core.
    threads: int = 0
    monotonic: Callable[[], float] = time.monotonic

    def make(self, loop: asyncio.AbstractEventLoop) -> OpenEmbedder | None:
        if self.server is not None:
            # It imports httpx, which takes longer than the whole start of the daemon.
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
        return LocalEmbedder(
            self.folder, model, threads=self.threads, error_log=self.error_log, monotonic=self.monotonic
        )

    def stamp(self) -> int | None:
        return None if self.server is not None else self.folder.stamp()
