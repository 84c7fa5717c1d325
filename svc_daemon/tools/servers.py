"""MCP servers for the tools, built with the optional `mcp` library.

The library's high-level API would add a prefix to the tools' errors, which must be plain JSON. So this module uses the
low-level API.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp_types import Tool as ListedTool

from svc_daemon.tools.api_calls import CallFailed
from svc_daemon.tools.arguments import ToolResult
from svc_daemon.tools.catalogue import INSTRUCTIONS, TOOLS, Tool
from svc_daemon.wire.light.errors import shorten
from svc_daemon.wire.light.versions import VERSION

#: Runs a tool with unvalidated arguments. Raises CallFailed.
Run = Callable[[Tool, dict[str, Any]], Awaitable[ToolResult]]


def list_tools(*, takes_paths: bool) -> ListToolsResult:
    """Build the response to a request to list tools."""
    return ListToolsResult(
        tools=[
            ListedTool(
                name=tool.name,
                title=tool.title,
                description=tool.description,
                input_schema=tool.input_schema(takes_paths=takes_paths),
                output_schema=tool.output_schema(),
                annotations=ToolAnnotations(
                    title=tool.title,
                    read_only_hint=tool.reads_only,
                    destructive_hint=False,
                    idempotent_hint=True,
                    open_world_hint=False,
                ),
            )
            for tool in TOOLS
        ]
    )


def build_server(listed: ListToolsResult, run: Run) -> Server[Any]:
    """Build an MCP server with the tools, for one caller."""
    tools = {tool.name: tool for tool in TOOLS}
    schemas = {tool.name: tool.input_schema for tool in listed.tools}

    async def on_list(_context: ServerRequestContext[Any], _params: PaginatedRequestParams | None) -> ListToolsResult:
        return listed

    async def on_call(_context: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
        if params.name not in tools:
            raise MCPError(INVALID_PARAMS, shorten(f"There is no tool {params.name!r}."))
        try:
            result = await run(tools[params.name], params.arguments or {})
        except CallFailed as failure:
            # Errors are text only, since some clients check structured content against the result's schema.
            return CallToolResult(content=[_text(json.dumps(failure.envelope(), default=str))], is_error=True)
        return CallToolResult(content=[_text(result.text())], structured_content=result.model_dump(mode="json"))

    return Server(
        "svc",
        version=VERSION,
        title="svc",
        instructions=INSTRUCTIONS,
        get_tool_input_schema=schemas.get,
        on_list_tools=on_list,
        on_call_tool=on_call,
    )


async def answer_message(server: Server[Any], scope: Any, receive: Any, send: Any, *, max_bytes: int) -> None:
    """Answer one HTTP request as an ASGI application. No session is kept."""
    manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True, max_request_body_size=max_bytes)
    async with manager.run():
        await manager.handle_request(scope, receive, send)


async def serve_stdio(server: Server[Any]) -> None:
    """Serve one client on standard input and output, until it closes the input."""
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def _text(text: str) -> TextContent:
    return TextContent(type="text", text=text)
