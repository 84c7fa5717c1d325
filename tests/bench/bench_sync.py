"""`svc sync` of a large folder as a command: the first one, one with nothing to do, one in a hundred changed, moves.

What has nothing to do runs `--rounds` times, the sides in turns, and its fastest run is shown. At the end the daemons
start with these sources, as often.
"""

import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from tests.acceptance.calls import take_in
from tests.bench.harness import Row, Side, all_sides, read_options, report, timed
from tests.bench.loads import BUCKET, make_files


def main() -> None:
    options = read_options(__doc__, files=10_000, size_bytes=400, moved=1000, rounds=5)
    changed, moved = max(1, options.files // 100), min(options.moved, options.files)
    with all_sides(options) as sides:
        for side in sides:
            make_files(side.root / "files", options.files, options.size_bytes)
            # A file that was written just now would be read once more.
            long_ago_ns = time.time_ns() - 60 * 10**9
            for path in _files(side.root / "files"):
                os.utime(path, ns=(long_ago_ns, long_ago_ns))
            with side.client() as client:
                take_in(client, "warm", "warm.md", b"# Warm\n\nSome text.")
        rows = _run_all(sides, "first")
        idle = [row for _ in range(options.rounds) for row in _run_all(sides, "no-op")]
        rows += [min((row for row in idle if row["side"] == side.name), key=_wall_s) for side in sides]
        rows += _run_all(sides, "1 % changed", lambda folder: _change(folder, changed))
        rows += _run_all(sides, "moved", lambda folder: _move(folder, moved))
        rows += [_restart(side, options.rounds) for side in sides]
        report("sync", options, rows)


def _run_all(sides: list[Side], name: str, prepare: Callable[[Path], None] = lambda _: None) -> list[Row]:
    rows = []
    for side in sides:
        prepare(side.root / "files")
        cost = side.run_svc("sync", "files", "-b", BUCKET, "--json", "--timeout", "180m")
        counts = {kind: count for kind, count in side.printed_json()["counts"].items() if count}
        row = {
            "wall_s": round(cost.wall_s, 3),
            "command_s": round(cost.used.command, 3),
            "command_mb": round(cost.command_mb),
            "daemon_s": round(sum(cost.used) - cost.used.command, 3),
            "counts": " ".join(f"{kind} {count}" for kind, count in counts.items()),
        }
        rows.append({"side": side.name, "run": name} | row)
    return rows


def _wall_s(row: Row) -> float:
    return float(row["wall_s"])


def _files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.md"))


def _change(folder: Path, count: int) -> None:
    for path in _files(folder)[:count]:
        path.write_bytes(b"# Changed\n\n" + path.read_bytes())


def _move(folder: Path, count: int) -> None:
    for path in _files(folder)[:count]:
        path.rename(folder / f"moved-{path.parent.name}-{path.name}")


def _restart(side: Side, rounds: int) -> Row:
    took_s = []
    for _ in range(rounds):
        side.stop()
        took_s.append(timed(side.start)[1])
    return {"side": side.name, "run": "daemon's start", "wall_s": round(statistics.median(took_s), 3)}


if __name__ == "__main__":
    main()
