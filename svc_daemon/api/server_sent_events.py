"""Sends server-sent events, for `/v1/events` and for answers that are streamed.

If the client disconnects, the stream is cancelled. An error before the first event becomes an ordinary error response.
sse-starlette 3.0 would save none of that: it sends the head before the first event, so such an error
could only cut the stream, and its 375 lines replace some 40.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from svc_daemon.wire import JsonMapping

T = TypeVar("T")

MEDIA_TYPE = "text/event-stream"
#: The last event of a chat stream in OpenAI's API. Clients wait for this event.
DONE = b"data: [DONE]\n\n"


class EventStream(Response):
    """A response that sends events as they arrive. Raises ClientDisconnect, and exceptions of `events`."""

    def __init__(self, events: AsyncGenerator[bytes, None]) -> None:
        self.status_code, self.background, self._events = 200, None, events
        # These headers keep proxies from caching or buffering the stream.
        self.init_headers({"Content-Type": MEDIA_TYPE, "Cache-Control": "no-cache", "X-Accel-Buffering": "no"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - as ASGI has it
        await until_gone(receive, self._send(send))

    async def _send(self, send: Send) -> None:
        begun = False
        async with aclosing(self._events):
            async for event in self._events:
                if not begun:
                    await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                    begun = True
                await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


def event(data: JsonMapping | str, name: str | None = None, event_id: str | None = None) -> bytes:
    """Encode a server-sent event. A client that reconnects sends the last `event_id` that it has received.

    `data` can be a JSON text in ASCII.
    """
    identified = f"id: {event_id}\n" if event_id else ""
    named = f"event: {name}\n" if name else ""
    # Some parsers treat U+2028 as a line break, so use ASCII only.
    text = data if isinstance(data, str) else json.dumps(data, separators=(",", ":"))
    return f"{identified}{named}data: {text}\n\n".encode()


def comment(event_id: str | None = None) -> bytes:
    """Encode a comment, which keeps an idle connection alive. A client that reconnects continues after `event_id`."""
    return f"id: {event_id}\n: \n\n".encode() if event_id else b": \n\n"


async def until_gone(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of the work. If the client disconnects, cancel the work and raise ClientDisconnect.

    The body of the request must already have been read.
    """
    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_leave(receive))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        for task in (working, leaving):
            task.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _leave(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
