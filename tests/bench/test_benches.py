"""Each benchmark runs and prints one JSON line; the figures of a run this small mean nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.test_system_calls import can_trace
from tests.bench.conftest import RunMain
from tests.embed.tiny_models import write_model

SMALL_RUNS = {
    "bench_uploads --seconds 0.3 --clients 2": "clients",
    "bench_folders --files 20 --size-bytes 300 --commands upload --limits without --bare --json": "rows",
    "bench_calls --files 3 --json": "rows",
    "bench_mixed --documents 4 --json": "rows",
    "bench_extraction --documents 70 --alone 2": "bare_ms alone waves times_cheaper",
    "bench_sync --files 20 --moved 5 --rounds 1 --json": "rows",
    "bench_sessions --size-bytes 100000 --rounds 1": "put_ms times_as_long",
    "bench_batches --batches 3 --files 2 --calls 5": "one many times_as_long",
    "bench_packs --batches 1 --files 3": "singly_ms_per_file packed_ms_per_file",
    "bench_events --turns 1 --files 3": "singly packed",
    "bench_ready --files 3 --chunks 150 --seconds 0.2 --json": "rows",
    "bench_http_search --chunks 150 --queries 3 --store 300": "chunks store",
    "bench_answers --chunks 150 --questions 3 --clients 2": "chunks",
    "bench_claims": "false_proofs false_alarms",
    "bench_starts --rounds 1": "wall_cpu_ms",
    "bench_deletions --members 4 --shared 1": "answer_ms first_search_ms cascade_s",
    "bench_backups --files 5 --new 2": "svc svc_mb data_mb",
    "bench_idle --documents 3 --seconds 0.2": "fresh after_documents",
    "bench_watch --files 5 --saves 2 --seconds 0.2": "save_to_searchable idle",
    "bench_embedding --documents 3 --size-bytes 2000 --uploads 2 --model TINY": "bare daemon share_of_bare ready_alone",
}


#: What takes seconds: run with `--large`, and otherwise only shown to be a program.
LONG = (
    "bench_mixed",
    "bench_extraction",
    "bench_backups",
    "bench_uploads",
    "bench_starts",
    "bench_sync",
    "bench_ready",
)


@pytest.mark.parametrize("line", SMALL_RUNS, ids=lambda line: line.split()[0])
def test_a_benchmark_prints_one_json_line(line: str, tmp_path: Path, run_main: RunMain, large: bool) -> None:
    if line.startswith(LONG) and not large:
        with pytest.raises(SystemExit, match="0"):
            run_main(line.split(maxsplit=1)[0], "--help")
        return
    if "bench_calls" in line and not can_trace():
        pytest.skip("no strace is installed, or it may not trace here")
    words = [str(write_model(tmp_path / "tiny")) if word == "TINY" else word for word in line.split()]
    printed: dict[str, Any] = json.loads(run_main(*words))
    assert {"benchmark", "parameters", "machine", *SMALL_RUNS[line].split()} <= set(printed)
    assert printed["machine"]["cores"] >= 1
