"""An HTTP server with scripted answers for odd cases: another program or installation, errors, cut connections."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from svc_daemon.paths import DataFiles
from svc_daemon.wire.light.local_daemons import prove

#: A list of no buckets, as the service answers it.
NO_BUCKETS: tuple[int, Any, dict[str, str]] = (
    200,
    {"team_id": "team_1", "buckets": [], "request_id": "req_1"},
    {},
)
#: The secret of the installation of the tests.
SECRET = bytes(range(32))
#: Higher than any process id.
NO_PID = 2**30


@dataclass(frozen=True)
class Raw:
    """Bytes to send as they are, then others again and again, as long as the client reads."""

    start: bytes
    again: bytes = b""
    pause_s: float = 0.0


@dataclass
class OddServer:
    #: Answers by `METHOD path`: status, body (an object becomes JSON), headers; a Raw; or a function of the query that
    #: gives one of them. None cuts the connection.
    answers: dict[str, Any] = field(default_factory=dict)
    #: Every request: method, path, headers.
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    #: Every request that has a body: path, headers, body.
    calls: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    port: int = 0
    is_over: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def keys_seen(self) -> set[str]:
        return {headers["Authorization"] for _, _, headers in self.requests if "Authorization" in headers}

    def answer_health(self, installation_id: str = "ins_odd", version: str = "0.1.0", api: str = "1-1") -> None:
        """Answer health checks as a daemon does, but without a proof of the installation's secret."""
        facts = {"status": "ok", "installation_id": installation_id, "version": version, "api": api}
        self.answers["GET /healthz"] = (200, facts, {})

    def prove_health(self, secret: bytes, installation_id: str) -> None:
        """Answer health checks as the daemon that has the secret."""
        self.answer_health(installation_id)
        status, facts, headers = self.answers["GET /healthz"]

        def answer(query: str) -> tuple[int, Any, dict[str, str]]:
            (nonce,) = parse_qs(query)["nonce"]
            return status, {**facts, "proof": prove(secret, installation_id, self.port, nonce)}, headers

        self.answers["GET /healthz"] = answer


def announce(files: DataFiles, odd: OddServer, pid: int) -> None:
    """Announce a daemon at the address of the odd server."""
    facts = {"pid": pid, "base_url": odd.url, "version": "0.1.0", "installation_id": "ins_1"}
    files.daemon.write_text(json.dumps(facts))


@contextmanager
def serving(port: int = 0) -> Iterator[OddServer]:
    """Run an odd server on this port, or on a free one, until the block ends."""
    served = OddServer()
    server = ThreadingHTTPServer(("127.0.0.1", port), _handler_of(served))
    served.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield served
    finally:
        served.is_over.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _handler_of(served: OddServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path, _, query = self.path.partition("?")
            if sent:
                served.calls.append((path, dict(self.headers), sent))
            served.requests.append((self.command, path, dict(self.headers)))
            planned = served.answers.get(f"{self.command} {path}", (404, {}, {}))
            planned = planned.pop(0) if isinstance(planned, list) else planned
            planned = planned(query) if callable(planned) else planned
            if planned is None:
                self.close_connection = True
                return
            if isinstance(planned, Raw):
                self._send_raw(planned)
                return
            status, body, headers = planned
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(data)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def _send_raw(self, planned: Raw) -> None:
            self.close_connection = True
            with suppress(OSError):
                self.wfile.write(planned.start)
                while planned.again and not served.is_over.wait(planned.pause_s):
                    self.wfile.write(planned.again)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer

        def log_message(self, format: str, *args: object) -> None:
            """Keep the test's output clean."""

    return Handler


#: Answers to a health check that hold text or numbers that Python's parsers let pass.
_FORGED: list[dict[str, Any]] = [
    {"installation_id": "\ud800"},
    {"installation_id": "ins_1", "proof": "\udfff"},
    {"installation_id": "ins_1", "proof": "\u00e9"},
    {"installation_id": "ins_1", "proof": ["x"]},
    {"installation_id": ["ins_1"]},
    {"installation_id": "ins_1", "version": "9" * 5000},
    {"installation_id": "ins_1", "api": "9" * 5000 + "-1"},
    {"installation_id": "ins_1", "version": "\x1b]0;x\x07"},
]


def _answering(answer: Any) -> Callable[[OddServer], object]:
    return lambda odd: odd.answers.update({"GET /healthz": answer})


#: What answers at the address of the daemon that has ended.
IMPOSTORS: dict[str, Callable[[OddServer], object]] = {
    "page": _answering((200, b"<html>", {})),
    "deep": _answering((200, b"[" * 5000, {})),
    "nothing": _answering(None),
    "an error": _answering((503, {}, {})),
    "another id": lambda odd: odd.answer_health("ins_2"),
    "no proof": lambda odd: odd.answer_health("ins_1"),
    "a proof with another secret": lambda odd: odd.prove_health(bytes(32), "ins_1"),
    **{f"forged {number}": _answering((200, health, {})) for number, health in enumerate(_FORGED)},
}
