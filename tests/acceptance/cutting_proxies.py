"""A TCP proxy that cuts connections in the middle of what the client sends."""

import random
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

CHUNK_BYTES = 16 * 1024


@dataclass
class CuttingProxy:
    """Forwards to a local port; each connection may send so many bytes, then it is cut on both sides."""

    target_port: int
    #: Bytes that the connections to come may send, one each; those behind them are not cut.
    budgets: list[int]
    #: Whether a cut is a reset, by turns with an orderly end.
    seed: int = 1
    cuts: int = 0
    #: What the client of each connection has sent, in order, and how much of it is the first head.
    forwarded: list[int] = field(default_factory=list)
    heads: list[int] = field(default_factory=list)
    port: int = 0

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def body_bytes(self, number: int) -> int:
        """What the connection has sent on behind its first head."""
        return self.forwarded[number] - self.heads[number]

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                budget = self.budgets.pop(0) if self.budgets else None
                self.heads.append(0)
                self.forwarded.append(0)
                number = len(self.forwarded) - 1
                threading.Thread(target=self._serve, args=(client, number, budget), daemon=True).start()

    def _serve(self, client: socket.socket, number: int, budget: int | None) -> None:
        with client, socket.create_connection(("127.0.0.1", self.target_port)) as target, suppress(OSError):
            threading.Thread(target=_pump, args=(target, client), daemon=True).start()
            begun = bytearray()
            while data := client.recv(CHUNK_BYTES if budget is None else min(CHUNK_BYTES, budget)):
                self.forwarded[number] += len(data)
                if b"\r\n\r\n" not in begun:
                    begun += data
                    self.heads[number] = _head_bytes(begun)
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


@contextmanager
def cutting(target_port: int, budgets: list[int]) -> Iterator[CuttingProxy]:
    """A proxy that runs while the block does."""
    proxy = CuttingProxy(target_port, budgets)
    try:
        yield proxy
    finally:
        proxy.close()


def _head_bytes(begun: bytearray) -> int:
    """All of it while the head has not ended."""
    end = begun.find(b"\r\n\r\n")
    return len(begun) if end < 0 else end + 4


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(CHUNK_BYTES):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
