"""Proxies between a client and an engine that cut a connection at a word, withhold the response to a COMMIT, or
behave like a faulty object store."""

import random
import socket
import threading
from contextlib import suppress

from tests.acceptance.proxies import Proxy


class Cutter(Proxy):
    """Forwards bytes and, after a call of `arm`, cuts the connection on which the client sends the word."""

    _word: bytes | None = None
    _passes_on = False

    def arm(self, word: bytes, *, passes_on: bool) -> None:
        """Cut the next connection that sends the word, before or after it is forwarded to the engine; only once."""
        self._passes_on, self._word = passes_on, word

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self._target_port)) as server:
            returning = threading.Thread(target=self._return, args=(server, client), daemon=True)
            returning.start()
            self._send(client, server)
            returning.join()

    def _send(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(65536):
                if self._word is not None and self._word in data:
                    self._word = None
                    # The client's side is closed first, so that it gets no response.
                    client.shutdown(socket.SHUT_RDWR)
                    if self._passes_on:
                        server.sendall(data)
                    break
                server.sendall(data)
        with suppress(OSError):
            server.shutdown(socket.SHUT_WR)

    def _return(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(65536):
                client.sendall(data)
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)


#: PostgreSQL's response to a successful COMMIT.
_COMMITTED = b"C\x00\x00\x00\x0bCOMMIT\x00"


class CommitHolder(Cutter):
    """Forwards bytes and, after a call of `hold_after`, withholds the response to the COMMIT of a marked transaction.

    The rows are committed, but the client doesn't know it. The connection stays open until `cut` is called.
    """

    def __init__(self, port: int) -> None:
        self._marked: set[socket.socket] = set()
        self._held: list[socket.socket] = []
        #: Set when a response is withheld.
        self.holds = threading.Event()
        super().__init__(port)

    def __exit__(self, *error: object) -> None:
        self.cut()
        super().__exit__(*error)

    def hold_after(self, word: bytes) -> None:
        """Withhold the response to the COMMIT of the next transaction that contains this word; only once."""
        self._marked.clear()
        self.holds.clear()
        self._word = word

    def disarm(self) -> None:
        self._word = None
        self._marked.clear()

    def cut(self) -> None:
        """Close the connection whose response is withheld."""
        while self._held:
            with suppress(OSError):
                self._held.pop().shutdown(socket.SHUT_RDWR)

    def _send(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(1 << 20):
                if self._word is not None and self._word in data:
                    self._marked.add(client)
                server.sendall(data)
        with suppress(OSError):
            server.shutdown(socket.SHUT_WR)

    def _return(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(1 << 20):
                if client in self._marked and _COMMITTED in data:
                    self.disarm()
                    self._held.append(client)
                    self.holds.set()
                    break
                client.sendall(data)
            else:
                client.shutdown(socket.SHUT_RDWR)


class FaultyStore(Cutter):
    """Forwards bytes between a node and an object store, or rejects, cuts or slows down the responses."""

    def __init__(self, port: int) -> None:
        #: `whole`, `refuses` (503), `cuts` (responses end early) or `slow`.
        self.mode = "whole"
        self._moments, self._pause = random.Random(11), threading.Event()
        super().__init__(port)

    def _send(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(65536):
                if self.mode == "refuses":
                    body = b"<Error><Code>SlowDown</Code></Error>"
                    head = f"HTTP/1.1 503 Slow Down\r\nContent-Type: application/xml\r\nContent-Length: {len(body)}\r\n"
                    client.sendall(head.encode() + b"Connection: close\r\n\r\n" + body)
                    break
                server.sendall(data)
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)

    def _return(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(8192):
                if self.mode == "slow":
                    self._pause.wait(0.03)
                if self.mode == "cuts" and self._moments.random() < 0.5:
                    client.sendall(data[: self._moments.randrange(len(data))])
                    break
                client.sendall(data)
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)
