"""Response headers: added to every response, whatever the route.

    X-Request-Id, Svc-Version, Svc-Api   on every response
    Svc-Fault                            on those that the fault lab has made or delayed: the name of its rule
    Access-Control-*                     on the storage routes, which pages of any origin may use
    Deprecation, Link                    on aliases; the link names the successor route

This is the outermost middleware, so error responses have these headers too.
"""

from collections.abc import Callable, Mapping
from urllib.parse import quote

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from svc_daemon.logs import REQUEST_ID as LOGGED_REQUEST_ID
from svc_daemon.wire.headers import DEPRECATION, LINK, REQUEST_ID, SVC_API, SVC_FAULT, SVC_VERSION
from svc_daemon.wire.versions import API_RANGE, VERSION

#: A header as in ASGI: its name in lower case, and its value.
Header = tuple[bytes, bytes]

#: Beginning of the paths in which a token authorizes the request.
STORAGE_PREFIX = "/v1/storage/"

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
    """Return the request's id; empty if ResponseHeaders has not processed the request."""
    return str(scope.get("state", {}).get("request_id", ""))


def is_storage_path(path: str) -> bool:
    return path.startswith(STORAGE_PREFIX)


def name_bucket(request: Request, slug: str) -> None:
    """Set the bucket in the path of the successor route, to which a header of the response links."""
    request.state.successor_bucket = slug


class ResponseHeaders:
    """Middleware that sets the id of each request, for the handlers and the logs, and adds headers to each response."""

    def __init__(self, app: ASGIApp, new_id: Callable[[], str], successors: Mapping[str, str]) -> None:
        self.app = app
        #: Creates ids of requests, such as `req_01k2…`.
        self.new_id = new_id
        #: Maps the path template of each alias to that of the route that replaces it.
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
        """Return the path of the successor if the request's route is an alias; otherwise None."""
        route = scope.get("route")
        if not isinstance(route, Route) or scope["method"] not in (route.methods or ()):
            return None
        # Usually, the handler has set the bucket that the path of the successor needs. If it failed before that, the
        # link contains a placeholder, whose braces are escaped as in every URL.
        bucket = scope["state"].get("successor_bucket", quote(_BUCKET))
        return self.successors.get(route.path, "").replace(_BUCKET, bucket)
