"""Durable one-call uploads a second from 1 and from 8 clients, beside what the bare stack parses and hashes."""

import argparse
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from tests.acceptance.calls import make_bucket
from tests.acceptance.forks import ROOT
from tests.acceptance.installations import Installation, wait_until
from tests.bench.fillings import make_document
from tests.bench.installations import measured, read_options
from tests.bench.loads import Load, MakeRequest, run_load
from tests.bench.machines import report
from tests.corpus import Prose

BUCKET = "bench"
#: Each request has its own number here, of as many digits: another document, under another key.
_PLACE = b"@@@@@@@@@@"


def main() -> None:
    options = read_options(__doc__, seconds=8.0, size_bytes=10_240, clients=[1, 8])
    with bare_server() as bare_url, measured(options.folder) as daemon:
        with daemon.client() as client:
            make_bucket(client, BUCKET)
        results = {str(clients): _compare(daemon, bare_url, clients, options) for clients in options.clients}
        report("uploads", vars(options), {"clients": results}, daemon.root)


def _compare(daemon: Installation, bare_url: str, clients: int, options: argparse.Namespace) -> dict[str, Any]:
    bare = _load(bare_url, "none", clients, options, "bare")
    before = _health(daemon)["writer"]
    durable = _load(daemon.base_url, daemon.key, clients, options, "durable")
    after = _health(daemon)["writer"]
    commits, operations = after["commits"] - before["commits"], after["operations"] - before["operations"]
    # The next load must not pay for the documents of this one.
    wait_until(lambda: not any(_health(daemon)["queue"].values()), "the end of indexing", timeout_s=900, every_s=0.5)
    return {
        "bare": bare.figures(),
        "durable": durable.figures(),
        "share_of_bare": round(durable.requests / durable.seconds / (bare.requests / bare.seconds), 3),
        "commits": commits,
        "operations_per_commit": round(operations / commits, 2),
    }


def _load(base_url: str, key: str, clients: int, options: argparse.Namespace, name: str) -> Load:
    for run, seconds in ((f"warm-{clients}", 0.5), (f"{name}-{clients}", options.seconds)):
        load = run_load(
            [base_url],
            clients,
            seconds,
            make_uploads(urlsplit(base_url).netloc, key, options.size_bytes, run),
            status=201,
        )
    return load


def make_uploads(host: str, key: str, size_bytes: int, run: str) -> MakeRequest:
    """Makes uploads of Markdown to the bucket; `run` keeps the keys of one run from those of another."""
    number, boundary = _PLACE.decode(), "bench-boundary"
    document = make_document(Prose("uploads"), size_bytes, f"Document {number}").decode()
    body = (
        f"--{boundary}\r\n"
        f'Content-Disposition: form-data; name="file"; filename="{run}-{number}.md"\r\n'
        f"Content-Type: text/markdown\r\n\r\n{document}\r\n--{boundary}--\r\n"
    ).encode()
    head = (
        f"POST /v1/buckets/{BUCKET}/files HTTP/1.1\r\nHost: {host}\r\n"
        f"Authorization: Bearer {key}\r\nIdempotency-Key: {run}-{number}\r\nContent-Length: {len(body)}\r\n"
        f"Content-Type: multipart/form-data; boundary={boundary}\r\n\r\n"
    ).encode()
    template = head + body
    return lambda at: template.replace(_PLACE, b"%010d" % at)


def _health(daemon: Installation) -> dict[str, Any]:
    if (health := daemon.health()) is None:
        raise ConnectionError("the daemon does not answer")
    return health


@contextmanager
def bare_server() -> Iterator[str]:
    """The yardstick on a free port, by its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "tests.bench.bare_app", str(port)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: _listens(port), "the bare server")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


if __name__ == "__main__":
    main()
