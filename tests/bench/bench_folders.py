"""A folder of small files by `svc upload`: with the shipped limits, and without them beside a bare client and server.

The bare client sends the same bodies (creates, PUTs, finalizes) over as many connections to a stack that reads them and
stores nothing.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from svc_cli.client.batches import Member, manifest_of
from svc_cli.client.uploads import Description
from tests.acceptance.installations import Installation
from tests.bench.bench_uploads import bare_server
from tests.bench.installations import measured, read_options, run_svc
from tests.bench.loads import Load, run_requests
from tests.bench.machines import report
from tests.conftest import UNLIMITED
from tests.corpus import Prose

BATCH = 100


def main() -> None:
    options = read_options(__doc__, files=10_000, size_bytes=4096, jobs=4)
    results: dict[str, Any] = {}
    for name, variables in (("shipped_limits", {}), ("without_limits", UNLIMITED)):
        with measured(options.folder, variables) as daemon:
            bodies = make_files(daemon.root / "files", options.files, options.size_bytes)
            results[name] = _upload(daemon, options)
    with measured(options.folder, is_running=False) as unused, bare_server() as bare_url:
        bare = _send_bare(bare_url, bodies, options.jobs)
        results["bare"] = {"seconds": round(bare.seconds, 2), "files_per_second": round(len(bodies) / bare.seconds, 1)}
        rate = results["without_limits"]["accepted_files_per_second"] / results["bare"]["files_per_second"]
        report("folders", vars(options), {**results, "share_of_bare": round(rate, 3)}, unused.root)


def make_files(folder: Path, count: int, size_bytes: int) -> list[bytes]:
    """Markdown files in subfolders of 100, each another; their contents."""
    text = " ".join(Prose("folders").paragraphs(size_bytes // 100)).encode()
    bodies = [(b"# Note %06d\n\n" % number + text)[:size_bytes] for number in range(count)]
    for number, body in enumerate(bodies):
        path = folder / f"{number // 100:03}" / f"{number % 100:02}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
    return bodies


def _upload(daemon: Installation, options: argparse.Namespace) -> dict[str, Any]:
    """Time the command until all is accepted, then until all is ready; count what was refused."""
    words = ("upload", "files", "-b", "bench", "-j", str(options.jobs), "--json", "--timeout", "30m")
    accepted, accepted_s = run_svc(daemon, *words, "--wait", "accepted")
    ready, ready_s = run_svc(daemon, *words)
    return {
        "accepted_s": round(accepted_s, 2),
        "ready_s": round(accepted_s + ready_s, 2),
        "accepted_files_per_second": round(options.files / accepted_s, 1),
        "refused": daemon.files.log.read_text(encoding="utf-8").count('"status":429'),
        "created": accepted.json["counts"]["created"],
        "ready": ready.json["counts"]["ready"],
    }


def _send_bare(base_url: str, bodies: list[bytes], clients: int) -> Load:
    """The same requests, as bytes, to a stack that forgets them."""
    requests = []
    for start in range(0, len(bodies), BATCH):
        members = [
            Member(Description(filename=f"{number}.md", title=f"files/{number}.md", sha256="0" * 64), len(body))
            for number, body in enumerate(bodies[start : start + BATCH], start)
        ]
        manifest = json.dumps(manifest_of(members, "key")).encode()
        requests.append(_request("POST", "/v1/buckets/bench/batches", manifest))
        path = f"/storage/upl_{'0' * 26}/{'0' * 64}"
        requests += [_request("PUT", path, body) for body in bodies[start : start + BATCH]]
        requests.append(_request("POST", "/v1/buckets/bench/batches/bat/finalize", b"{}"))
    return run_requests(base_url, clients, requests)


def _request(method: str, path: str, body: bytes) -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Content-Type: application/octet-stream\r\n\r\n".encode() + body


if __name__ == "__main__":
    main()
