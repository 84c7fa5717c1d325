"""The uvicorn server, changed to begin its shutdown at once on a signal."""

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn


class Server(uvicorn.Server):
    """Exits with code 0 after a signal. uvicorn's own server would raise the signal again at the end."""

    def __init__(self, config: uvicorn.Config, on_stop: Callable[[int], None]) -> None:
        """`on_stop` is called when shutdown begins, with the seconds that running requests have left."""
        super().__init__(config)
        self._on_stop = on_stop
        self._exiting = asyncio.Event()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self._exiting.set()

    async def main_loop(self) -> None:
        """Run until a signal arrives, and return at once. uvicorn would check for signals only ten times a second."""
        ticking = asyncio.create_task(super().main_loop())
        leaving = asyncio.create_task(self._exiting.wait())
        await asyncio.wait((ticking, leaving), return_when=asyncio.FIRST_COMPLETED)
        ticking.cancel()
        leaving.cancel()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Call `on_stop`, and finish running requests."""
        self._on_stop(self.config.timeout_graceful_shutdown or 0)
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        signals = [signal.SIGINT, signal.SIGTERM]
        # A closed terminal ends the daemon like SIGTERM, unless `nohup` has told it to ignore that.
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            signals.append(signal.SIGHUP)
        for number in signals:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in signals:
                loop.remove_signal_handler(number)


async def run_until_stopped(server: Server, listener: socket.socket, broken: asyncio.Event) -> None:
    """Serve until a signal arrives or `broken` is set, then finish running requests."""
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    watching = asyncio.create_task(broken.wait())
    await asyncio.wait((serving, watching), return_when=asyncio.FIRST_COMPLETED)
    server.should_exit = True
    watching.cancel()
    await serving
