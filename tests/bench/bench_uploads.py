"""Durable uploads: in one call each by 1 and 8 clients, and in batches, file by file and as packs.

`accepted_ms` and `ready_ms` are of the processor, for each file: the daemon's until the last answer, and with all that
it starts until everything is ready.
"""

import argparse
import random
import time
from itertools import count

from tests.acceptance.calls import make_bucket
from tests.bench.harness import Row, Side, all_sides, clock_s, read_options, report
from tests.bench.loads import BUCKET, for_seconds, make_uploads, send, send_batch

_NUMBERS = count()


def main() -> None:
    options = read_options(
        __doc__, seconds=8.0, size_bytes=10_240, clients=[1, 8], batches=10, files=100, file_bytes=4096
    )
    with all_sides(options) as sides:
        for side in sides:
            with side.client() as client:
                make_bucket(client, BUCKET)
            _call(side, 1, 0.5, options.size_bytes)
            _batch(side, options, is_packed=True)
        rows = [_call(side, n, options.seconds, options.size_bytes) for n in options.clients for side in sides]
        batches = [
            _batch(side, options, is_packed=is_packed)
            for _ in range(options.batches)
            for is_packed in (False, True)
            for side in sides
        ]
        report("uploads", options, rows + [_middle(batches[at :: 2 * len(sides)]) for at in range(2 * len(sides))])


def _call(side: Side, clients: int, seconds: float, size_bytes: int) -> Row:
    make = make_uploads(side.key, size_bytes, f"run-{next(_NUMBERS)}")
    writer, used_s, began_s = side.facts()["writer"], side.processor_s(), clock_s(side.pid or 0)
    load = send([side], clients, for_seconds(seconds, clients, make))
    accepted_s, later = clock_s(side.pid or 0) - began_s, side.facts()["writer"]
    # The next load must not pay for the documents of this one.
    side.wait_idle()
    files, commits = len(load.latencies_s), later["commits"] - writer["commits"]
    return {
        "side": side.name,
        "way": f"one call, {clients} clients",
        "accepted_ms": round(accepted_s * 1000 / files, 3),
        "ready_ms": round((side.processor_s() - used_s) * 1000 / files, 3),
        "operations_per_commit": round((later["operations"] - writer["operations"]) / commits, 2),
        **load.figures(),
    }


def _batch(side: Side, options: argparse.Namespace, *, is_packed: bool) -> Row:
    draw = random.Random(number := next(_NUMBERS))
    files = {f"{number}-{n}": draw.randbytes(options.file_bytes // 2).hex().encode() for n in range(options.files)}
    used_s, began_s, begin_s = side.processor_s(), clock_s(side.pid or 0), time.perf_counter()
    with side.client() as client:
        send_batch(client, files, is_packed=is_packed)
    accepted_s, took_s = clock_s(side.pid or 0) - began_s, time.perf_counter() - begin_s
    side.wait_idle()
    return {
        "side": side.name,
        "way": f"{'pack' if is_packed else 'batch'} of {len(files)}",
        "accepted_ms": round(accepted_s * 1000 / len(files), 3),
        "ready_ms": round((side.processor_s() - used_s) * 1000 / len(files), 3),
        "per_second": round(len(files) / took_s, 1),
    }


def _middle(rows: list[Row]) -> Row:
    return sorted(rows, key=lambda row: row["accepted_ms"])[len(rows) // 2]


if __name__ == "__main__":
    main()
