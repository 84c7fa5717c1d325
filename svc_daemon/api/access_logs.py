"""The access log: one line a request, with the route's template in place of the path: no token or query is logged."""

import logging
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

logger = logging.getLogger(__name__)

#: Stands for the route of a request that met none: its path is the client's text and may hold anything.
NO_ROUTE = "-"


class AccessLogs:
    """Stands outside of Faults, so that refused and failed requests have their line too."""

    def __init__(self, app: ASGIApp, clock: Callable[[], float]) -> None:
        self.app = app
        #: Seconds that never go back.
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
            _log(scope, status, self.clock() - began, sent_bytes)


def _log(scope: Scope, status: int | None, duration_s: float, sent_bytes: int) -> None:
    route = getattr(scope.get("route"), "path", NO_ROUTE)
    fields = {
        "method": scope["method"],
        "route": route,
        # None where the client went away before it was answered.
        "status": status,
        "duration_ms": round(duration_s * 1000, 1),
        "sent_bytes": sent_bytes,
    }
    logger.info("answered", extra={"fields": fields})
