"""`svc sync` of a large folder as a command: the first one, one with nothing to do, one in a hundred changed, moves.

`--large` takes 100,000 files. `first byte` is until the daemon has accepted the first document, of a folder that waits
for nothing; that run is ended then. `rclone` and `aws s3 sync` copy the same tree to a folder, and to the S3 address of
`--s3` (`s3://bucket/prefix`), where they are installed; their rows are of runs with nothing left to do. What has
nothing to do runs `--rounds` times, the sides in turns, and its fastest run is shown.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.acceptance.calls import take_in
from tests.acceptance.installations import wait_until
from tests.bench.bench_folders import make_files
from tests.bench.fillings import is_indexed
from tests.bench.machines import timed
from tests.bench.sides import Cost, Row, Side, all_sides, read_side_options, report_rows

SYNC = ("sync", "files", "-b", "bench", "--json", "--timeout", "180m")


def main() -> None:
    options = read_side_options(__doc__, files=10_000, size_bytes=400, moved=1000, rounds=5, large=False, s3="")
    files = options.files = 100_000 if options.large else options.files
    with all_sides(options) as sides:
        for side in sides:
            make_files(side.root / "files", files, options.size_bytes)
            _age(side.root / "files")
            with side.client() as client:
                take_in(client, "warm", "warm.md", b"# Warm\n\nSome text.")
        rows = [{"side": side.name, "run": "first byte", "wall_s": _first_byte_s(side)} for side in sides]
        rows += _run_all(sides, "first")
        idle = [row for _ in range(options.rounds) for row in _run_all(sides, "no-op")]
        rows += [min((row for row in idle if row["side"] == side.name), key=_wall_s) for side in sides]
        rows += _run_all(sides, "1 % changed", lambda folder: _change(folder, max(1, files // 100)))
        rows += _run_all(sides, "moved", lambda folder: _move(folder, min(options.moved, files)))
        rows += [_restart(side, options.rounds) for side in sides]
        rows += _others(sides[-1].root, options)
        report_rows("sync", options, rows)


def _run_all(sides: list[Side], name: str, prepare: Callable[[Path], None] = lambda _: None) -> list[Row]:
    rows = []
    for side in sides:
        prepare(side.root / "files")
        cost = side.run_svc(*SYNC)
        rows.append({"side": side.name, "run": name} | _figures(cost, side.printed_json()))
    return rows


def _figures(cost: Cost, report: Any) -> Row:
    counts = {name: count for name, count in report["counts"].items() if count}
    return {
        "wall_s": round(cost.wall_s, 3),
        "command_s": round(cost.used.command, 3),
        "command_mb": round(cost.command_mb),
        "daemon_s": round(sum(cost.used) - cost.used.command, 3),
        "counts": " ".join(f"{name} {count}" for name, count in counts.items()),
    }


def _wall_s(row: Row) -> float:
    return float(row["wall_s"])


def _first_byte_s(side: Side) -> float:
    began_s = time.perf_counter()
    words = ("sync", "files", "-b", "byte", "--json")
    process = side.spawn("svc_cli", *words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with side.client() as client:

        def is_accepted() -> bool:
            answer = client.get("/v1/buckets/byte")
            return answer.status_code == 200 and answer.json()["bucketStore"]["member_count"] > 0

        wait_until(is_accepted, "the first document", 60, every_s=0.01)
        took_s = round(time.perf_counter() - began_s, 3)
        process.kill()
        process.wait()
        wait_until(lambda: is_indexed(client, "byte"), "the end of indexing", 600, every_s=0.1)
    return took_s


def _age(folder: Path) -> None:
    """A file that was written just now would be read once more."""
    long_ago_ns = time.time_ns() - 60 * 10**9
    for path in folder.rglob("*.md"):
        os.utime(path, ns=(long_ago_ns, long_ago_ns))


def _change(folder: Path, count: int) -> None:
    for path in sorted(folder.rglob("*.md"))[:count]:
        path.write_bytes(b"# Changed\n\n" + path.read_bytes())


def _move(folder: Path, count: int) -> None:
    for path in sorted(folder.rglob("*.md"))[:count]:
        path.rename(folder / f"moved-{path.parent.name}-{path.name}")


def _restart(side: Side, rounds: int) -> Row:
    took_s = []
    for _ in range(rounds):
        side.stop()
        took_s.append(timed(side.start)[1])
    return {"side": side.name, "run": "daemon's start", "wall_s": round(statistics.median(took_s), 3)}


def _others(root: Path, options: argparse.Namespace) -> Iterator[Row]:
    commands = {
        "rclone": ["rclone", "sync", str(root / "files"), str(root / "rclone")],
        "aws": ["aws", "s3", "sync", str(root / "files"), options.s3] if options.s3 else [],
    }
    for name, words in commands.items():
        if words and shutil.which(words[0]):
            run = partial(subprocess.run, words, check=True, capture_output=True)
            # The first one copies the tree.
            taken_s = [timed(run)[1] for _ in range(options.rounds + 1)][1:]
            yield {"side": name, "run": "no-op", "wall_s": round(min(taken_s), 3)}


if __name__ == "__main__":
    main()
