"""The server process: uvicorn from its first connection to a signal, and the exit code that follows."""

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn


class Server(uvicorn.Server):
    """uvicorn with signals that end in exit code 0; by default it raises them again after the stop."""

    def __init__(self, config: uvicorn.Config, on_stop: Callable[[int], None]) -> None:
        """`on_stop` is called with the seconds that are left for what is under way."""
        super().__init__(config)
        self._on_stop = on_stop
        self._exiting = asyncio.Event()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self._exiting.set()

    async def main_loop(self) -> None:
        """uvicorn's, left as soon as a signal comes; by itself it looks for one ten times a second."""
        ticking = asyncio.create_task(super().main_loop())
        leaving = asyncio.create_task(self._exiting.wait())
        await asyncio.wait((ticking, leaving), return_when=asyncio.FIRST_COMPLETED)
        ticking.cancel()
        leaving.cancel()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Report that the stop has begun, and finish running requests."""
        self._on_stop(self.config.timeout_graceful_shutdown or 0)
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        signals = (signal.SIGINT, signal.SIGTERM)
        for number in signals:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in signals:
                loop.remove_signal_handler(number)


async def run_until_stopped(server: Server, listener: socket.socket, broken: asyncio.Event) -> None:
    """Serve until a signal comes or `broken` is set; what is under way is finished first."""
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    watching = asyncio.create_task(broken.wait())
    await asyncio.wait((serving, watching), return_when=asyncio.FIRST_COMPLETED)
    server.should_exit = True
    watching.cancel()
    await serving
