"""MCP over HTTP, at `/mcp`: each POST request has one message, and its response is one JSON document.

The tools call the API's routes with the caller's key, so the API's own checks apply.
"""

import asyncio
import json
import logging
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urlencode, urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from svc_daemon.api.bodies import refuse_other_types, stream_bytes
from svc_daemon.api.endpoints import refuse_dry_run_in_query
from svc_daemon.api.middleware.error_responses import service_error
from svc_daemon.api.middleware.response_headers import Header, request_id_of
from svc_daemon.api.requests import caller, context_of, import_extra
from svc_daemon.api.server_sent_events import until_gone
from svc_daemon.core.json_bodies import MAX_ENTRIES, refusal, too_many_entries
from svc_daemon.errors import ServiceError
from svc_daemon.settings.limits import Limits
from svc_daemon.tools.api_calls import Call, CallAnswer, CallFailed, File
from svc_daemon.wire.light import headers
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.light.parsing import parse_json

if TYPE_CHECKING:
    from svc_daemon.tools.arguments import ToolResult
    from svc_daemon.tools.catalogue import Tool

logger = logging.getLogger(__name__)

PATH = "/mcp"
#: Maximum number of large messages that are handled concurrently, since each needs several times its size in memory.
#: Further messages wait on disk.
LARGE_AT_ONCE = 2
#: Seconds for which a tool retries after a temporary error, since models often don't try again.
PATIENCE_S = 10.0
#: Seconds before a retry if the error has no Retry-After.
PAUSE_S = 0.1
_PASSING = (ErrorCode.REQUEST_IN_PROGRESS, ErrorCode.UPLOAD_RATE_LIMITED)
#: Size of the pieces in which a handler receives a request body.
_CHUNK_BYTES = 1024 * 1024
#: The only values of these headers that the `mcp` library accepts. The client's own values are replaced.
_INSISTED = ((b"content-type", b"application/json"), (b"accept", b"application/json, text/event-stream"))


def route() -> Route:
    """Build the route, which is not in the OpenAPI document, since MCP describes tools itself."""
    return Route(PATH, ToolEndpoint(), methods=["POST"])


def message_bytes(limits: Limits) -> int:
    """Return the maximum size of a message: the largest file in base64, and the other fields."""
    return 4 * (limits.file_bytes // 3 + 1) + limits.json_bytes


class ToolEndpoint:
    """The ASGI application that answers `/mcp`."""

    def __init__(self) -> None:
        #: `svc_daemon.tools.servers` and the list of tools; None before the first request.
        self._library: tuple[Any, Any] | None = None
        self._large = asyncio.Semaphore(LARGE_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one message. Raises `invalid_project_key`, `extra_not_installed`, and the errors of `api.bodies`."""
        request = Request(scope, receive)
        caller(request)
        refuse_dry_run_in_query(request)
        if self._library is None:
            servers = await import_extra("svc_daemon.tools.servers", "mcp")
            self._library = servers, servers.list_tools(takes_paths=False)
        servers, listed = self._library
        refuse_other_types(request)
        limits, message = context_of(request).limits, context_of(request).blobs.stage()
        entries = 0
        try:
            async for chunk in stream_bytes(request, max_bytes=message_bytes(limits)):
                # Count these characters to limit the number of JSON entries; base64 text contains none of them.
                entries += chunk.count(b",") + chunk.count(b"[") + chunk.count(b"{")
                if entries > MAX_ENTRIES:
                    raise too_many_entries()
                await message.append(chunk)
            server = servers.build_server(listed, partial(run_tool, Routes(scope)))
            # Replace the headers for which the `mcp` library accepts only one value.
            others = [header for header in scope["headers"] if header[0] not in dict(_INSISTED)]
            plain = {**scope, "headers": [*others, *_INSISTED]}
            answering = servers.answer_message(
                server, plain, _Body(message).receive, send, max_bytes=message_bytes(limits)
            )
            async with self._large if message.size_bytes > limits.json_bytes else nullcontext():
                await until_gone(receive, answering)
        finally:
            await message.discard()


async def run_tool(routes: "Routes", tool: "Tool", arguments: dict[str, Any]) -> "ToolResult":
    """Run a tool for the caller of a request. Raises CallFailed with the request's id."""
    try:
        return await tool.call(routes, arguments)
    except CallFailed as failure:
        failure.request_id = routes.request_id
        logger.info("a tool was refused", extra={"fields": {"tool": tool.name, "code": failure.code}})
        raise
    except Exception as error:
        logger.exception("unexpected %s in %s", type(error).__name__, tool.name)
        raise routes.failure(service_error(error)) from error


class _Bytes(Protocol):
    """Bytes in memory or in a stored file."""

    @property
    def size_bytes(self) -> int: ...

    async def read(self, offset_bytes: int, most_bytes: int) -> bytes: ...


class _InMemory:
    """Bytes in memory, read like a stored file."""

    def __init__(self, data: bytes) -> None:
        self.size_bytes = len(data)
        self._data = data

    async def read(self, offset_bytes: int, most_bytes: int) -> bytes:
        """Read up to `most_bytes` bytes from the offset."""
        return self._data[offset_bytes : offset_bytes + most_bytes]


class _Body:
    """Passes a complete body to an ASGI application in pieces, as a server does."""

    def __init__(self, data: _Bytes) -> None:
        self._data = data
        self._read_bytes = 0
        self._ended = False

    async def receive(self) -> Message:
        """Return the next piece of the body. After the last piece, wait forever instead of reporting a disconnect."""
        if self._ended:
            await asyncio.Event().wait()
        piece = await self._data.read(self._read_bytes, _CHUNK_BYTES)
        self._read_bytes += len(piece)
        self._ended = self._read_bytes >= self._data.size_bytes
        return {"type": "http.request", "body": piece, "more_body": not self._ended}


@dataclass(slots=True)
class _Gathered:
    """A route's response in memory."""

    head: list[Header] = field(default_factory=list)
    body: bytearray = field(default_factory=bytearray)

    async def send(self, message: Message) -> None:
        self.head += message.get("headers", ())
        self.body += message.get("body", b"")


class Routes:
    """Lets tools call this process's own API, with the key of a request's caller."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        kept = (headers.AUTHORIZATION.lower().encode(), b"host")
        self._headers = [header for header in scope["headers"] if header[0] in kept]
        self._stopping: asyncio.Event = scope["app"].state.stopping
        self.request_id = request_id_of(scope)

    async def call(self, call: Call) -> CallAnswer:
        """Call a route of the API. Raises CallFailed."""
        sent = [(b"content-type", b"application/json")]
        if call.idempotency_key is not None:
            # The API validates the idempotency key.
            sent.append((headers.IDEMPOTENCY_KEY.lower().encode(), call.idempotency_key.encode("utf-8", "replace")))
        body = b"" if call.body is None else json.dumps(call.body).encode()
        answer = await self._ask(call.method, unquote(call.path), urlencode(call.query, errors="replace"), sent, body)
        replayed = Headers(raw=answer.head).get(headers.IDEMPOTENT_REPLAYED) == "true"
        return CallAnswer(parse_json(answer.body), is_replay=replayed)

    async def send_bytes(self, upload_url: str, data: bytes) -> None:
        """Send all bytes of an upload session; raises CallFailed."""
        await self._ask("PUT", urlsplit(upload_url).path, "", [], data)

    async def read_file(self, path: str) -> File:
        """Raise CallFailed, because the service can't read files on the client's machine."""
        message = f"{path!r} can only be read by `svc mcp`, on the machine where it is; send contentBase64 instead."
        raise self.failure(refusal("path", message))

    async def pause(self, seconds: float) -> None:
        """Wait for some seconds. Raises CallFailed `shutting_down` if the service stops."""
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return
        raise self.failure(ServiceError(ErrorCode.SHUTTING_DOWN))

    def failure(self, error: ServiceError) -> CallFailed:
        """Convert the error to the CallFailed that the tool raises."""
        return CallFailed({**error.as_error(), "details": error.details}, self.request_id)

    async def _ask(self, method: str, path: str, query: str, sent: list[Header], body: bytes) -> _Gathered:
        """Send the request. After temporary errors, repeat the request for up to `PATIENCE_S` seconds."""
        clock = asyncio.get_running_loop().time
        end_s = clock() + PATIENCE_S
        while True:
            answer = _Gathered()
            scope = {
                **self._scope,
                "method": method,
                "path": path,
                "raw_path": path.encode("utf-8", "replace"),
                "query_string": query.encode(),
                "headers": [*self._headers, *sent, (b"content-length", b"%d" % len(body))],
                "path_params": {},
            }
            try:
                # Call the router without the middleware, so that exceptions of the handler can be caught here.
                await self._scope["app"].router(scope, _Body(_InMemory(body)).receive, answer.send)
            except ServiceError as error:
                if error.code not in _PASSING or clock() > end_s:
                    raise self.failure(error) from error
                await self.pause(error.details.get("retry_after_seconds", PAUSE_S))
            else:
                return answer
