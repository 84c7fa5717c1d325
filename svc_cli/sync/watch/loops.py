"""Runs all watchers of a process, one after the other in one thread."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from queue import Empty, SimpleQueue

from svc_cli.console import OutputLost
from svc_cli.errors import UNFORESEEN
from svc_cli.sync.watch.settling import Naps
from svc_cli.sync.watch.watchers import Watcher

#: Maximum seconds until folders, requests for a full sync, and clocks are checked again.
PULSE_S = 1.0


def run(
    watchers: Sequence[Watcher], bell: SimpleQueue[None], has_ended: Callable[[], bool], report: Callable[[], None]
) -> None:
    """Watch until `has_ended` returns true. Raises SyncRunning if another process watches one of the mappings.

    `report` is called after each round.
    """
    naps = Naps()
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    with ExitStack() as held:
        for watcher in watchers:
            held.enter_context(watcher.record.hold(str(watcher.mapping.folder)))
            held.callback(watcher.close)
        while not has_ended():
            # Unlike the monotonic clock, this clock also runs during system sleep.
            all_s = time.time() if boot is None else time.clock_gettime(boot)
            has_slept = naps.has_slept(time.monotonic(), all_s)
            for watcher in watchers:
                try:
                    watcher.look_after(time.monotonic(), has_slept=has_slept)
                except (BrokenPipeError, OutputLost):
                    raise
                except UNFORESEEN as error:  # the other folders are watched on
                    watcher.stumble(error)
            report()
            _rest(watchers, bell)


def _rest(watchers: Sequence[Watcher], bell: SimpleQueue[None]) -> None:
    """Wait until a watcher has something to do, an observer reports an event, or PULSE_S has passed."""
    due_s = min((watcher.due_s() for watcher in watchers), default=float("inf"))
    with suppress(Empty):
        bell.get(timeout=min(PULSE_S, max(0.0, due_s - time.monotonic())))
        while True:
            bell.get_nowait()
