"""Writes a line in the access log and a trace for each request.

A line has the template of the route instead of the path, which may contain a token.
"""

import logging
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from svc_daemon.process.telemetry import Traces

logger = logging.getLogger(__name__)

#: Logged instead of the path if no route matches, since the path may contain anything.
NO_ROUTE = "-"

#: The key in a request's scope of the error that was answered, if one was.
ANSWERED_ERROR = "svc.error"

#: Counts a request: method, route, status (None if the client disconnected) and seconds.
CountRequest = Callable[[str, str, int | None, float], None]


class AccessLogs:
    """Middleware that logs and counts each response, including error responses."""

    def __init__(self, app: ASGIApp, clock: Callable[[], float], count: CountRequest) -> None:
        self.app = app
        #: Returns the seconds of a monotonic clock.
        self.clock = clock
        self.count = count

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = self.clock()
        status, sent_bytes = None, 0

        async def send_counted(message: Message) -> None:
            nonlocal status, sent_bytes
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                sent_bytes += len(message.get("body", b""))
            await send(message)

        try:
            await self.app(scope, receive, send_counted)
        finally:
            seconds, route = self.clock() - began, getattr(scope.get("route"), "path", NO_ROUTE)
            fields = {
                "method": scope["method"],
                "route": route,
                # None if the client disconnected first.
                "status": status,
                "duration_ms": round(seconds * 1000, 1),
                "sent_bytes": sent_bytes,
            }
            if error := scope.get(ANSWERED_ERROR):
                fields["code"] = error.code
                if error.rule.status >= 500:
                    # Only the operator can do something about it.
                    fields["cause"] = error.message
            logger.info("answered", extra={"fields": fields})
            # Don't count the method of a request without a route, because a client can send any word as the method.
            self.count(NO_ROUTE if route == NO_ROUTE else scope["method"], route, status, seconds)


class Tracing:
    """Middleware that records each request as a span in its caller's trace."""

    def __init__(self, app: ASGIApp, traces: Traces) -> None:
        self.app = app
        self.traces = traces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not self.traces.is_on:
            await self.app(scope, receive, send)
            return
        status = None

        async def send_seen(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        with self.traces.serving(Headers(scope=scope)) as describe:
            try:
                await self.app(scope, receive, send_seen)
            finally:
                route = getattr(scope.get("route"), "path", NO_ROUTE)
                # Don't record the method of a request without a route, since a client can send any word as the method.
                describe(NO_ROUTE if route == NO_ROUTE else scope["method"], route, status)
