"""What a figure depends on: the machine, the versions, the disk."""

import json
import os
import platform
import sqlite3
import statistics
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any


def report(name: str, parameters: dict[str, Any], results: dict[str, Any], folder: Path | None = None) -> None:
    """Print one benchmark as one JSON line; with `folder`, the cost of an fsync there comes with it."""
    machine = describe() if folder is None else describe() | {"fsync_ms": fsync_ms(folder)}
    sys.stdout.write(json.dumps({"benchmark": name, "parameters": parameters, **results, "machine": machine}) + "\n")


def describe() -> dict[str, Any]:
    """Processor, memory and the versions that matter for speed."""
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "starlette": version("starlette"),
        "uvicorn": version("uvicorn"),
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def fsync_ms(folder: Path, rounds: int = 50) -> float:
    """Median cost of making 4 KB durable in a folder, in milliseconds."""
    path = folder / "fsync-probe"
    with path.open("wb", buffering=0) as probe:
        costs_s = [_fsync_s(probe.fileno()) for _ in range(rounds)]
    path.unlink()
    return round(statistics.median(costs_s) * 1000, 3)


def _fsync_s(descriptor: int) -> float:
    os.write(descriptor, bytes(4096))
    begin_s = time.perf_counter()
    os.fsync(descriptor)
    return time.perf_counter() - begin_s


def spread_ms(durations_s: Sequence[float]) -> dict[str, float]:
    """p50, p95, p99 and the longest of some durations, in milliseconds."""
    ordered = sorted(durations_s)
    count = len(ordered)
    ranks = {"p50": count // 2, "p95": count * 95 // 100, "p99": count * 99 // 100, "max": count - 1}
    return {f"{name}_ms": round(ordered[rank] * 1000, 2) for name, rank in ranks.items()}
