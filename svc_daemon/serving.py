"""The server process: uvicorn from its first connection to a signal, and the exit code that follows."""

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn


class Server(uvicorn.Server):
    """uvicorn with signals that end in exit code 0: its own would raise them again after the stop."""

    def __init__(self, config: uvicorn.Config, on_stop: Callable[[int], None]) -> None:
        """`on_stop` is called with the seconds that are left for what is under way."""
        super().__init__(config)
        self._on_stop = on_stop

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Report that the stop has begun, and see what is under way to its end."""
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
