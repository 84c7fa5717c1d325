"""`svc sync` of a large folder: nothing to do, much to move, and the first byte; beside rclone and `aws s3 sync`.

`--large` takes 100,000 files. The other tools copy the same tree to a folder, or to an S3 address that is given; their
times are of runs with nothing left to do.
"""

import argparse
import os
import resource
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.acceptance.installations import Finished, Installation, wait_until
from tests.bench.bench_folders import make_files
from tests.bench.installations import running_daemon
from tests.bench.machines import report

SYNC = ("sync", "files", "-b", "bench", "--json", "--timeout", "60m")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--size-bytes", type=int, default=400)
    parser.add_argument("--moved", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--large", action="store_true", help="100,000 files")
    parser.add_argument("--s3", metavar="URL", help="`s3://bucket/prefix` that `aws s3 sync` may write to")
    options = parser.parse_args()
    files = 100_000 if options.large else options.files
    with tempfile.TemporaryDirectory() as name, running_daemon(Path(name)) as daemon:
        folder = daemon.root / "files"
        make_files(folder, files, options.size_bytes)
        _settle(folder)
        results = {
            "first_byte_s": _first_byte(daemon),
            "accepted_s": _run(daemon, "--wait", "accepted")[1],
            "ready_s": _run(daemon)[1],
            "no_op": _no_op(daemon, options.rounds),
            "moved": _move(daemon, folder, min(options.moved, files)),
            "others": _others(folder, Path(name), options.s3, options.rounds),
        }
        report("sync", {"files": files, "size_bytes": options.size_bytes}, results, Path(name))


def _settle(folder: Path) -> None:
    """Files that were written just now would be read once more."""
    long_ago_ns = time.time_ns() - 60 * 10**9
    for path in folder.rglob("*.md"):
        os.utime(path, ns=(long_ago_ns, long_ago_ns))


def _run(daemon: Installation, *words: str) -> tuple[Finished, float]:
    began_s = time.perf_counter()
    process = daemon.spawn_svc(*SYNC, *words)
    out, err = process.communicate()
    took_s = round(time.perf_counter() - began_s, 2)
    if process.returncode:
        raise RuntimeError(f"svc ended with {process.returncode}: {err}")
    return Finished(process.returncode, out, err), took_s


def _first_byte(daemon: Installation) -> float:
    """From the start of the command to the first bytes in the daemon's folder; that run is ended then."""
    began_s = time.perf_counter()
    process = daemon.spawn_svc(*SYNC)
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


def _others(folder: Path, room: Path, s3: str | None, rounds: int) -> dict[str, list[float]]:
    commands = {
        "rclone": ["rclone", "sync", str(folder), str(room / "rclone")],
        "aws s3 sync": ["aws", "s3", "sync", str(folder), s3] if s3 else [],
    }
    usable = {name: words for name, words in commands.items() if words and shutil.which(words[0])}
    return {name: _time_no_op(words, rounds) for name, words in usable.items()}


def _time_no_op(words: list[str], rounds: int) -> list[float]:
    subprocess.run(words, check=True, capture_output=True)
    took_s = []
    for _ in range(rounds):
        began_s = time.perf_counter()
        subprocess.run(words, check=True, capture_output=True)
        took_s.append(round(time.perf_counter() - began_s, 2))
    return took_s


if __name__ == "__main__":
    main()
