"""Counts what a daemon asks of PostgreSQL, S3 and Milvus: statements by its log, requests by a proxy, and calls."""

import re
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg

from tests.cluster.cutting import Cutter
from tests.cluster.postgres import PostgresEngine

#: Has milvus-lite write the name of each call to a file in its folder.
COUNTED_CALLS = """
import grpc
class Calls(grpc.ServerInterceptor):
    def intercept_service(self, continuation, details):
        with open("calls", "a") as calls:
            calls.write(details.method.rpartition("/")[2] + "\\n")
        return continuation(details)
serve = grpc.server
grpc.server = lambda *arguments, **named: serve(*arguments, **{**named, "interceptors": (Calls(),)})
"""
_STATEMENT = re.compile(r"^\S+ LOG:  (?:statement|execute [^:]+): (.*)$", re.MULTILINE)
_REQUEST = re.compile(rb"(GET|PUT|HEAD|POST|DELETE) (\S+) HTTP/1\.1\r\n")
#: What a node does every half second or two whether or not there is work, and the look at its queue from outside.
_IDLE = re.compile(r"SELECT 1$|SELECT CAST\(EXTRACT|SELECT status, COUNT|SELECT pg_sleep|ALTER|SELECT pg_reload")
_CONTROL = re.compile(r"BEGIN|COMMIT|ROLLBACK|RELEASE|SAVEPOINT")


class CountingProxy(Cutter):
    """Passes requests of HTTP/1.1 on, and counts them by kind; one whose query has `list-type` is a LIST."""

    def __init__(self, port: int) -> None:
        self.requests: Counter[str] = Counter()
        super().__init__(port)

    def _send(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(1 << 20):
                for method, target in _REQUEST.findall(data):
                    self.requests["LIST" if b"list-type" in target else method.decode()] += 1
                server.sendall(data)
        with suppress(OSError):
            server.shutdown(socket.SHUT_WR)


class StatementLog:
    """The statements in the log of a PostgreSQL, each of which took one round trip."""

    def __init__(self, engine: PostgresEngine) -> None:
        self._engine = engine
        self._path = engine.folder / "engine.log"
        self._begin = 0

    @contextmanager
    def logging(self) -> Iterator[None]:
        """Have the server log each statement within the block."""
        self._set("all")
        self._begin = self._path.stat().st_size
        yield
        self._set("none")

    def count(self) -> Counter[str]:
        """Round trips of the last block, and the statements among them that are not about transactions."""
        text = self._path.read_bytes()[self._begin :].decode(errors="replace")
        sent = [found for found in _STATEMENT.findall(text) if not _IDLE.match(found)]
        statements = [found for found in sent if not _CONTROL.match(found)]
        words = Counter(found.split(maxsplit=1)[0] for found in statements)
        commits = sum(found.startswith("COMMIT") for found in sent)
        return Counter({"round_trips": len(sent), "statements": len(statements), "COMMIT": commits, **words})

    def _set(self, which: str) -> None:
        with psycopg.connect(self._engine.url(), autocommit=True) as admin:
            admin.execute(f"ALTER SYSTEM SET log_statement = '{which}'")
            admin.execute("SELECT pg_reload_conf()")
            # A connection reads its settings before its next statement.
            admin.execute("SELECT pg_sleep(0.5)")


def count_calls(folder: Path) -> Counter[str]:
    """All calls of a Milvus with `COUNTED_CALLS` so far, by name."""
    path = folder / "calls"
    return Counter(path.read_text().split()) if path.exists() else Counter()
