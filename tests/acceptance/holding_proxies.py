"""A TCP proxy that stops forwarding after so many bytes and holds the connection, until the test has seen enough."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

CHUNK_BYTES = 64 * 1024


class HoldingProxy:
    """Forwards to a local port; once `budget_bytes` have gone to it in all, nothing more does."""

    def __init__(self, target_port: int, budget_bytes: int) -> None:
        self._target_port = target_port
        self._left_bytes = budget_bytes
        self._lock = threading.Lock()
        #: Set when the budget is spent.
        self.holds = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError), socket.create_connection(("127.0.0.1", self._target_port)) as target:
            threading.Thread(target=_pump, args=(target, client), daemon=True).start()
            while data := client.recv(CHUNK_BYTES):
                target.sendall(self._allowed(data))

    def _allowed(self, data: bytes) -> bytes:
        """The part that may pass. What is held is read all the same, so that the end of the client is noticed."""
        with self._lock:
            passed = data[: self._left_bytes]
            self._left_bytes -= len(passed)
            if not self._left_bytes:
                self.holds.set()
        return passed


def _pump(source: socket.socket, target: socket.socket) -> None:
    """Pass on what one side says, and its end."""
    with suppress(OSError):
        while data := source.recv(CHUNK_BYTES):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)


@contextmanager
def holding(target_port: int, budget_bytes: int) -> Iterator[HoldingProxy]:
    """A proxy that runs while the block does."""
    proxy = HoldingProxy(target_port, budget_bytes)
    try:
        yield proxy
    finally:
        proxy.close()
