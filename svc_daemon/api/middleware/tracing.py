"""Records traces of requests. A trace has the template of the route instead of the path, which may contain a token."""

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from svc_daemon.api.middleware.access_logs import NO_ROUTE
from svc_daemon.process.traces import Traces


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
