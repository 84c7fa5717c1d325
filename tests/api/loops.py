"""An event loop beside the test."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from tests.acceptance.installations import PATIENCE_S

T = TypeVar("T")


class Loop:
    """An event loop in a thread of its own, so that tests read from top to bottom."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="test-loop", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of the coroutine, or what it raises."""
        return self.begin(work).result(PATIENCE_S)

    def begin(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Start the coroutine; its result can be waited for."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def call(self, function: Callable[[], object]) -> None:
        """Run a plain function on the loop; returns when it has."""

        async def work() -> None:
            function()

        self.run(work())

    def close(self) -> None:
        self.run(self.loop.shutdown_default_executor())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(PATIENCE_S)
        self.loop.close()
