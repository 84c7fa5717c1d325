"""Adds headers to every response, including errors, such as the request id and the service's version."""

from collections.abc import Callable, Mapping
from urllib.parse import quote

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from svc_daemon.logs import REQUEST_ID as LOGGED_REQUEST_ID
from svc_daemon.wire.light.headers import DEPRECATION, LINK, REQUEST_ID, SVC_API, SVC_FAULT, SVC_VERSION
from svc_daemon.wire.light.versions import API_RANGE, VERSION

#: A header: its name in lower case, and its value.
Header = tuple[bytes, bytes]

#: Prefix of the paths for uploading bytes. Such a path contains a token that authorizes the request.
STORAGE_PREFIX = "/v1/storage/"
#: Prefix of the static files of the console.
CONSOLE_PREFIX = "/console/"

_REQUEST_ID = REQUEST_ID.lower().encode()
_RELEASE: tuple[Header, ...] = (
    (SVC_VERSION.lower().encode(), VERSION.encode()),
    (SVC_API.lower().encode(), API_RANGE.encode()),
)
_CROSS_ORIGIN = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "Range, Retry-After, X-Http-Status-Code-Override, X-Request-Id",
    "Cache-Control": "no-store",
}
_BUCKET = "{bucket}"


def identity_headers(request_id: str) -> list[Header]:
    """Return the headers of every response: `X-Request-Id`, `Svc-Version`, `Svc-Api`."""
    return [(_REQUEST_ID, request_id.encode()), *_RELEASE]


def request_id_of(scope: Scope) -> str:
    """Return the request's id; empty before ResponseHeaders has set it."""
    return str(scope.get("state", {}).get("request_id", ""))


def is_storage_path(path: str) -> bool:
    return path.startswith(STORAGE_PREFIX)


def is_open_to_pages(scope: Scope) -> bool:
    """Return whether web pages of any origin may send the request: to an upload URL, or for a file of the console."""
    path: str = scope["path"]
    return is_storage_path(path) or (scope["method"] in ("GET", "HEAD") and path.startswith(CONSOLE_PREFIX))


def name_bucket(request: Request, slug: str) -> None:
    """Record the slug of the request's bucket, for the `Link` header with which an old route names the new one."""
    request.state.successor_bucket = slug


class ResponseHeaders:
    """Middleware that sets each request's id and adds headers to its response."""

    def __init__(self, app: ASGIApp, new_id: Callable[[], str], successors: Mapping[str, str]) -> None:
        self.app = app
        #: Creates request ids, such as `req_01k2…`.
        self.new_id = new_id
        #: Maps the path template of each alias (an old route) to the path template of the current route.
        self.successors = successors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id = self.new_id()
        scope.setdefault("state", {})["request_id"] = request_id
        LOGGED_REQUEST_ID.set(request_id)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *identity_headers(request_id)]
                if is_storage_path(scope["path"]):
                    MutableHeaders(scope=message).update(_CROSS_ORIGIN)
                if fault := scope["state"].get("fault"):
                    MutableHeaders(scope=message)[SVC_FAULT] = fault
                if successor := self._successor(scope):
                    link = f'<{successor}>; rel="successor-version"'
                    MutableHeaders(scope=message).update({DEPRECATION: "true", LINK: link})
            await send(message)

        await self.app(scope, receive, send_with_headers)

    def _successor(self, scope: Scope) -> str | None:
        """Return the path that replaces the path of an alias (an old route). For other routes, return "" or None."""
        route = scope.get("route")
        if not isinstance(route, Route) or scope["method"] not in (route.methods or ()):
            return None
        # If the handler failed before it set the bucket, the link keeps an escaped placeholder.
        bucket = scope["state"].get("successor_bucket", quote(_BUCKET))
        return self.successors.get(route.path, "").replace(_BUCKET, bucket)
