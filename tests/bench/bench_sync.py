"""`svc sync` of a large folder: nothing to do, much to move, and the first byte; beside rclone and `aws s3 sync`.

`--large` takes 100,000 files. The other tools copy the same tree to a folder, or to the S3 address of `--s3`
(`s3://bucket/prefix`); their times are of runs with nothing left to do.
"""

import os
import resource
import shutil
import subprocess
import time
from functools import partial
from pathlib import Path
from typing import Any

from tests.acceptance.installations import Finished, Installation, wait_until
from tests.bench.bench_folders import make_files
from tests.bench.installations import measured, read_options, run_svc, spawn_svc
from tests.bench.machines import report, timed

SYNC = ("sync", "files", "-b", "bench", "--json", "--timeout", "60m")


def main() -> None:
    options = read_options(__doc__, files=10_000, size_bytes=400, moved=1000, rounds=5, large=False, s3="")
    files = 100_000 if options.large else options.files
    with measured(options.folder) as daemon:
        folder = daemon.root / "files"
        make_files(folder, files, options.size_bytes)
        # Files that were written just now would be read once more.
        long_ago_ns = time.time_ns() - 60 * 10**9
        for path in folder.rglob("*.md"):
            os.utime(path, ns=(long_ago_ns, long_ago_ns))
        results = {
            "first_byte_s": _first_byte(daemon),
            "accepted_s": _run(daemon, "--wait", "accepted")[1],
            "ready_s": _run(daemon)[1],
            "no_op": _no_op(daemon, options.rounds),
            "moved": _move(daemon, folder, min(options.moved, files)),
            "others": _others(folder, daemon.root, options.s3, options.rounds),
        }
        report("sync", vars(options) | {"files": files}, results, daemon.root)


def _run(daemon: Installation, *words: str) -> tuple[Finished, float]:
    finished, took_s = run_svc(daemon, *SYNC, *words)
    return finished, round(took_s, 2)


def _first_byte(daemon: Installation) -> float:
    """From the start of the command to the first bytes in the daemon's folder; that run is ended then."""
    began_s = time.perf_counter()
    process = spawn_svc(daemon, *SYNC)
    wait_until(lambda: next(iter(daemon.files.parts.iterdir()), None), "the first byte", 60, every_s=0.005)
    took_s = round(time.perf_counter() - began_s, 2)
    process.kill()
    process.communicate()
    return took_s


def _no_op(daemon: Installation, rounds: int) -> dict[str, Any]:
    """The fastest of some runs that find nothing to do, and the most memory that one took."""
    runs = [_run(daemon) for _ in range(rounds)]
    return {
        "fastest_s": min(took_s for _, took_s in runs),
        "all_s": [took_s for _, took_s in runs],
        "most_memory_mb": round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024),
        "bytes_sent": sum(run.json["bytes_sent"] for run, _ in runs),
    }


def _move(daemon: Installation, folder: Path, count: int) -> dict[str, Any]:
    for path in sorted(folder.rglob("*.md"))[:count]:
        path.rename(folder / f"moved-{path.parent.name}-{path.name}")
    run, took_s = _run(daemon)
    return {"files": run.json["counts"]["moved"], "seconds": took_s, "bytes_sent": run.json["bytes_sent"]}


def _others(folder: Path, room: Path, s3: str, rounds: int) -> dict[str, list[float]]:
    commands = {
        "rclone": ["rclone", "sync", str(folder), str(room / "rclone")],
        "aws s3 sync": ["aws", "s3", "sync", str(folder), s3] if s3 else [],
    }
    taken_s = {}
    for name, words in commands.items():
        if words and shutil.which(words[0]):
            run = partial(subprocess.run, words, check=True, capture_output=True)
            # The first one copies the tree.
            taken_s[name] = [round(timed(run)[1], 2) for _ in range(rounds + 1)][1:]
    return taken_s


if __name__ == "__main__":
    main()
