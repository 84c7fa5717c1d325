"""TLS handshakes with a time limit.

A connection counts towards the maximum number of connections while its handshake is still running. asyncio's own
handshakes would not be counted, so clients that only connect could use up the file descriptors: with uvicorn's own
TLS and 256 descriptors, 300 connections that sent nothing left every other client without an answer for 60 s.
"""

import asyncio
import contextlib
import ssl
from typing import TYPE_CHECKING, Any

from svc_daemon.api.connections.transports import has_arrivals

if TYPE_CHECKING:
    from svc_daemon.api.connections.protocols import ClientProtocol


class Handshake(asyncio.Protocol):
    """A connection during its TLS handshake. After the handshake, `client` takes over the connection."""

    #: Always false: `ConnectionLimit` may close a connection during its handshake to make room for another.
    is_serving = False

    def __init__(self, client: "ClientProtocol", tls: ssl.SSLContext) -> None:
        self._client = client
        self._tls = tls
        self._connections: set[Any] = client.connections
        self.waiting_since_s = 0.0
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if not isinstance(transport, asyncio.Transport):
            raise TypeError("a handshake needs a stream")
        self._transport = transport
        # The TLS layer, not this class, reads the handshake.
        transport.pause_reading()
        self.waiting_since_s = self._client.loop.time()
        # When uvicorn stops, it calls `shutdown` on all connections in this set.
        self._connections.add(self)
        self._client.connection_limit.enter(self)
        self._task = self._client.loop.create_task(self._secure())

    def has_unread(self) -> bool:
        return has_arrivals(self._transport)

    def cut(self) -> None:
        self._transport.abort()

    def shutdown(self) -> None:
        self.cut()

    async def _secure(self) -> None:
        limits, early = self._client.limits, _Early()
        secured: asyncio.Transport | None = None
        try:
            # Don't log failed handshakes: port scanners would fill the log.
            with contextlib.suppress(OSError):
                secured = await self._client.loop.start_tls(
                    self._transport,
                    early,
                    self._tls,
                    server_side=True,
                    ssl_handshake_timeout=limits.head_s,
                    # How long a slow client may take to receive the rest of a response.
                    ssl_shutdown_timeout=limits.unread_answer_s,
                )
        finally:
            self._connections.discard(self)
            self._client.connection_limit.leave(self)
        # The handshake failed, or the connection was closed meanwhile.
        if secured is None:
            return
        secured.set_protocol(self._client)
        self._client.wire = self._transport
        self._client.connection_made(secured)
        if early.data:
            self._client.data_received(bytes(early.data))


class _Early(asyncio.Protocol):
    """Buffers data that arrives before `ClientProtocol` takes over the connection."""

    def __init__(self) -> None:
        self.data = bytearray()

    def data_received(self, data: bytes) -> None:
        self.data += data
