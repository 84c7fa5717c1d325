"""Calls the API for the tools of `svc mcp`, with a new connection for each tool call.

`svc mcp` may run for days. Meanwhile the daemon may move to another port, and another program may listen on the old
port. So each tool call checks which service answers before it sends the key.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from threading import Lock
from typing import Any, TypeVar

from svc_cli.client.api import Client
from svc_cli.client.new_files import BytesContent
from svc_cli.client.transport import Request
from svc_cli.errors import NetworkFailed, SvcError
from svc_cli.mcp.folders import Folders
from svc_daemon.tools.api_calls import Call, CallAnswer, CallFailed, File
from svc_daemon.tools.arguments import ToolResult
from svc_daemon.tools.catalogue import Tool

T = TypeVar("T")
Connect = Callable[[], AbstractContextManager[Client]]


async def run_tool(connect: Connect, folders: Folders, tool: Tool, arguments: dict[str, Any]) -> ToolResult:
    """Run a tool with a connection of its own. Raises CallFailed."""
    calls = ToolCalls(connect, folders)
    try:
        return await tool.call(calls, arguments)
    except SvcError as error:  # a response lacks a field that the tool reads
        raise failure(error) from error
    finally:
        calls.close()


class ToolCalls:
    """Makes the API calls of one tool call."""

    def __init__(self, connect: Connect, folders: Folders) -> None:
        self._connect = connect
        self._folders = folders
        self._open = ExitStack()
        self._client: Client | None = None
        self._lock = Lock()

    def close(self) -> None:
        """Close all connections, which also ends requests that are still running."""
        if self._client is not None:
            self._client.stop()
        self._open.close()

    async def call(self, call: Call) -> CallAnswer:
        """Send a request to the API. Raises CallFailed."""
        request = Request(
            method=call.method,
            path=call.path,
            params=call.query,
            json=call.body,
            idempotency_key=call.idempotency_key,
            silence_s=call.silence_s,
            # Only requests that create something have a key.
            is_create=call.idempotency_key is not None,
        )
        answer = await self._do(lambda client: client.send(request))
        return CallAnswer(answer.body, is_replay=answer.is_replay)

    async def send_bytes(self, upload_url: str, data: bytes) -> None:
        """Send all bytes of an upload session. Raises CallFailed."""
        await self._do(lambda client: client.send_bytes(upload_url, BytesContent(data)))

    async def read_file(self, path: str) -> File:
        """Read a file in the allowed folders. Raises CallFailed."""
        limits = (await self.call(Call(method="GET", path="/v1/limits"))).body["limits"]
        try:
            name, data = await asyncio.to_thread(self._folders.read, path, limits["file_bytes"]["value"])
        except SvcError as error:
            raise failure(error) from error
        return File(name, data)

    async def pause(self, seconds: float) -> None:
        """Wait without blocking the event loop."""
        await asyncio.sleep(seconds)

    async def _do(self, work: Callable[[Client], T]) -> T:
        """Run a call of the client in a thread. If the task is canceled, the thread runs until `close`."""
        try:
            return await asyncio.to_thread(self._try, work)
        except SvcError as error:
            raise failure(error) from error

    def _try(self, work: Callable[[Client], T]) -> T:
        client = self._connected()
        try:
            return work(client)
        except NetworkFailed as error:
            if not error.is_dead:
                raise
            return work(self._connected(dead=client))

    def _connected(self, dead: Client | None = None) -> Client:
        """Return the open client. Connects if there is none, or if it is `dead`, a client whose connection broke."""
        with self._lock:
            if self._client is None or self._client is dead:
                # Don't close the old client here, because another thread may be using it. `close` closes both.
                self._client = None
                self._client = self._open.enter_context(self._connect())
            return self._client


def failure(error: SvcError) -> CallFailed:
    """Convert an error of the client to the error of a tool."""
    body = {name: value for name, value in error.body().items() if value is not None}
    return CallFailed(body, error.request_id)
