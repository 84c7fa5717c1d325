"""TLS handshakes: connections have a time limit, and count towards the maximum number, from their first packet on.

    accepted -> handshake -> ClientProtocol      closed after `head_s`, or earlier if there are too many connections

asyncio could do the handshake itself, but then the daemon would not know of a connection until its handshake has ended,
and clients that only connect could use up the file descriptors.
"""

import asyncio
import contextlib
import ssl
from typing import TYPE_CHECKING, Any

from svc_daemon.api.connections.transports import has_arrivals

if TYPE_CHECKING:
    from svc_daemon.api.connections.protocols import ClientProtocol


class Handshake(asyncio.Protocol):
    """A connection during its TLS handshake. After that, `client` takes it over."""

    #: A connection in its handshake has no request yet, so `Crowd` can close it to make room for another.
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
        # Don't read the bytes of the handshake here: the TLS layer reads them from the socket.
        transport.pause_reading()
        self.waiting_since_s = self._client.loop.time()
        # Register the connection with uvicorn, which calls `shutdown` of all connections that it knows.
        self._connections.add(self)
        self._client.crowd.enter(self)
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
            # Don't log a failed handshake: the log would fill with those of port scanners.
            with contextlib.suppress(OSError):
                secured = await self._client.loop.start_tls(
                    self._transport,
                    early,
                    self._tls,
                    server_side=True,
                    ssl_handshake_timeout=limits.head_s,
                    # How long to wait until a slow client has received all of the response, before the connection is
                    # closed.
                    ssl_shutdown_timeout=limits.unread_answer_s,
                )
        finally:
            self._connections.discard(self)
            self._client.crowd.leave(self)
        # `secured` is None if the handshake failed, or if the connection was closed or lost during the handshake.
        if secured is None:
            return
        secured.set_protocol(self._client)
        self._client.wire = self._transport
        self._client.connection_made(secured)
        if early.data:
            self._client.data_received(bytes(early.data))


class _Early(asyncio.Protocol):
    """Keeps data that arrives together with the end of the handshake, until the client's protocol can take it."""

    def __init__(self) -> None:
        self.data = bytearray()

    def data_received(self, data: bytes) -> None:
        self.data += data
