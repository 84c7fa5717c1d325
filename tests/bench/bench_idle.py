"""Memory and processor time of a daemon that has nothing to do: fresh, and after it has indexed some documents."""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

from tests.acceptance.calls import make_bucket, upload, wait_ended
from tests.acceptance.installations import Installation, process_tree
from tests.bench.installations import running_daemon
from tests.bench.machines import report
from tests.corpus import Outcome, make_corpus

BUCKET = "bench"
MB = 1024 * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, running_daemon(Path(folder)) as daemon, daemon.client() as client:
        fresh = _idle(daemon, options.seconds)
        _index(client, Path(folder) / "corpus", options.documents)
        parameters = {"documents": options.documents, "seconds": options.seconds}
        report("idle", parameters, {"fresh": fresh, "after_documents": _idle(daemon, options.seconds)})


def _index(client: httpx.Client, folder: Path, documents: int) -> None:
    make_bucket(client, BUCKET)
    made = [document for document in make_corpus(folder, documents) if document.outcome is Outcome.READY]
    accepted = [upload(client, BUCKET, Path(one.path).name, (folder / one.path).read_bytes()) for one in made]
    for answer in accepted:
        wait_ended(client, answer.json()["id"])


def _idle(daemon: Installation, seconds: float) -> dict[str, Any]:
    """Memory of the daemon and its children, and what they compute in so many seconds without requests."""
    time.sleep(2)  # what the last request left to do
    processes = process_tree(daemon.pid or 0)
    before_s = _processor_s(processes)
    time.sleep(seconds)
    used_s = _processor_s(processes) - before_s
    memory = [process.memory_full_info() for process in processes]
    return {
        "processes": len(processes),
        "pss_mb": round(sum(part.pss for part in memory) / MB, 1),
        "rss_mb": round(sum(part.rss for part in memory) / MB, 1),
        "processor_percent": round(100 * used_s / seconds, 2),
    }


def _processor_s(processes: list[Any]) -> float:
    times = [process.cpu_times() for process in processes]
    return float(sum(part.user + part.system for part in times))


if __name__ == "__main__":
    main()
