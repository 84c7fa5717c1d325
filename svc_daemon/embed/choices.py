"""The operator's choice of model: a server in the settings, the installed model, or none."""

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
    """An Embedder that must be started and closed."""

    @property
    def is_stale(self) -> bool:
        """Whether the model has changed, so that the embedder must be opened again."""
        ...

    def start(self) -> None:
        """Load the model. Until then, `model` and `dimension` may be unset. Raises EmbedFailed."""

    def close(self) -> None:
        """Release the model; calls in progress fail. Must not be called on the event loop's thread."""


class Choice(Protocol):
    """Which model to use; it may change at any time."""

    def make(self, loop: asyncio.AbstractEventLoop) -> OpenEmbedder | None:
        """Create the chosen model's embedder, not yet started; None if no model is chosen. Raises EmbedFailed."""
        ...

    def stamp(self) -> object:
        """Return a value that changes when another model is chosen."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorsChoice:
    """A Choice based on the settings and the installed model."""

    folder: ModelFolder
    #: File for the standard error of the process that runs an installed model.
    error_log: Path
    #: The embedding server to use; None means the installed model.
    server: EmbedSettings | None = None
    #: Time limit of a call to the server, including retries.
    timeout_s: float = 60
    #: Number of texts that the installed model embeds concurrently; 0 means one per core.
    threads: int = 0
    monotonic: Callable[[], float] = time.monotonic

    def make(self, loop: asyncio.AbstractEventLoop) -> OpenEmbedder | None:
        if self.server is not None:
            # Import this only if needed: loading httpx takes longer than the rest of the daemon's start.
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
