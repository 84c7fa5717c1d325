"""Memory and processor time of a daemon that has nothing to do: fresh, and after it has indexed some documents."""

import time

from tests.acceptance.calls import make_bucket, upload, wait_ended
from tests.acceptance.installations import process_tree
from tests.bench.installations import NEW_INTERPRETER, measured, read_options
from tests.bench.machines import processor_s, report
from tests.corpus import Outcome, make_corpus

MB = 1024 * 1024


def main() -> None:
    options = read_options(__doc__, documents=60, seconds=10.0)
    with measured(options.folder, is_running=False) as daemon:
        daemon.start(NEW_INTERPRETER)
        fresh = _idle(daemon.pid or 0, options.seconds)
        folder = daemon.root / "corpus"
        made = [folder / each.path for each in make_corpus(folder, options.documents) if each.outcome is Outcome.READY]
        with daemon.client() as client:
            make_bucket(client, "bench")
            for answer in [upload(client, "bench", path.name, path.read_bytes()) for path in made]:
                wait_ended(client, answer.json()["id"])
        report("idle", vars(options), {"fresh": fresh, "after_documents": _idle(daemon.pid or 0, options.seconds)})


def _idle(pid: int, seconds: float) -> dict[str, float]:
    """Memory of the daemon and its children, and what they compute in so many seconds without requests."""
    time.sleep(min(2.0, seconds))  # what the last request left to do
    before_s = processor_s(pid)
    time.sleep(seconds)
    used_s = processor_s(pid) - before_s
    memory = [process.memory_full_info() for process in process_tree(pid)]
    return {
        "processes": len(memory),
        "pss_mb": round(sum(part.pss for part in memory) / MB, 1),
        "rss_mb": round(sum(part.rss for part in memory) / MB, 1),
        "processor_percent": round(100 * used_s / seconds, 2),
    }


if __name__ == "__main__":
    main()
