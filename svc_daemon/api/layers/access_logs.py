"""The access log: one line per request, with the route template instead of the path, so no token or query is logged."""

import logging
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

logger = logging.getLogger(__name__)

#: Logged instead of the path if a request matches no route, since the path may contain anything.
NO_ROUTE = "-"


class AccessLogs:
    """Middleware that logs each response. It wraps the `Faults` middleware, so that it also logs error responses."""

    def __init__(self, app: ASGIApp, clock: Callable[[], float]) -> None:
        self.app = app
        #: Monotonic clock, in seconds.
        self.clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not logger.isEnabledFor(logging.INFO):
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
            fields = {
                "method": scope["method"],
                "route": getattr(scope.get("route"), "path", NO_ROUTE),
                # None if the client disconnected before the response.
                "status": status,
                "duration_ms": round((self.clock() - began) * 1000, 1),
                "sent_bytes": sent_bytes,
            }
            logger.info("answered", extra={"fields": fields})
