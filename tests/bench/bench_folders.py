"""A folder of small Markdown files by `svc upload` and by a first `svc sync`, with the shipped limits and without.

Each on a fresh daemon that has read one document. `processor_ms` and what follows it are of each file. `--bare` adds a
bare client that sends the bodies of the plain way (creates, PUTs, finalizes) to a stack that reads and forgets them.
"""

import argparse
import json
import time
from pathlib import Path

from svc_cli.client.batches import Member, manifest_of
from svc_cli.client.new_files import Description
from tests.acceptance.calls import take_in
from tests.bench.bench_uploads import bare_server
from tests.bench.loads import Load, run_requests
from tests.bench.sides import Row, Side, each_side, read_side_options, report_rows
from tests.conftest import UNLIMITED
from tests.corpus import Prose

BATCH = 100
WITHOUT_LIMITS = "without"
LIMITS = {"shipped": {}, WITHOUT_LIMITS: UNLIMITED}
#: How exact the moment is when all was accepted.
LOOK_EVERY_S = 0.25


def main() -> None:
    options = read_side_options(
        __doc__, files=1000, size_bytes=4096, commands=["upload", "sync"], limits=[*LIMITS], bare=False
    )
    rows = [
        {"side": side.name, "command": command, "limits": limits} | _take_in(side, command, options)
        for command in options.commands
        for limits in options.limits
        for side in each_side(options, LIMITS[limits])
    ]
    if options.bare:
        bare = _send_bare(make_bodies(options.files, options.size_bytes), clients=4)
        rate = round(options.files / bare.seconds, 1)
        rows.append({"side": "bare", "accepted_s": round(bare.seconds, 2), "files_per_second": rate})
    report_rows("folders", options, rows)


def make_files(folder: Path, count: int, size_bytes: int) -> None:
    """Markdown files in subfolders of 100, each another."""
    for number, body in enumerate(make_bodies(count, size_bytes)):
        path = folder / f"{number // 100:03}" / f"{number % 100:02}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)


def make_bodies(count: int, size_bytes: int) -> list[bytes]:
    text = " ".join(Prose("folders").paragraphs(1 + size_bytes // 100)).encode()
    return [(b"# Note %06d\n\n" % number + text)[:size_bytes] for number in range(count)]


def _take_in(side: Side, command: str, options: argparse.Namespace) -> Row:
    """One command that waits until all is ready; when all was accepted is what the daemon counts meanwhile."""
    make_files(side.root / "files", options.files, options.size_bytes)
    accepted_s: list[float] = []
    with side.client() as client:
        # The first document starts what reads documents.
        take_in(client, "warm", "warm.md", b"# Warm\n\nSome text.")
        client.put("/v1/buckets/bench").raise_for_status()
        begin_s = looked_s = time.perf_counter()

        def look() -> None:
            nonlocal looked_s
            # Few looks, because for each the daemon counts what it has.
            if not accepted_s and time.perf_counter() > looked_s + LOOK_EVERY_S:
                looked_s = time.perf_counter()
                bucket = client.get("/v1/buckets/bench").raise_for_status().json()["bucketStore"]
                if bucket["member_count"] >= options.files:
                    accepted_s.append(looked_s - begin_s)

        cost = side.run_svc(command, "files", "-b", "bench", "--json", "--timeout", "60m", meanwhile=look)
        ready = client.get("/v1/buckets/bench").raise_for_status().json()["bucketStore"]["indexed_member_count"]
    if ready != options.files:
        raise RuntimeError(f"{ready} of {options.files} files are ready: {side.said()}")
    return {
        "accepted_s": round(accepted_s[0] if accepted_s else cost.wall_s, 2),
        "ready_s": round(cost.wall_s, 2),
        "files_per_second": round(options.files / cost.wall_s, 1),
        **cost.used.each_ms(options.files),
        "daemon_mb": round(cost.daemon_mb),
        "tree_mb": round(cost.tree_mb),
    }


def _send_bare(bodies: list[bytes], clients: int) -> Load:
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
    with bare_server() as bare_url:
        return run_requests([bare_url], clients, requests)


def _request(method: str, path: str, body: bytes) -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Content-Type: application/octet-stream\r\n\r\n".encode() + body


if __name__ == "__main__":
    main()
