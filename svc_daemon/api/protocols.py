"""The server's side of one connection: uvicorn's h11 protocol, with an end to everything a client can leave open.

Theory of operation. A connection is in one of four situations:

    idle            no byte of a request yet; ended by uvicorn's keep-alive timer, or by ours on a fresh connection
    reading a head  ended after `head_s`, with 408
    serving         the application has the request; `Deadlines` times its body, and we time an answer that nobody reads
    lingering       answered before the whole body was there (`transports`); ended after `linger_s` or `linger_bytes`

One timer a connection looks at all of them, so that a request costs no timer of its own. How many connections there
may be, and which one ends where there are too many, is the business of `crowds`.

What h11 refuses never reaches the application; it is answered from here, in the same envelope and with a request id.
"""

import asyncio
import logging
import select
import sys
from collections.abc import Callable
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol

from svc_daemon.api.crowds import Crowd
from svc_daemon.api.deadlines import ClientLimits
from svc_daemon.api.faults import answer_of
from svc_daemon.api.request_ids import identity_headers
from svc_daemon.api.targets import origin_form
from svc_daemon.api.transports import ClientTransport
from svc_daemon.core.requests import refusal
from svc_daemon.errors import ServiceError
from svc_daemon.wire.codes import ErrorCode

logger = logging.getLogger(__name__)

_CLOSE = (b"connection", b"close")


def server_config(
    app: ASGIApp, limits: ClientLimits, new_id: Callable[[], str], *, max_head_bytes: int, stop_s: int
) -> uvicorn.Config:
    """uvicorn as this service runs it, to be served on sockets that the caller has bound.

    `new_id` makes whole request ids. `stop_s` bounds how long a stop waits for requests in flight.
    """
    return uvicorn.Config(
        app,
        http=protocol_class(limits, new_id),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        # Loopback is a proxy to uvicorn by default, and any local client could claim any address.
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=limits.keep_alive_s,
        timeout_graceful_shutdown=stop_s,
        h11_max_incomplete_event_size=max_head_bytes,
    )


def protocol_class(limits: ClientLimits, new_id: Callable[[], str]) -> type["ClientProtocol"]:
    """The protocol with these limits, as the class that uvicorn makes one of for each connection."""
    fields = {"limits": limits, "new_id": staticmethod(new_id), "crowd": Crowd(limits.max_connections)}
    return type("LimitedProtocol", (ClientProtocol,), fields)


class ClientProtocol(H11Protocol):
    """One connection."""

    limits: ClientLimits
    new_id: Callable[[], str]
    #: All connections of the server.
    crowd: Crowd
    link: ClientTransport

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.app = self._serve
        #: When this connection last began to wait for a request.
        self.waiting_since_s = 0.0
        #: When the head that is being read began; None where none is.
        self._head_since_s: float | None = None
        #: When the client stopped reading our answer; None while it reads.
        self._unread_since_s: float | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._has_ended = False

    @property
    def is_serving(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    # What the crowd calls.

    def has_unread(self) -> bool:
        arrivals = select.poll()
        arrivals.register(self.link.get_extra_info("socket").fileno(), select.POLLIN)
        return bool(arrivals.poll(0))

    def cut(self) -> None:
        self.link.abort()

    # What the event loop calls.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.link = ClientTransport(transport, self.limits, self._is_client_sending)
        super().connection_made(self.link)
        self.waiting_since_s = self._head_since_s = self.loop.time()
        self._watch = self.loop.call_later(self.limits.head_s, self._look)
        self.crowd.enter(self)

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
        """The client sends no more; where a body is missing it may still read why it was refused."""
        self._has_ended = True
        if self.conn.their_state is h11.SEND_BODY and not self.link.is_closing():
            self._refuse(refusal("", "The connection ended before the body did."))

    def connection_lost(self, exc: Exception | None) -> None:
        self.link.forget()
        self.crowd.leave(self)
        if self._watch is not None:
            self._watch.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        self._unread_since_s = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        self._unread_since_s = None
        super().resume_writing()

    # What uvicorn calls.

    def on_response_complete(self) -> None:
        self.waiting_since_s = self.loop.time()
        super().on_response_complete()

    def shutdown(self) -> None:
        if self.link.lingering:
            self.link.abort()
        else:
            super().shutdown()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's words are text, ours an envelope
        # Called while h11's error is being handled, which alone knows what is wrong.
        self._refuse(_service_error(sys.exception()))

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The application; an answer given before the whole body has come tells that the connection will close."""

        async def send_closing(message: Message) -> None:
            if message["type"] == "http.response.start" and self.conn.their_state is h11.SEND_BODY:
                message["headers"] = [*message["headers"], _CLOSE]
            await send(message)

        await self.config.loaded_app(origin_form(scope), receive, send_closing)

    # What ends a connection.

    def _look(self) -> None:
        """Ends what has lasted too long, else comes again when something could have."""
        now_s, limits = self.loop.time(), self.limits
        head_end_s = now_s + limits.head_s if self._head_since_s is None else self._head_since_s + limits.head_s
        if now_s >= head_end_s:
            self._end_late_head()
        elif self._unread_since_s is not None and now_s >= self._unread_since_s + limits.unread_answer_s:
            self.link.abort()
        else:
            self._watch = self.loop.call_at(head_end_s, self._look)

    def _end_late_head(self) -> None:
        begun, _ = self.conn.trailing_data
        if begun:
            self._refuse(ServiceError(ErrorCode.REQUEST_TIMEOUT, "The headers did not arrive in time."))
        else:
            # A browser opens connections before it needs them; an answer to no request would only confuse it.
            self.link.close()

    def _refuse(self, error: ServiceError) -> None:
        """Answer in the application's place where it has not begun to, and close."""
        request_id = self._end_cycle() or self.new_id()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            fields = {"status": error.rule.status, "code": error.code}
            logger.info("refused before routing", extra={"request_id": request_id, "fields": fields})
            self.link.write(_on_the_wire(error, request_id))
        self.link.close()

    def _end_cycle(self) -> str:
        """Tell the application that its client is gone, and return the id of the request it was serving, if any."""
        if not self.is_serving:
            return ""
        self.cycle.disconnected = True
        self.cycle.message_event.set()
        return str(self.cycle.scope["state"].get("request_id", ""))

    def _is_client_sending(self) -> bool:
        return not self._has_ended and self.conn.their_state in (h11.SEND_BODY, h11.ERROR)


def _service_error(error: BaseException | None) -> ServiceError:
    """What h11 found, in our terms; h11 tells a missing or second Host by its words alone."""
    if getattr(error, "error_status_hint", 400) == 431:
        return ServiceError(ErrorCode.HEADERS_TOO_LARGE)
    if "Host" in str(error):
        return ServiceError(ErrorCode.HOST_NOT_ALLOWED)
    return refusal("", "The request is not valid HTTP/1.1.")


def _on_the_wire(error: ServiceError, request_id: str) -> bytes:
    """A whole HTTP answer. It is written past h11, which has lost its place in the conversation."""
    answer = answer_of(error, request_id)
    lines = [b"HTTP/1.1 %d %s" % (answer.status, STATUS_PHRASES[answer.status])]
    lines += [b"%s: %s" % header for header in (*answer.headers, *identity_headers(request_id), _CLOSE)]
    return b"\r\n".join([*lines, b"", answer.body])
