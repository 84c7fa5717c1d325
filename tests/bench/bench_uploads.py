"""Durable one-call uploads a second from 1 and from 8 clients, beside what the bare stack parses and hashes."""

import argparse
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.acceptance.calls import make_bucket
from tests.acceptance.forks import ROOT
from tests.acceptance.installations import Installation, wait_until
from tests.bench.installations import running_daemon
from tests.bench.loads import Load, run_load
from tests.bench.machines import report
from tests.bench.uploads import upload_requests

BUCKET = "bench"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--size-bytes", type=int, default=10_240)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--folder", type=Path, default=None, help="where the data directory is made")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(dir=options.folder) as folder,
        bare_server() as bare_url,
        running_daemon(Path(folder)) as daemon,
    ):
        results = {str(clients): _compare(daemon, bare_url, clients, options) for clients in options.clients}
        parameters = {"seconds": options.seconds, "size_bytes": options.size_bytes}
        report("uploads", parameters, {"clients": results}, Path(folder))


def _compare(daemon: Installation, bare_url: str, clients: int, options: argparse.Namespace) -> dict[str, Any]:
    with daemon.client() as client:
        make_bucket(client, BUCKET)
    bare = _load(bare_url, "none", clients, options, "bare")
    before = _writer(daemon)
    durable = _load(daemon.base_url, daemon.key, clients, options, "durable")
    after = _writer(daemon)
    commits, operations = after["commits"] - before["commits"], after["operations"] - before["operations"]
    _wait_idle(daemon)
    return {
        "bare": bare.figures(),
        "durable": durable.figures(),
        "share_of_bare": round(durable.requests / durable.seconds / (bare.requests / bare.seconds), 3),
        "commits": commits,
        "operations_per_commit": round(operations / commits, 2),
    }


def _load(base_url: str, key: str, clients: int, options: argparse.Namespace, name: str) -> Load:
    path = f"/v1/buckets/{BUCKET}/files"
    for run, seconds in ((f"warm-{clients}", 0.5), (f"{name}-{clients}", options.seconds)):
        requests = upload_requests(base_url, path, key, options.size_bytes, run)
        load = run_load(base_url, clients, seconds, requests, status=201)
    return load


def _writer(daemon: Installation) -> dict[str, int]:
    health = daemon.health()
    if health is None:
        raise ConnectionError("the daemon does not answer")
    return dict(health["writer"])


def _wait_idle(daemon: Installation) -> None:
    """The next load must not pay for the documents of the last."""

    def idle() -> bool:
        health = daemon.health()
        return health is not None and health["queue"] == {"queued": 0, "running": 0}

    wait_until(idle, "the end of indexing", timeout_s=900, every_s=0.5)


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
