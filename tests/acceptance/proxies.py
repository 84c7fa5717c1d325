"""TCP proxies in front of a daemon: one cuts connections in the middle of a request, one stalls them."""

import random
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Self

from tests.acceptance.calls import port_of
from tests.acceptance.installations import IMPATIENT, PATIENCE_S, Installation

CHUNK_BYTES = 16 * 1024


class Proxy:
    """Forwards connections to a local port; subclasses decide how much of each request they forward."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def forward(self, client: socket.socket, target: socket.socket) -> None:
        raise NotImplementedError

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError), socket.create_connection(("127.0.0.1", self._target_port)) as target:
            threading.Thread(target=_pump, args=(target, client), daemon=True).start()
            try:
                self.forward(client, target)
            finally:
                # This ends the pump thread's read, so that leaving the block closes or resets the connection.
                target.shutdown(socket.SHUT_RD)


class CuttingProxy(Proxy):
    """Cuts each connection on both sides after a number of bytes."""

    def __init__(self, target_port: int, budgets: list[int]) -> None:
        super().__init__(target_port)
        #: How many bytes each of the next connections may send; connections after these are not cut.
        self.budgets = budgets
        self.cuts = 0
        #: Decides whether a cut resets or closes the connection.
        self._random = random.Random(1)

    def forward(self, client: socket.socket, target: socket.socket) -> None:
        budget = self.budgets.pop(0) if self.budgets else None
        while data := client.recv(CHUNK_BYTES if budget is None else min(CHUNK_BYTES, budget)):
            target.sendall(data)
            if budget is not None and (budget := budget - len(data)) == 0:
                self._cut(client, target)
                return

    def _cut(self, *connections: socket.socket) -> None:
        self.cuts += 1
        with_reset = self._random.random() < 0.5
        for connection in connections:
            if with_reset:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            else:
                connection.shutdown(socket.SHUT_RDWR)


class HoldingProxy(Proxy):
    """Forwards `budget_bytes` in all, and then forwards nothing more while connections stay open."""

    def __init__(self, target_port: int, budget_bytes: int) -> None:
        super().__init__(target_port)
        self._left_bytes = budget_bytes
        self._lock = threading.Lock()
        #: Set when the budget is spent.
        self.holds = threading.Event()

    def forward(self, client: socket.socket, target: socket.socket) -> None:
        # Stalled data is still read, so that the proxy notices when the client closes the connection.
        while data := client.recv(CHUNK_BYTES):
            with self._lock:
                passed = data[: self._left_bytes]
                self._left_bytes -= len(passed)
                if not self._left_bytes:
                    self.holds.set()
            target.sendall(passed)


@contextmanager
def held(installation: Installation, budget_bytes: int, *words: str) -> "Iterator[subprocess.Popen[str]]":
    """Run an impatient `svc WORDS… --json` whose connections stall after this many bytes; kill it after the block."""
    # The stored key is for the daemon's own address, not for the proxy's.
    installation.environ["SVC_API_KEY"] = installation.key
    with HoldingProxy(port_of(installation), budget_bytes) as proxy:
        url = f"http://127.0.0.1:{proxy.port}"
        with installation.spawn_svc(*words, "--json", "--base-url", url, module=IMPATIENT) as process:
            try:
                assert proxy.holds.wait(PATIENCE_S), "the proxy has not stalled the command"
                yield process
            finally:
                process.kill()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    """Forward what one side sends, until it closes the connection."""
    with suppress(OSError):
        while data := source.recv(CHUNK_BYTES):
            sink.sendall(data)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
