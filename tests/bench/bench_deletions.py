"""Deleting a bucket of many sources, some of them in another bucket too: its answer, and the end of the cascade."""

import argparse
import time

from tests.acceptance.calls import wait_task
from tests.acceptance.cascades import delete, fill, found
from tests.bench.harness import Row, Side, all_sides, read_options, report, timed


def main() -> None:
    options = read_options(__doc__, members=1000, shared=100)
    with all_sides(options) as sides:
        report("deletions", options, [_delete(side, options) for side in sides])


def _delete(side: Side, options: argparse.Namespace) -> Row:
    with side.client() as client:
        fill(client, options.members, options.shared)
        used_s, began_s = side.processor_s(), time.perf_counter()
        deletion, answer_s = timed(lambda: delete(client))
        _, search_s = timed(lambda: found(client))
        wait_task(client, deletion["task_id"])
        took_s = time.perf_counter() - began_s
    return {
        "side": side.name,
        "answer_ms": round(1000 * answer_s, 1),
        "first_search_ms": round(1000 * search_s, 1),
        "cascade_s": round(took_s, 2),
        "processor_s": round(side.processor_s() - used_s, 2),
    }


if __name__ == "__main__":
    main()
