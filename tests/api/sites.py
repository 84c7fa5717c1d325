"""A small web site whose pages a test can change, and a receiver of webhooks that answers as it is asked to."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.api.daemons import NOTES, Daemon
from tests.fetch.servers import Exchange, Seen, Server, serving
from tests.samples import make_pdf

PAGE = b"""<!doctype html>
<html lang="en"><head><title>Quays &amp;
 stones</title></head><body>
<nav><ul><li><a href="/">Imprint</a></li><li><a href="/shop">Basket</a></li></ul></nav>
<article><h1>Quays</h1>
<p>The ochre quay was built of grey stone, which ships had carried down the river for longer than a year.</p>
<h2>Repairs</h2>
<p>After the flood it was repaired by the town, with <a href="/bricks">vermilion bricks</a> from the works nearby.</p>
<p>Since then it has stood as it is, and nobody has asked for another one in its place or beside it.</p>
</article>
<footer>All rights reserved by the harbour.</footer>
</body></html>
"""
DAY = 86_400
PDF = b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\n"


@dataclass(slots=True)
class Item:
    """What is at one path."""

    body: bytes
    content_type: str
    #: An answer of this status and no other, where it is not 200.
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Site:
    """What the server answers with, by path."""

    server: Server
    items: dict[str, Item]

    def url(self, path: str) -> str:
        return self.server.url(path)

    def put(self, path: str, body: bytes, content_type: str = "text/html", status: int = 200, **headers: str) -> str:
        """Change what is at the path; its URL."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.items[path] = Item(body, content_type, status, named)
        return self.url(path)


@contextmanager
def hosting() -> Iterator[Site]:
    items = {
        "/notes.md": Item(NOTES, "text/markdown", headers={"etag": '"v1"', "last-modified": "Thu, 01 Jan 2026"}),
        "/page": Item(PAGE, "text/html; charset=utf-8"),
        "/index.php": Item(PAGE, "text/html"),
        "/file.pdf": Item(PDF, "application/pdf"),
        "/paper.pdf": Item(make_pdf(["The umber quay was built of grey stone."]), "application/pdf"),
        "/empty": Item(b"", "text/plain"),
        "/blank.txt": Item(b" \n", "text/plain"),
        "/moved": Item(b"", "text/plain", 302, {"location": "/notes.md"}),
    }
    with serving(lambda exchange: _answer(items, exchange)) as server:
        yield Site(server, items)


def _answer(items: dict[str, Item], exchange: Exchange) -> None:
    """As a host does that knows conditional requests."""
    item = items.get(exchange.request.path)
    if item is None:
        exchange.answer(404, b"<h1>Not here</h1>", content_type="text/html")
    elif item.headers.get("etag") and exchange.request.headers.get("if-none-match") == item.headers["etag"]:
        exchange.head(304, item.headers)
    else:
        exchange.answer(item.status, item.body, content_type=item.content_type, **item.headers)


@dataclass(slots=True)
class Receiver:
    """Somebody who is called back."""

    server: Server

    @property
    def url(self) -> str:
        return self.server.url("/hook")

    @property
    def calls(self) -> list[Seen]:
        return self.server.requests


@contextmanager
def receiving(*statuses: int) -> Iterator[Receiver]:
    """A receiver that answers with these statuses, one a call, and with 204 after them."""
    answers = list(statuses)
    with serving(lambda exchange: exchange.answer(answers.pop(0) if answers else 204)) as server:
        yield Receiver(server)


def add(daemon: Daemon, url: str, route: str = "pages", every: int = DAY, **refresh: Any) -> str:
    """Create a source that is fetched again at this interval, wait until it is ready, and return its id."""
    body = {"url": url, "refresh": {"every_seconds": every, **refresh}}
    source_id = str(daemon.post(f"/v1/buckets/inbox/{route}", 201, json=body)["id"])
    daemon.wait_ready(source_id)
    return source_id


def schedule(daemon: Daemon, source_id: str) -> dict[str, Any]:
    found: dict[str, Any] = daemon.source(source_id)["refresh"]
    return found


def try_again(daemon: Daemon, source_id: str, seconds: float = 1.2 * DAY) -> dict[str, Any]:
    """Set the clock ahead, wait until the source was tried, and return its schedule."""
    before = schedule(daemon, source_id)["tried_at"]
    daemon.advance(seconds)
    daemon.wait(lambda: schedule(daemon, source_id)["tried_at"] != before, "the source is tried")
    return schedule(daemon, source_id)


def updates(daemon: Daemon) -> list[dict[str, Any]]:
    """What the events say of refreshes."""
    events = daemon.show("/v1/events", types="source.updated")["data"]
    return [event["data"]["refresh"] for event in events if "refresh" in event["data"]]
