"""Request ids: every request gets one, every answer shows it, beside the release that answered."""

from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from svc_daemon.logs import REQUEST_ID as LOGGED_REQUEST_ID
from svc_daemon.wire.headers import REQUEST_ID, SVC_API, SVC_VERSION
from svc_daemon.wire.versions import API_RANGE, VERSION

#: A header as ASGI has it: the name in small letters, and the value.
Header = tuple[bytes, bytes]

_REQUEST_ID = REQUEST_ID.lower().encode()
_RELEASE: tuple[Header, ...] = (
    (SVC_VERSION.lower().encode(), VERSION.encode()),
    (SVC_API.lower().encode(), API_RANGE.encode()),
)


def identity_headers(request_id: str) -> list[Header]:
    """What every answer carries: `X-Request-Id`, `Svc-Version`, `Svc-Api`."""
    return [(_REQUEST_ID, request_id.encode()), *_RELEASE]


def request_id_of(scope: Scope) -> str:
    """The id of this request; empty where RequestIds has not seen it."""
    return str(scope.get("state", {}).get("request_id", ""))


class RequestIds:
    """The outermost middleware: puts an id into `scope["state"]["request_id"]` and the logs, and heads every answer."""

    def __init__(self, app: ASGIApp, new_id: Callable[[], str]) -> None:
        self.app = app
        #: Makes whole ids, such as `req_01k2…`.
        self.new_id = new_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id = self.new_id()
        scope.setdefault("state", {})["request_id"] = request_id
        LOGGED_REQUEST_ID.set(request_id)

        async def send_identified(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *identity_headers(request_id)]
            await send(message)

        await self.app(scope, receive, send_identified)
