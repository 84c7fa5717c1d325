"""The `mcp` client before a daemon inside the test's process."""

import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client
from mcp_types import CallToolResult, Tool

from tests.api.daemons import Daemon
from tests.tools import data_of, encoded, http_client, refusal_of

HEAD = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


class Caller:
    """One key's way to the tools."""

    def __init__(self, daemon: Daemon, key: str | None = None, mode: str = "auto") -> None:
        self.daemon = daemon
        self._key = daemon.key if key is None else key
        self._mode = mode

    def tools(self) -> list[Tool]:
        async def work() -> list[Tool]:
            async with self.client() as client:
                return (await client.list_tools()).tools

        return self.daemon.loop.run(work())

    def call(self, tool: str, **arguments: Any) -> CallToolResult:
        """One call, whatever is answered."""
        return self.call_together((tool, arguments))[0]

    def call_together(self, *calls: tuple[str, dict[str, Any]]) -> list[CallToolResult]:
        """Calls that run at the same time."""
        return self.daemon.loop.run(self.calling(*calls))

    async def calling(self, *calls: tuple[str, dict[str, Any]]) -> list[CallToolResult]:
        """The same, to be awaited."""
        async with self.client() as client:
            return list(await asyncio.gather(*(client.call_tool(tool, arguments) for tool, arguments in calls)))

    def data(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The data of a call that succeeds."""
        return data_of(self.call(tool, **arguments))

    def wait(self, *source_ids: str) -> dict[str, Any]:
        """The states of these sources, once they have settled."""
        return self.data("svc-source-status", sourceIds=list(source_ids), waitSeconds=30)

    def refuse(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The error of a call that fails."""
        return refusal_of(self.call(tool, **arguments))

    def upload(self, data: bytes, bucket: str = "inbox", **arguments: Any) -> dict[str, Any]:
        """The data of an upload that succeeds."""
        file = {"filename": "notes.md", "contentBase64": encoded(data), "bucket": bucket}
        return self.data("svc-upload-file", **(file | arguments))

    def client(self) -> AbstractAsyncContextManager[Client]:
        """A client on the daemon's loop."""
        transport = httpx2.ASGITransport(self.daemon.app)
        return http_client("http://localhost", self._key, self._mode, transport)


@contextmanager
def without_library() -> Iterator[None]:
    """As where the extra is not installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "svc_daemon.tools.servers", None)
        yield


def post(daemon: Daemon, tool: str, *, key: str | None = None, **arguments: Any) -> httpx.Response:
    """The bare request of a call, without a client around it."""
    params = {"name": tool, "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return daemon.ask("POST", "/mcp", key=key, content=json.dumps(message), headers=HEAD)


def refused(daemon: Daemon, tool: str, **arguments: Any) -> dict[str, Any]:
    """The error of a bare call."""
    answer = post(daemon, tool, **arguments)
    assert answer.status_code == 200, answer.text
    return refusal_of(CallToolResult.model_validate(answer.json()["result"]))
