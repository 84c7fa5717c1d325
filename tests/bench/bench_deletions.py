"""Deleting a bucket of many sources, some of them in another bucket too: its answer, and the end of the cascade."""

import argparse
import tempfile
import time
from pathlib import Path

from tests.acceptance.cascades import delete, fill, found, wait_task
from tests.bench.installations import running_daemon
from tests.bench.machines import report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, default=1000)
    parser.add_argument("--shared", type=int, default=100)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, running_daemon(Path(folder)) as daemon, daemon.client() as client:
        fill(client, options.members, options.shared)
        began_s = time.monotonic()
        deletion = delete(client)
        answered_s = time.monotonic()
        found(client)
        searched_s = time.monotonic()
        wait_task(client, deletion["task_id"])
        figures = {
            "answer_ms": round(1000 * (answered_s - began_s), 1),
            "first_search_ms": round(1000 * (searched_s - answered_s), 1),
            "cascade_s": round(time.monotonic() - began_s, 2),
        }
        report("deletions", {"members": options.members, "shared": options.shared}, figures)


if __name__ == "__main__":
    main()
