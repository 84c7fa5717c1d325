"""Which embedding model the daemon uses: a configured server, the installed model, or none."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from svc_daemon.embed.contract import Embedder, EmbedFailed, ModelProblem
from svc_daemon.embed.installed_models import ModelFolder
from svc_daemon.embed.local_embedders import LocalEmbedder
from svc_daemon.settings.servers import EmbedSettings


class OpenEmbedder(Embedder, Protocol):
    """An embedding model that is started before use and closed after it."""

    @property
    def is_stale(self) -> bool:
        """Whether the model has changed, so that a new embedder is needed."""
        ...

    def start(self) -> None:
        """Load the model, which sets `model` and `dimension`. Raises EmbedFailed."""

    def close(self) -> None:
        """Release the model. Running calls fail. Don't call it on the event loop's thread."""


class Choice(Protocol):
    """Selects the embedding model. The selection may change at any time."""

    def make(self, loop: asyncio.AbstractEventLoop) -> OpenEmbedder | None:
        """Create an embedder, without starting it; None if no model is chosen. Raises EmbedFailed."""
        ...

    def stamp(self) -> object:
        """Return a value that changes whenever another model is selected."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorsChoice:
    """Selects the embedding server if the settings name a server, otherwise the installed model."""

    folder: ModelFolder
    #: Where an installed model's process writes its errors.
    error_log: Path
    #: The embedding server; None means the installed model.
    server: EmbedSettings | None = None
    #: Time limit of a server call with all retries, in seconds.
    timeout_s: float = 60
    #: Texts to embed at once with the installed model; 0 means one per core.
    threads: int = 0
    monotonic: Callable[[], float] = time.monotonic

    def make(self, loop: asyncio.AbstractEventLoop) -> OpenEmbedder | None:
        if self.server is not None:
            # Imported only if needed, because httpx takes long to load.
            from svc_daemon.embed.server_embedders import ServerEmbedder  # noqa: PLC0415

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
