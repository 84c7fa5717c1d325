"""A server that speaks OpenAI's `/v1/embeddings`, with vectors of its own and any bad habit.

`python -m tests.embed.vector_servers DIMENSION` serves vectors of this length, and prints where.
"""

import hashlib
import json
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, MutableSequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any

from svc_daemon.embed.server_models import PROBE

DIMENSION = 8


@dataclass
class Reply:
    """What is sent in place of vectors."""

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    #: Before the first byte, and between two bytes of the body.
    silence_s: float = 0.0
    drip_s: float = 0.0


@dataclass
class Asked:
    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def texts(self) -> list[str]:
        return list(self.body["input"])


class VectorServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: MutableSequence[Asked] = []
        #: Which model it runs: another one gives other vectors.
        self.model = "one"
        self.dimension = DIMENSION
        #: Added to each number but those of the probe, as if another machine ran the same model.
        self.drift = 0.0
        #: Sent first, one for each request.
        self.replies: list[Reply] = []
        #: Sent in place of vectors wherever it gives a reply.
        self.refuse: Callable[[list[str]], Reply | None] = lambda _: None

    def server_bind(self) -> None:
        # `HTTPServer` would also look up the name of its address.
        TCPServer.server_bind(self)
        self.server_port = self.server_address[1]

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, *_: object) -> None:
        """Who asked went away, as it may."""

    def vector(self, text: str) -> list[float]:
        """Of any length but 1."""
        digest = hashlib.shake_128(f"{self.model} {text}".encode()).digest(self.dimension)
        drift = 0.0 if text == PROBE else self.drift
        return [byte - 128.5 + drift for byte in digest]

    def reply(self, texts: list[str]) -> Reply:
        if self.replies:
            return self.replies.pop(0)
        rows = [{"object": "embedding", "index": n, "embedding": self.vector(text)} for n, text in enumerate(texts)]
        # In any order: each has its index.
        body = {"object": "list", "model": self.model, "data": rows[::-1], "usage": {"total_tokens": 1}}
        return self.refuse(texts) or Reply(body=json.dumps(body).encode())


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body are two writes: together they would wait 40 ms for an acknowledgement.
    disable_nagle_algorithm = True
    server: VectorServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        asked = Asked(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
        self.server.asked.append(asked)
        reply = self.server.reply(asked.texts)
        time.sleep(reply.silence_s)
        self.send_response(reply.status)
        for name, value in ({"Content-Length": str(len(reply.body))} | reply.headers).items():
            self.send_header(name, value)
        self.end_headers()
        self._send(reply)

    def _send(self, reply: Reply) -> None:
        if not reply.drip_s:
            self.wfile.write(reply.body)
            return
        for byte in reply.body:
            time.sleep(reply.drip_s)
            try:
                self.wfile.write(bytes([byte]))
            except OSError:
                return

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def vector_server() -> Iterator[VectorServer]:
    with VectorServer() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()


if __name__ == "__main__":
    with VectorServer() as serving:
        # What a benchmark asks is not kept.
        serving.dimension, serving.asked = int(sys.argv[1]), deque(maxlen=0)
        sys.stdout.write(f"{serving.base_url}\n")
        sys.stdout.flush()
        serving.serve_forever()
