"""The server's side of an HTTP connection: uvicorn's h11 protocol with time limits (see `ClientLimits`).

`ClientProtocol`, not the application, responds to requests that h11 refuses. uvicorn itself limits no time before the
first request: with 256 descriptors, 300 connections that sent nothing kept it from answering anybody as long as they
were open. `ConnectionLimit` closes those that have waited longest.
"""

import asyncio
import logging
import re
import ssl
import sys
import time
from collections.abc import Callable
from typing import Any, Protocol
from urllib.parse import unquote

import h11
import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol

from svc_daemon.api.connections.handshakes import Handshake
from svc_daemon.api.connections.transports import ClientTransport, has_arrivals
from svc_daemon.api.middleware.error_responses import response_of
from svc_daemon.api.middleware.guards import ClientLimits
from svc_daemon.api.middleware.response_headers import identity_headers
from svc_daemon.core.json_bodies import refusal
from svc_daemon.errors import ServiceError
from svc_daemon.wire.light.error_codes import ErrorCode

logger = logging.getLogger(__name__)

#: After this many seconds without an event, the next event begins a new series (see `Episodes`).
QUIET_S = 60.0

_CLOSE = (b"connection", b"close")
#: A request target that is a whole URL, as clients send it to a proxy (RFC 9112, section 3.2.2).
_ABSOLUTE = re.compile(rb"https?://([^/]*)(.*)", re.IGNORECASE | re.DOTALL)


def server_config(
    app: ASGIApp,
    limits: ClientLimits,
    new_id: Callable[[], str],
    *,
    max_head_bytes: int,
    stop_s: int,
    tls: ssl.SSLContext | None = None,
) -> uvicorn.Config:
    """Create the uvicorn configuration for a server on sockets that the caller has bound.

    `new_id` creates request ids. When the server stops, it waits up to `stop_s` seconds for open requests. With `tls`,
    the server accepts only HTTPS.
    """
    limit = ConnectionLimit(limits.max_connections)
    fields = {"limits": limits, "new_id": staticmethod(new_id), "connection_limit": limit}
    protocol: Any = type("LimitedProtocol", (ClientProtocol,), fields)

    def make(**options: Any) -> asyncio.Protocol:
        made: ClientProtocol = protocol(**options)
        return made if tls is None else Handshake(made, tls)

    # uvicorn's type hint asks for a class, but uvicorn only calls `http`, so a function works too.
    http: Any = make
    return uvicorn.Config(
        app,
        http=http,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        # Ignore forwarding headers, since any local client could claim another address with them.
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=limits.keep_alive_s,
        timeout_graceful_shutdown=stop_s,
        h11_max_incomplete_event_size=max_head_bytes,
    )


class Episodes:
    """Recognizes the first event of a series, so that a series is logged only once."""

    def __init__(self) -> None:
        self._last_s = -QUIET_S

    def begins(self) -> bool:
        """Record an event. Returns whether it begins a new series."""
        last_s, self._last_s = self._last_s, time.monotonic()
        return self._last_s - last_s >= QUIET_S


class OpenConnection(Protocol):
    """The attributes of a connection that `ConnectionLimit` uses."""

    @property
    def is_serving(self) -> bool: ...

    #: When the connection began to wait for its client, in seconds of the monotonic clock.
    waiting_since_s: float

    def has_unread(self) -> bool: ...

    def cut(self) -> None: ...


class ConnectionLimit:
    """The open connections of one server, up to a maximum number."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._members: set[OpenConnection] = set()
        self._episodes = Episodes()

    def enter(self, newcomer: OpenConnection) -> None:
        """Add a connection. If there are too many connections, close the one that has been idle longest.

        If no other connection is idle, close the new connection.
        """
        self._members.add(newcomer)
        if len(self._members) <= self.most:
            return
        waiting = [member for member in self._members if member is not newcomer and not member.is_serving]
        waiting.sort(key=lambda member: member.waiting_since_s)
        leaving = next((member for member in waiting if not member.has_unread()), newcomer)
        # Remove the connection now, so that the next newcomer doesn't select it again.
        self.leave(leaving)
        leaving.cut()
        if self._episodes.begins():
            logger.warning(
                "%d connections are open, which is the limit: the one that waited longest without a request is closed",
                self.most,
            )

    def leave(self, member: OpenConnection) -> None:
        """Remove a connection, unless it has been removed already."""
        self._members.discard(member)


class ClientProtocol(H11Protocol):
    """A client's connection: passes requests to the application, and closes if the client exceeds a limit."""

    limits: ClientLimits
    new_id: Callable[[], str]
    #: All open connections of the server.
    connection_limit: ConnectionLimit
    link: ClientTransport
    #: The transport below TLS; None for a connection without TLS.
    wire: asyncio.Transport | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.app = self._serve
        #: When this connection last began to wait for a request.
        self.waiting_since_s = 0.0
        #: When the first byte of the current request head arrived; None if no head is being read.
        self._head_since_s: float | None = None
        #: When the client stopped reading our response; None while the client is reading.
        self._unread_since_s: float | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._has_ended = False

    @property
    def is_serving(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def is_client_sending(self) -> bool:
        """Return whether the client is still sending its request."""
        return not self._has_ended and self.conn.their_state in (h11.SEND_BODY, h11.ERROR)

    # Methods that ConnectionLimit calls.

    def has_unread(self) -> bool:
        return has_arrivals(self.link)

    def cut(self) -> None:
        self.link.abort()

    # Methods that the event loop calls.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.link = ClientTransport(transport, self.limits, self.is_client_sending, self.wire)
        super().connection_made(self.link)
        self.waiting_since_s = self._head_since_s = self.loop.time()
        self._watch = self.loop.call_later(self.limits.head_s, self._look)
        self.connection_limit.enter(self)

    def data_received(self, data: bytes) -> None:
        if self.link.lingering:
            self.link.throw_away(len(data))
            return
        if self._head_since_s is None and self.conn.their_state is h11.IDLE:
            self._head_since_s = self.loop.time()
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._head_since_s = None

    def eof_received(self) -> None:
        """Handle the end of the client's input. Send an error if the body of the request is incomplete."""
        self._has_ended = True
        if self.conn.their_state is h11.SEND_BODY and not self.link.is_closing():
            self._refuse(refusal("", "The connection ended before the body did."))

    def connection_lost(self, exc: Exception | None) -> None:
        self.link.forget()
        self.connection_limit.leave(self)
        if self._watch is not None:
            self._watch.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        self._unread_since_s = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        self._unread_since_s = None
        super().resume_writing()

    # Methods that uvicorn calls.

    def on_response_complete(self) -> None:
        self.waiting_since_s = self.loop.time()
        super().on_response_complete()

    def shutdown(self) -> None:
        if self.link.lingering:
            self.link.abort()
        else:
            super().shutdown()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's words are text, ours an envelope
        # Only the message of h11's error shows that a Host header is missing or repeated.
        error = sys.exception()
        if getattr(error, "error_status_hint", 400) == 431:
            self._refuse(ServiceError(ErrorCode.HEADERS_TOO_LARGE))
        elif "Host" in str(error):
            self._refuse(ServiceError(ErrorCode.HOST_NOT_ALLOWED))
        else:
            self._refuse(refusal("", "The request is not valid HTTP/1.1."))

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application.

        If the request line has a whole URL, the application gets only the path, and the host as `authority`. If the
        response begins before the whole request body has arrived, the header `Connection: close` is added.
        """
        cycle = self.cycle
        # The fault lab, which makes requests fail on purpose, calls this to break the connection.
        scope["cut"] = self._cut_off
        if parts := _ABSOLUTE.fullmatch(scope["raw_path"]) if scope["type"] == "http" else None:
            path = parts[2] or b"/"
            scope = {**scope, "authority": parts[1], "raw_path": path, "path": unquote(path.decode("ascii"))}

        async def receive_all() -> Message:
            message: Message = await receive()
            if message["type"] == "http.disconnect" and cycle.body and not cycle.response_complete:
                # Pass on the received bytes of the body before the disconnect. uvicorn would drop these bytes.
                message = {"type": "http.request", "body": bytes(cycle.body), "more_body": cycle.more_body}
                cycle.body = bytearray()
            return message

        async def send_closing(message: Message) -> None:
            if message["type"] == "http.response.start" and self.conn.their_state is h11.SEND_BODY:
                message["headers"] = [*message["headers"], _CLOSE]
            await send(message)

        await self.config.loaded_app(scope, receive_all, send_closing)

    # Methods that close the connection.

    def _cut_off(self) -> None:
        """Abort the connection during a request. The application learns that the client has disconnected."""
        self.cycle.disconnected = True
        self.link.abort()

    def _look(self) -> None:
        """Close the connection if a time limit has passed, otherwise schedule the next check."""
        now_s, limits = self.loop.time(), self.limits
        head_end_s = now_s + limits.head_s if self._head_since_s is None else self._head_since_s + limits.head_s
        if now_s < head_end_s:
            if self._unread_since_s is not None and now_s >= self._unread_since_s + limits.unread_answer_s:
                self.link.abort()
            else:
                self._watch = self.loop.call_at(head_end_s, self._look)
        elif self.conn.trailing_data[0]:
            self._refuse(ServiceError(ErrorCode.REQUEST_TIMEOUT, "The headers did not arrive in time."))
        else:
            # Browsers open connections before they have a request. Close such a connection without a response.
            self.link.close()

    def _refuse(self, error: ServiceError) -> None:
        """Send an error response, unless the application has already begun to respond, and close the connection."""
        request_id = ""
        if self.is_serving:
            # Make the application stop, as if the client had disconnected.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            request_id = str(self.cycle.scope["state"].get("request_id", ""))
        request_id = request_id or self.new_id()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            fields = {"status": error.rule.status, "code": error.code}
            logger.info("refused before routing", extra={"request_id": request_id, "fields": fields})
            # h11 is in an error state and can't write the response, so write the bytes directly.
            response = response_of(error, request_id)
            lines = [b"HTTP/1.1 %d %s" % (response.status, STATUS_PHRASES[response.status])]
            lines += [b"%s: %s" % header for header in (*response.headers, *identity_headers(request_id), _CLOSE)]
            self.link.write(b"\r\n".join([*lines, b"", response.body]))
        self.link.close()
