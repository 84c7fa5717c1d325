"""Deleting a bucket of many sources, some of them in another bucket too: its answer, and the end of the cascade."""

import time

from tests.acceptance.calls import wait_task
from tests.acceptance.cascades import delete, fill, found
from tests.bench.installations import measured, read_options
from tests.bench.machines import report, timed


def main() -> None:
    options = read_options(__doc__, members=1000, shared=100)
    with measured(options.folder) as daemon, daemon.client() as client:
        fill(client, options.members, options.shared)
        began_s = time.perf_counter()
        deletion, answer_s = timed(lambda: delete(client))
        _, search_s = timed(lambda: found(client))
        wait_task(client, deletion["task_id"])
        cascade_s = round(time.perf_counter() - began_s, 2)
        figures = {"answer_ms": round(1000 * answer_s, 1), "first_search_ms": round(1000 * search_s, 1)}
        report("deletions", vars(options), {**figures, "cascade_s": cascade_s})


if __name__ == "__main__":
    main()
