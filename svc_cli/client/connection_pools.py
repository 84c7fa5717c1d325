"""Connections to the service, kept open for the next request. Threads may share them.

They use the standard library, because a command would spend 80 to 170 ms of a processor on the import of httpx.
"""

import http.client
import math
import select
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import SplitResult

from svc_cli.http_responses import LimitedResponse

if TYPE_CHECKING:
    import ssl

#: Returns the TLS context for an https address.
MakeTls = Callable[[], "ssl.SSLContext"]
#: A connection that was idle for more seconds than this is not used again: the server may be closing it.
KEEP_S = 2.0
#: Raises an error unless the right service is at the other end of a new connection.
Proof = Callable[[http.client.HTTPConnection], None]


class ConnectionFailed(Exception):
    """The connection could not be opened; `__cause__` is the OSError or UnicodeError."""


class ConnectionPool:
    """Keeps connections open for the next request. Ignores proxy settings, so that no key is sent to a proxy."""

    def __init__(self, connect_s: float, make_tls: MakeTls, proof: Proof | None = None) -> None:
        self._connect_s = connect_s
        self._make_tls = make_tls
        self._proof = proof
        # No lock: an interrupt could leave it locked, and `pop` and `append` of a list are atomic anyway.
        self._kept: dict[str, list[tuple[float, http.client.HTTPConnection]]] = {}

    def close(self) -> None:
        """Close the kept connections."""
        kept, self._kept = self._kept, {}
        for _, connection in (pair for pairs in kept.values() for pair in pairs):
            connection.close()

    def add(self, netloc: str, connection: http.client.HTTPConnection) -> None:
        """Keep an open connection, which has passed the proof, for the next request."""
        # Without this, `http.client` would connect again by itself if the server has closed the connection.
        connection.auto_open = 0
        if connection.sock is not None:  # None if the last response has closed it
            self._kept.setdefault(netloc, []).append((time.monotonic(), connection))

    @contextmanager
    def exchange(
        self,
        method: str,
        address: SplitResult,
        body: bytes | Iterable[bytes] | None,
        headers: Mapping[str, str | bytes],
        silence_s: float,
        response_s: float | None = None,
    ) -> Iterator[LimitedResponse]:
        """Send a request and yield its response, to be read inside the `with` block.

        `silence_s` is the timeout of each read and write, `response_s` of the whole response. Raises ConnectionFailed
        if the connection can't be opened, and the errors of the proof; later failures are OSError or HTTPException.
        """
        connection = self._take(address, silence_s)
        response, is_sent = None, True
        try:
            try:
                target = f"{address.path}?{address.query}" if address.query else address.path
                connection.request(method, target, body, headers)
            except (BrokenPipeError, ConnectionResetError):
                # The server may have refused the request before all was sent. Its response explains why.
                is_sent = False
            until_s = math.inf if response_s is None else time.monotonic() + response_s
            connection.response_class = partial(LimitedResponse, silence_s=silence_s, until_s=until_s)  # type: ignore[assignment]
            response = connection.getresponse()
            yield response  # type: ignore[misc]
        finally:
            # Don't reuse a connection after an error response: the server may close it after the rest of the body.
            is_free = is_sent and response is not None and response.isclosed() and response.status < 400
            if is_free:
                self.add(address.netloc, connection)
            else:
                if response is not None:
                    response.close()
                connection.close()

    def _take(self, address: SplitResult, silence_s: float) -> http.client.HTTPConnection:
        """Return an open kept connection, or a new one."""
        kept = self._kept.setdefault(address.netloc, [])
        while kept:
            try:
                since_s, connection = kept.pop()
            except IndexError:  # another thread took the last connection
                break
            if time.monotonic() - since_s < KEEP_S and not _has_ended(connection):
                connection.sock.settimeout(silence_s)
                return connection
            connection.close()
        host, port = address.hostname or "", address.port
        if address.scheme == "https":
            connection = http.client.HTTPSConnection(host, port, timeout=self._connect_s, context=self._make_tls())
        else:
            connection = http.client.HTTPConnection(host, port, timeout=self._connect_s)
        try:
            connection.connect()
        except (OSError, UnicodeError) as error:
            # UnicodeError: a label of the host name is empty or too long.
            raise ConnectionFailed from error
        # Without this, `http.client` would connect again by itself if the server has closed the connection.
        connection.auto_open = 0
        if self._proof is not None:
            try:
                self._proof(connection)
            except BaseException:
                connection.close()
                raise
        if connection.sock is not None:  # None if the answer to the proof closed the connection
            connection.sock.settimeout(silence_s)
        return connection


def _has_ended(connection: http.client.HTTPConnection) -> bool:
    """Whether the server has closed this idle connection, which makes it readable."""
    if not hasattr(select, "poll"):  # on Windows, whose `select` takes any number of a socket
        return bool(select.select([connection.sock], [], [], 0)[0])
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN)
    return bool(poll.poll(0))
