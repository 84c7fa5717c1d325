"""Each benchmark runs and prints one JSON line; the figures of a run this small mean nothing."""

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.acceptance.forks import ROOT
from tests.bench.loads import run_load
from tests.bench.machines import spread_ms
from tests.embed.tiny_models import write_model

SMALL_RUNS = [
    ("bench_uploads", ["--seconds", "0.3", "--clients", "2"], {"clients"}),
    ("bench_folders", ["--files", "130", "--size-bytes", "300"], {"shipped_limits", "without_limits", "share_of_bare"}),
    ("bench_sync", ["--files", "120", "--moved", "5", "--rounds", "1"], {"no_op", "moved", "first_byte_s"}),
    ("bench_sessions", ["--size-bytes", "100000", "--rounds", "1"], {"put_ms", "times_as_long"}),
    ("bench_batches", ["--batches", "3", "--files", "2", "--calls", "5"], {"one", "many", "times_as_long"}),
    ("bench_ready", ["--documents", "2"], {"p50_ms", "p95_ms"}),
    ("bench_http_search", ["--chunks", "150", "--queries", "3", "--store", "300"], {"chunks", "store"}),
    ("bench_answers", ["--chunks", "150", "--questions", "3", "--clients", "2"], {"chunks"}),
    ("bench_claims", [], {"false_proofs", "false_alarms"}),
    ("bench_commands", ["--rounds", "1"], {"interpreter_ms", "beyond_it_ms"}),
    ("bench_starts", ["--rounds", "1"], {"first_ms", "later"}),
    ("bench_deletions", ["--members", "4", "--shared", "1"], {"answer_ms", "first_search_ms", "cascade_s"}),
    ("bench_idle", ["--documents", "3", "--seconds", "0.2"], {"fresh", "after_documents"}),
    ("bench_watch", ["--files", "5", "--saves", "2", "--seconds", "0.2"], {"save_to_searchable", "idle"}),
]


@pytest.mark.parametrize(("name", "flags", "keys"), SMALL_RUNS, ids=[name for name, _, _ in SMALL_RUNS])
def test_a_benchmark_prints_one_json_line(name: str, flags: list[str], keys: set[str]) -> None:
    assert_prints_one_json_line(name, flags, keys)


def assert_prints_one_json_line(name: str, flags: list[str], keys: set[str]) -> None:
    command = [sys.executable, "-m", f"tests.bench.{name}", *flags]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr
    line = json.loads(ended.stdout)
    assert {"benchmark", "parameters", "machine"} | keys <= set(line)
    assert line["machine"]["cores"] >= 1


def test_the_benchmark_of_embedding_runs_with_any_model(tmp_path: Path) -> None:
    flags = [
        "--documents",
        "3",
        "--size-bytes",
        "2000",
        "--uploads",
        "2",
        "--model",
        str(write_model(tmp_path / "tiny")),
    ]
    assert_prints_one_json_line("bench_embedding", flags, {"bare", "daemon", "share_of_bare", "ready_alone"})


def test_a_spread_has_the_middle_the_tail_and_the_end() -> None:
    assert spread_ms([n / 1000 for n in range(100)]) == {"p50_ms": 50.0, "p95_ms": 95.0, "p99_ms": 99.0, "max_ms": 99.0}
    assert spread_ms([0.001]) == {"p50_ms": 1.0, "p95_ms": 1.0, "p99_ms": 1.0, "max_ms": 1.0}


class _Counting(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen: list[str]

    def do_GET(self) -> None:
        self.seen.append(self.path)
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_: object) -> None:
        pass


def _get(number: int) -> bytes:
    return b"GET /%d HTTP/1.1\r\nHost: here\r\n\r\n" % number


def test_the_load_client_counts_each_answer_once() -> None:
    _Counting.seen = []
    with ThreadingHTTPServer(("127.0.0.1", 0), _Counting) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        load = run_load(f"http://127.0.0.1:{server.server_port}", 3, 0.2, _get, status=200)
        with pytest.raises(ConnectionError, match="not 201"):
            run_load(f"http://127.0.0.1:{server.server_port}", 1, 0.1, _get, status=201)
        server.shutdown()
    assert load.requests == len(load.latencies_s) == len(_Counting.seen) - 1
    assert len(set(_Counting.seen[: load.requests])) == load.requests
