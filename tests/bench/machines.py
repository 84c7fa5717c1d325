"""What a figure depends on (the machine, the versions, the disk), and how it is taken and printed."""

import json
import os
import platform
import sqlite3
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from tests.acceptance.installations import process_tree

T = TypeVar("T")


def report(name: str, parameters: Mapping[str, Any], results: Mapping[str, Any], folder: Path | None = None) -> None:
    """Print one benchmark as one JSON line; with `folder`, the cost of an fsync there comes with it."""
    machine = describe() if folder is None else describe() | {"fsync_ms": fsync_ms(folder)}
    line = {"benchmark": name, "parameters": parameters, **results, "machine": machine}
    sys.stdout.write(json.dumps(line, default=str) + "\n")


def describe() -> dict[str, Any]:
    """Processor and the versions that matter for speed."""
    names = (line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name"))
    libraries = {name: version(name) for name in ("starlette", "uvicorn")}
    return {
        "system": platform.platform(),
        "processor": next(names, platform.machine()).rpartition(": ")[2],
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        **libraries,
    }


def fsync_ms(folder: Path, rounds: int = 50) -> float:
    """Median cost of making 4 KB durable in a folder, in milliseconds."""
    path, costs_s = folder / "fsync-probe", []
    with path.open("wb", buffering=0) as probe:
        for _ in range(rounds):
            probe.write(bytes(4096))
            costs_s.append(timed(lambda: os.fsync(probe.fileno()))[1])
    path.unlink()
    return round(statistics.median(costs_s) * 1000, 3)


def timed(call: Callable[[], T]) -> tuple[T, float]:
    """What a call returns, and the seconds that it took."""
    begin_s = time.perf_counter()
    returned = call()
    return returned, time.perf_counter() - begin_s


def processor_s(pid: int) -> float:
    """User and system time of a process and of all below it, in seconds."""
    return float(sum(sum(process.cpu_times()[:2]) for process in process_tree(pid)))


def spread_ms(durations_s: Sequence[float]) -> dict[str, float]:
    """p50, p95, p99 and the longest of some durations, in milliseconds."""
    ordered, count = sorted(durations_s), len(durations_s)
    ranks = {"p50": count // 2, "p95": count * 95 // 100, "p99": count * 99 // 100, "max": count - 1}
    return {f"{name}_ms": round(ordered[rank] * 1000, 2) for name, rank in ranks.items()}
