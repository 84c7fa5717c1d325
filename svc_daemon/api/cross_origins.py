"""Answers of the storage door that pages of any origin may read; errors among them."""

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: Where the token in the path is the authority.
STORAGE_PREFIX = "/v1/storage/"

_HEADERS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "Range, Retry-After, X-Http-Status-Code-Override, X-Request-Id",
    "Cache-Control": "no-store",
}


def is_storage_path(path: str) -> bool:
    return path.startswith(STORAGE_PREFIX)


class CrossOrigins:
    """Stands outside Faults, so that a page can read why it was refused."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not is_storage_path(scope["path"]):
            await self.app(scope, receive, send)
            return

        async def send_readable(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        await self.app(scope, receive, send_readable)
