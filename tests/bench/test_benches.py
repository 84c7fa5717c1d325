"""Each benchmark runs and prints one JSON line; the figures of a run this small mean nothing."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.bench.conftest import RunMain
from tests.bench.loads import run_load
from tests.bench.machines import spread_ms
from tests.embed.tiny_models import write_model

SMALL_RUNS = {
    "bench_uploads --seconds 0.3 --clients 2": "clients",
    "bench_folders --files 130 --size-bytes 300": "shipped_limits without_limits share_of_bare",
    "bench_sync --files 120 --moved 5 --rounds 1": "no_op moved first_byte_s",
    "bench_sessions --size-bytes 100000 --rounds 1": "put_ms times_as_long",
    "bench_batches --batches 3 --files 2 --calls 5": "one many times_as_long",
    "bench_ready --documents 2": "p50_ms p95_ms",
    "bench_http_search --chunks 150 --queries 3 --store 300": "chunks store",
    "bench_answers --chunks 150 --questions 3 --clients 2": "chunks",
    "bench_claims": "false_proofs false_alarms",
    "bench_starts --rounds 1": "wall_cpu_ms",
    "bench_deletions --members 4 --shared 1": "answer_ms first_search_ms cascade_s",
    "bench_idle --documents 3 --seconds 0.2": "fresh after_documents",
    "bench_watch --files 5 --saves 2 --seconds 0.2": "save_to_searchable idle",
    "bench_embedding --documents 3 --size-bytes 2000 --uploads 2 --model TINY": "bare daemon share_of_bare ready_alone",
}


@pytest.mark.parametrize("line", SMALL_RUNS, ids=lambda line: line.split()[0])
def test_a_benchmark_prints_one_json_line(line: str, tmp_path: Path, run_main: RunMain) -> None:
    words = [str(write_model(tmp_path / "tiny")) if word == "TINY" else word for word in line.split()]
    printed: dict[str, Any] = json.loads(run_main(*words))
    assert {"benchmark", "parameters", "machine", *SMALL_RUNS[line].split()} <= set(printed)
    assert printed["machine"]["cores"] >= 1


def test_a_spread_has_the_middle_the_tail_and_the_end() -> None:
    assert spread_ms([n / 1000 for n in range(100)]) == {"p50_ms": 50.0, "p95_ms": 95.0, "p99_ms": 99.0, "max_ms": 99.0}
    assert spread_ms([0.001]) == {"p50_ms": 1.0, "p95_ms": 1.0, "p99_ms": 1.0, "max_ms": 1.0}


def test_the_load_client_counts_each_answer_once() -> None:
    seen: list[str] = []

    class Counting(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            seen.append(self.path)
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")

    with ThreadingHTTPServer(("127.0.0.1", 0), Counting) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url, get = f"http://127.0.0.1:{server.server_port}", lambda n: b"GET /%d HTTP/1.1\r\nHost: here\r\n\r\n" % n
        load = run_load(url, 3, 0.2, get, status=200)
        with pytest.raises(ConnectionError, match="not 201"):
            run_load(url, 1, 0.1, get, status=201)
        server.shutdown()
    assert load.requests == len(load.latencies_s) == len(seen) - 1
    assert len(set(seen[: load.requests])) == load.requests
