"""Scripted servers of OpenAI's chat API, with valid and faulty responses."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.fetch.servers import Exchange, Script, Server, serving

DONE = b"data: [DONE]\n\n"


def chunk(text: str | None = None, reason: str | None = None, **more: Any) -> bytes:
    delta = {} if text is None else {"content": text}
    return event({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}], **more})


def event(data: Any) -> bytes:
    return b"data: " + json.dumps(data).encode() + b"\n\n"


def saying(*texts: str, reason: str = "stop", usage: dict[str, int] | None = None) -> bytes:
    pieces = b"".join(chunk(text) for text in texts) + chunk(reason=reason)
    return pieces + (event({"choices": [], "usage": usage}) if usage else b"") + DONE


def streaming(*parts: bytes, status: int = 200, content_type: str = "text/event-stream") -> Script:
    """Return a script that sends the parts one by one and closes the connection."""

    def script(exchange: Exchange) -> None:
        exchange.head(status, {"content-type": content_type, "connection": "close"})
        exchange.send(*parts)

    return script


def stalling(*parts: bytes, drip: bytes = b"") -> Script:
    """Return a script that sends the parts, and then nothing, or `drip` repeatedly, until the client disconnects."""

    def script(exchange: Exchange) -> None:
        exchange.head(200, {"content-type": "text/event-stream", "connection": "close"})
        exchange.send(*parts)
        if drip:
            exchange.drip(drip)
        else:
            exchange.connection.recv(1)

    return script


@contextmanager
def chatting(*scripts: Script) -> Iterator[Server]:
    """Run a chat server that responds to each request with the next script, and repeats the last one."""
    waiting = list(scripts)

    def script(exchange: Exchange) -> None:
        (waiting.pop(0) if len(waiting) > 1 else waiting[0])(exchange)

    with serving(script) as server:
        yield server


def question_asked(server: Server) -> str:
    """Return the last message of the last request to the server."""
    return str(json.loads(server.requests[-1].body)["messages"][-1]["content"])


Chat = Callable[[str], str]


def answering(chat: Chat) -> Script:
    """Return a script that streams the chat's answer to the last message, in pieces of three characters."""

    def script(exchange: Exchange) -> None:
        text = chat(json.loads(exchange.request.body)["messages"][-1]["content"])
        streaming(saying(*(text[at : at + 3] for at in range(0, len(text), 3))))(exchange)

    return script
