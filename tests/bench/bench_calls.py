"""System calls of the daemon and its children for each small file of an `svc upload`: syncs, futex calls, log bytes.

`strace` counts them, so it must be installed. It slows the daemon down: where several requests share a commit, more of
them do than otherwise.
"""

import argparse
import re
from collections import Counter
from collections.abc import Iterable

from tests.acceptance.calls import take_in
from tests.bench.bench_folders import make_files
from tests.bench.sides import Row, Side, each_side, read_side_options, report_rows

SYNCS = ("fsync", "fdatasync", "syncfs", "sync_file_range")
CALLS = (*SYNCS, "futex", "pwrite64")
_CALL = re.compile(r"^\d+ +(\w+)\(")
#: The file and the length of a write to a log; the rest of the line may come later.
_LOGGED = re.compile(r"pwrite64\(\d+<([^>]+)-wal>, .*, (\d+), \d+(?:\)| <)")


def main() -> None:
    options = read_side_options(__doc__, files=1000, size_bytes=4096)
    rows = [{"side": side.name} | _trace(side, options) for side in each_side(options, is_running=False)]
    report_rows("calls", options, rows)


def _trace(side: Side, options: argparse.Namespace) -> Row:
    make_files(side.root / "files", options.files, options.size_bytes)
    traced = side.root / "calls.txt"
    side.start(("strace", "-D", "-f", "-qq", "-y", "-s0", f"-etrace={','.join(CALLS)}", "-o", str(traced)))
    with side.client() as client:
        take_in(client, "warm", "warm.md", b"# Warm\n\nSome text.")
    with traced.open(encoding="utf-8", errors="replace") as lines:
        lines.read()
        cost = side.run_svc("upload", "files", "-b", "bench", "--json", "--timeout", "60m")
        calls, logged = _count(lines)
    side.stop()
    each = {name: round(calls[name] / options.files, 2) for name in CALLS}
    return {
        "files": options.files,
        "syncs": round(sum(calls[name] for name in SYNCS) / options.files, 2),
        **each,
        "state_log_kb": round(logged["state"] / 1024 / options.files, 1),
        "index_log_kb": round(logged["index"] / 1024 / options.files, 1),
        "ready_s": round(cost.wall_s, 2),
    }


def _count(lines: Iterable[str]) -> tuple[Counter[str], Counter[str]]:
    """How often each call began; the bytes that went to logs, of the state and of the search index."""
    calls: Counter[str] = Counter()
    logged: Counter[str] = Counter()
    for line in lines:
        if call := _CALL.match(line):
            calls[call[1]] += 1
        if wrote := _LOGGED.search(line):
            logged["index" if "/index" in wrote[1] else "state"] += int(wrote[2])
    return calls, logged


if __name__ == "__main__":
    main()
