"""An event loop with a clock of its own: time passes only when nothing is left to do, chance picks the next step."""

import asyncio
import heapq
import random
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

#: The node that a step belongs to; None is the world outside of all nodes.
NODE: ContextVar[object | None] = ContextVar("NODE", default=None)


class SimulatedLoop(asyncio.BaseEventLoop):
    """Runs the steps of each node in order, but those of different nodes in random turns."""

    def __init__(self, draw: random.Random, longest_work_s: float = 0.05) -> None:
        super().__init__()
        self._draw = draw
        self._longest_work_s = longest_work_s
        self._passed_s = 0.0
        self._clock_resolution = 1e-6
        #: Until when the steps of these nodes wait.
        self.frozen: dict[object, float] = {}
        self.set_exception_handler(lambda *_: None)

    def time(self) -> float:
        return self._passed_s

    def run_in_executor(self, _executor: object, func: Callable[..., Any], *args: Any) -> "asyncio.Future[Any]":  # type: ignore[override]
        """Run a thread's work at once, at some later time."""
        future = self.create_future()

        def work() -> None:
            if future.cancelled():
                return
            try:
                future.set_result(func(*args))
            except Exception as error:  # passed on to whoever waits
                future.set_exception(error)

        self.call_later(self._draw.random() * self._longest_work_s, work)
        return future

    def _write_to_self(self) -> None:
        """Nothing waits outside of this loop."""

    def _run_once(self) -> None:
        scheduled: list[Any] = self._scheduled  # type: ignore[attr-defined]
        ready: Any = self._ready  # type: ignore[attr-defined]
        while scheduled and (scheduled[0]._when <= self._passed_s or scheduled[0]._cancelled):
            timer = heapq.heappop(scheduled)
            timer._scheduled = False
            if not timer._cancelled:
                ready.append(timer)
        first: dict[object, int] = {}
        for index, handle in enumerate(ready):
            node = handle._context.get(NODE)
            if self.frozen.get(node, 0.0) <= self._passed_s:
                first.setdefault(node, index)
        if first:
            index = self._draw.choice(list(first.values()))
            handle = ready[index]
            del ready[index]
            if not handle._cancelled:
                handle._run()
            return
        moments = [until for until in self.frozen.values() if until > self._passed_s]
        moments += [scheduled[0]._when] if scheduled else []
        if not moments:
            raise RuntimeError("nothing will ever happen again")
        self._passed_s = min(moments)
