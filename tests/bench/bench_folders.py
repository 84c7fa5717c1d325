"""A folder of small files by `svc upload`: with the shipped limits, and without them beside a bare client and server.

The bare client sends the same bodies (creates, PUTs, finalizes) over as many connections to a stack that reads them and
stores nothing.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from svc_cli.client.batches import Member, manifest_of
from svc_cli.client.uploads import Description
from tests.acceptance.installations import Finished, Installation
from tests.bench.bench_uploads import bare_server
from tests.bench.installations import UNLIMITED
from tests.bench.loads import Load, run_requests
from tests.bench.machines import report
from tests.corpus import Prose

BATCH = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--size-bytes", type=int, default=4096)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--folder", type=Path, default=None, help="where the data directories are made")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name, bare_server() as bare_url:
        folder = Path(name)
        bodies = make_files(folder / "files", options.files, options.size_bytes)
        bare = _send_bare(bare_url, bodies, options.jobs)
        results = {
            "shipped_limits": _upload(Installation(folder / "shipped"), folder, options),
            "without_limits": _upload(Installation(folder / "raised", **UNLIMITED), folder, options),
            "bare": {"seconds": round(bare.seconds, 2), "files_per_second": round(len(bodies) / bare.seconds, 1)},
        }
        rate = results["without_limits"]["accepted_files_per_second"] / results["bare"]["files_per_second"]
        parameters = {"files": options.files, "size_bytes": options.size_bytes, "jobs": options.jobs}
        report("folders", parameters, {**results, "share_of_bare": round(rate, 3)}, folder)


def make_files(folder: Path, count: int, size_bytes: int) -> list[bytes]:
    """Markdown files in subfolders of 100, each another; their contents."""
    text = " ".join(Prose("folders").paragraphs(size_bytes // 100)).encode()
    bodies = []
    for number in range(count):
        body = (b"# Note %06d\n\n" % number + text)[:size_bytes]
        path = folder / f"{number // 100:03}" / f"{number % 100:02}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
        bodies.append(body)
    return bodies


def _upload(daemon: Installation, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Time the command until all is accepted, then until all is ready; count what was refused."""
    daemon.start()
    try:
        words = ("upload", "files", "-b", "bench", "-j", str(options.jobs), "--json", "--timeout", "30m")
        accepted, accepted_s = _timed(daemon, folder, *words, "--wait", "accepted")
        ready, ready_s = _timed(daemon, folder, *words)
        refusals = sum('"status":429' in line for line in daemon.files.log.read_text(encoding="utf-8").splitlines())
    finally:
        daemon.clear()
    return {
        "accepted_s": round(accepted_s, 2),
        "ready_s": round(accepted_s + ready_s, 2),
        "accepted_files_per_second": round(options.files / accepted_s, 1),
        "refused": refusals,
        "created": accepted.json["counts"]["created"],
        "ready": ready.json["counts"]["ready"],
    }


def _timed(daemon: Installation, folder: Path, *words: str) -> tuple[Finished, float]:
    begin_s = time.perf_counter()
    process = daemon.spawn_svc(*words, cwd=folder)
    out, err = process.communicate()
    took_s = time.perf_counter() - begin_s
    if process.returncode:
        raise RuntimeError(f"svc ended with {process.returncode}: {err}")
    return Finished(process.returncode, out, err), took_s


def _send_bare(base_url: str, bodies: list[bytes], clients: int) -> Load:
    """The same requests, as bytes, to a stack that forgets them."""
    requests = []
    for start in range(0, len(bodies), BATCH):
        some = bodies[start : start + BATCH]
        described = [
            Description(filename=f"{number}.md", title=f"files/{number}.md", sha256="0" * 64)
            for number in range(start, start + len(some))
        ]
        manifest = manifest_of([Member(each, len(body)) for each, body in zip(described, some, strict=True)], "key")
        requests.append(_request("POST", "/v1/buckets/bench/batches", json.dumps(manifest).encode()))
        requests += [_request("PUT", f"/storage/upl_{'0' * 26}/{'0' * 64}", body) for body in some]
        requests.append(_request("POST", "/v1/buckets/bench/batches/bat/finalize", b"{}"))
    return run_requests(base_url, clients, requests)


def _request(method: str, path: str, body: bytes) -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Content-Type: application/octet-stream\r\n\r\n".encode() + body


if __name__ == "__main__":
    main()
