"""Call MCP tools with the `mcp` library's own client, over HTTP or stdio, and read their results."""

import json
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from tests.samples import make_pdf

NAMES = {"svc-upload-file", "svc-upload-files-batch", "svc-search", "svc-ask", "svc-source-status", "svc-list-buckets"}
#: The pages of a PDF; the answer to the question is on the last.
PAGES = (
    "The harbour of Hexley was dug in the year 1802 by men of the parish.",
    "Its warehouses hold salt, rope and tar; the keeper lives in the middle one.",
    "The cobalt ferry leaves Hexley at seven and takes no horses.",
)
QUESTION, PAGE = "When does the cobalt ferry leave?", 3


def pdf() -> str:
    return encoded(make_pdf(PAGES))


def encoded(data: bytes) -> str:
    return b64encode(data).decode()


@asynccontextmanager
async def http_client(
    base_url: str, key: str, mode: str = "auto", transport: httpx2.AsyncBaseTransport | None = None
) -> AsyncIterator[Client]:
    """Open a client of `/mcp` in this mode of the protocol, such as `auto` or `legacy`."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with (
        httpx2.AsyncClient(headers=headers, transport=transport, trust_env=False, timeout=60) as http,
        Client(streamable_http_client(f"{base_url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def data_of(result: CallToolResult) -> dict[str, Any]:
    """Assert that the call succeeded and has a text, and return its data."""
    assert not result.is_error, text_of(result)
    assert text_of(result)
    return dict(result.structured_content)


def refusal_of(result: CallToolResult) -> dict[str, Any]:
    """Assert that the call failed with a well-formed error, and return the error with its request id."""
    assert result.is_error, text_of(result)
    assert result.structured_content is None
    document = json.loads(text_of(result))
    assert set(document) == {"error", "request_id"}
    error = document["error"]
    assert {"code", "message", "retryable", "details"} <= set(error)
    assert error["message"]
    return {**error, "request_id": document["request_id"]}


async def see_the_whole_job(client: Client) -> None:
    """List the tools, upload a PDF, wait, search and ask, and assert that results cite the right page."""
    assert {tool.name for tool in (await client.list_tools()).tools} >= NAMES
    call = client.call_tool
    file = {"bucketSlugs": ["harbour"], "createMissingBuckets": True, "filename": "harbour.pdf", "contentBase64": pdf()}
    source_id = data_of(await call("svc-upload-file", file))["source_id"]
    waited = data_of(await call("svc-source-status", {"sourceId": source_id, "waitSeconds": 30}))
    assert (waited["ready"], waited["sources"][0]["pages"]) == (True, len(PAGES))
    found = await call("svc-search", {"query": QUESTION, "buckets": ["harbour"]})
    best = data_of(found)["results"][0]
    assert (best["source_id"], best["page"], best["citation"]) == (source_id, PAGE, f"harbour.pdf, page {PAGE}")
    assert "leaves Hexley at seven" in best["passage"]
    assert text_of(found).startswith(f"[1] harbour.pdf, page {PAGE} ")
    asked = await call("svc-ask", {"question": QUESTION})
    answer = data_of(asked)
    (cited,) = answer["citations"]
    assert (answer["grounded"], cited["source_id"], cited["page"]) == (True, source_id, PAGE)
    assert cited["quote"] in PAGES[PAGE - 1]
    assert f"[1] harbour.pdf, page {PAGE} " in text_of(asked)
    buckets = data_of(await call("svc-list-buckets", {}))["buckets"]
    assert [bucket["retrievable"] for bucket in buckets if bucket["slug"] == "harbour"] == [1]
