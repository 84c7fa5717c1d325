"""Answers of aliases: `Deprecation`, and a `Link` to the route that has succeeded them."""

from collections.abc import Mapping
from urllib.parse import quote

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from svc_daemon.wire.headers import DEPRECATION, LINK

_BUCKET = "{bucket}"


def name_bucket(request: Request, slug: str) -> None:
    """Have the answer's link name this bucket, where the successor has one in its path."""
    request.state.successor_bucket = slug


class Deprecations:
    """Stands outside Faults, so that refusals of an alias tell its successor too."""

    def __init__(self, app: ASGIApp, successors: Mapping[str, str]) -> None:
        self.app = app
        #: The path that a client should use, by the alias's own; both are templates.
        self.successors = successors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_deprecated(message: Message) -> None:
            successor = self._successor(scope) if message["type"] == "http.response.start" else None
            if successor is not None:
                headers = {DEPRECATION: "true", LINK: f'<{successor}>; rel="successor-version"'}
                MutableHeaders(scope=message).update(headers)
            await send(message)

        await self.app(scope, receive, send_deprecated)

    def _successor(self, scope: Scope) -> str | None:
        """None where no alias was reached. Braces can't stand in an address: an unknown bucket is %7Bbucket%7D."""
        route = scope.get("route")
        if not isinstance(route, Route) or scope["method"] not in (route.methods or ()):
            return None
        successor = self.successors.get(route.path)
        bucket = scope["state"].get("successor_bucket", quote(_BUCKET))
        return successor.replace(_BUCKET, bucket) if successor else None
