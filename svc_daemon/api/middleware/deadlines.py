"""Limits how long a client may take to send a body.

Only time spent waiting for the client counts. `connections.protocols` limits request heads and idle connections.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from svc_daemon.errors import ServiceError
from svc_daemon.settings.limits import Limits
from svc_daemon.wire.error_codes import ErrorCode

#: Only requests with a body have these headers.
_FRAMING = (b"content-length", b"transfer-encoding")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLimits:
    """The limits of one connection."""

    #: Maximum seconds until the head of a request has arrived.
    head_s: float = Limits.header_seconds
    #: Extra seconds for each body, in addition to the time that follows from the minimum rate.
    body_grace_s: float = 10
    #: Minimum average rate at which a body must arrive.
    body_bytes_per_s: float = Limits.body_bytes_per_second
    #: Maximum seconds for a body, whatever its rate.
    body_total_s: float = Limits.body_seconds
    #: Seconds that an idle connection stays open for another request.
    keep_alive_s: int = 15
    #: Seconds that a client may leave a response unread, once the network buffers are full.
    unread_answer_s: float = 60
    #: Seconds that a client may continue to send a request that was already answered.
    linger_s: float = 5
    #: Bytes that a client may still send of a request that was already answered.
    linger_bytes: int = 64 * 1024 * 1024
    #: Maximum number of open connections.
    max_connections: int = 800


class Deadlines:
    """Middleware that raises ServiceError `request_timeout` from `receive` if a body arrives too slowly.

    It must run inside `Faults`, which turns the error into a response.
    """

    def __init__(self, app: ASGIApp, limits: ClientLimits, clock: Callable[[], float]) -> None:
        self.app = app
        self.limits = limits
        #: Returns the seconds of a monotonic clock.
        self.clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and any(name in _FRAMING for name, _ in scope["headers"]):
            receive = _PacedBody(receive, self.limits, self.clock).receive
        await self.app(scope, receive, send)


class _PacedBody:
    """A request body that must arrive at a minimum rate."""

    def __init__(self, receive: Receive, limits: ClientLimits, clock: Callable[[], float]) -> None:
        self._receive = receive
        self._limits = limits
        self._clock = clock
        self._received_bytes = 0
        self._waited_s = 0.0
        self._more = True

    async def receive(self) -> Message:
        if not self._more:
            # The body is complete. The application now waits for the client to disconnect, without a deadline.
            return await self._receive()
        began, limits = self._clock(), self._limits
        pace_s = limits.body_grace_s + self._received_bytes / limits.body_bytes_per_s
        try:
            async with asyncio.timeout(max(0, min(limits.body_total_s, pace_s) - self._waited_s)):
                message = await self._receive()
        except TimeoutError as error:
            raise ServiceError(ErrorCode.REQUEST_TIMEOUT, "The body did not arrive in time.") from error
        self._waited_s += self._clock() - began
        self._received_bytes += len(message.get("body", b""))
        self._more = message.get("more_body", False)
        return message
