"""The engines of a cluster: whether this node can use each, and why not. A data directory has none.

Each engine is checked every few seconds, on nodes of every role, so that an outage is seen without a task or request
that meets it. A change is logged once.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from svc_daemon.core.times import Clock, from_text
from svc_daemon.errors import StorageError
from svc_daemon.provider.errors import ProviderError
from svc_daemon.wire.services import EngineName

log = logging.getLogger(__name__)

#: Seconds between two checks of an engine, and of one that is known without a request.
CHECK_S, KNOWN_S = 5.0, 1.0
#: A check that takes longer than this shows that the engine hangs.
PATIENCE_S = 12.0
#: The engines by their names for programs.
TITLES: dict[EngineName, str] = {"postgresql": "PostgreSQL", "s3": "The S3 store", "milvus": "Milvus"}


@dataclass(frozen=True, slots=True)
class EngineState:
    """Whether this node can use an engine."""

    #: The engine's name for programs, a key of `TITLES`.
    name: EngineName
    #: Why the engine can't be used, as a sentence without addresses; None if it can be.
    message: str | None = None
    #: Since when it can't be used.
    since: str | None = None


class EngineStates:
    """Tracks the states of the engines. Use it only on the event loop."""

    def __init__(self) -> None:
        self._checks: dict[EngineName, tuple[Callable[[], object], float]] = {}
        #: The states by the engines' names, in the order of `TITLES`.
        self.now: dict[EngineName, EngineState] = {}

    def watch(self, checks: Mapping[EngineName, Callable[[], object]], clock: Clock, pause_s: float = CHECK_S) -> None:
        """Check these engines when `run` runs. A check may block, and raises StorageError or ProviderError."""
        self._clock = clock
        self._checks |= {name: (check, pause_s) for name, check in checks.items()}
        self.now = {name: self.now.get(name, EngineState(name)) for name in TITLES if name in self._checks}

    def explain(self) -> str | None:
        """Say what is wrong with the first engine that can't be used; None if all can be."""
        return next((state.message for state in self.now.values() if state.message), None)

    def explain_index(self) -> str | None:
        """Say what is wrong with the engine of the search index; None if it can be used, or is the data directory."""
        return state.message if (state := self.now.get("milvus")) else None

    async def run(self) -> None:
        """Check all engines, until cancelled."""
        await asyncio.gather(*(self._watch(name, check, pause_s) for name, (check, pause_s) in self._checks.items()))

    async def _watch(self, name: EngineName, check: Callable[[], object], pause_s: float) -> None:
        while True:
            checking = asyncio.create_task(asyncio.to_thread(check))
            ended, _ = await asyncio.wait([checking], timeout=PATIENCE_S)
            if not ended:
                self._note(name, f"{TITLES[name]} can't be used: it does not answer in time.")
                await asyncio.wait([checking])
            error = checking.exception()
            if error is not None and not isinstance(error, StorageError | ProviderError):
                log.error("the check of %s failed", TITLES[name], exc_info=error)
            else:
                message = error.message if isinstance(error, StorageError) else str(error)
                self._note(name, message if error is not None else None)
            await asyncio.sleep(pause_s)

    def _note(self, name: EngineName, message: str | None) -> None:
        known = self.now[name]
        if message == known.message:
            return
        since = known.since or self._clock.timestamp()
        if message is None:
            lasted_s = (self._clock.now() - from_text(since)).total_seconds()
            log.info("%s can be used again, after %.0f s", TITLES[name], lasted_s)
            self.now[name] = EngineState(name)
            return
        log.warning("%s", message)
        self.now[name] = EngineState(name, message, since)
