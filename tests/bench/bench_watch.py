"""Watching a folder: from a save until a search finds it, and what a watcher costs that has nothing to do.

A save is a temporary file that takes the place of the old one, as most editors do it; the time ends with the first
search that finds its new word. `--files` lie in the folder besides, and `--seconds` is how long it is idle.
"""

import sys
import time
from pathlib import Path

import httpx
import psutil

from tests.acceptance.calls import search
from tests.acceptance.installations import wait_until
from tests.acceptance.watches import Watch, watching
from tests.bench.bench_folders import make_files
from tests.bench.installations import measured, read_options, run_svc
from tests.bench.machines import processor_s, report, spread_ms

BUCKET = "bench"


def main() -> None:
    options = read_options(__doc__, files=10_000, size_bytes=10_240, saves=40, seconds=60.0)
    with measured(options.folder) as daemon, daemon.client() as client:
        folder = daemon.root / "docs"
        make_files(folder, options.files, 200)
        program = [sys.executable, "-m", "svc_cli", "watch", "run", str(folder), "-b", BUCKET, "--ndjson"]
        run_svc(daemon, "sync", str(folder), "-b", BUCKET, "--json", "--timeout", "60m")
        with watching(daemon, program=program) as watch:
            idle = _idle(watch, options.seconds)
            saves_s = [_save_s(client, folder, options.size_bytes, number) for number in range(options.saves)]
        report("watch", vars(options), {"save_to_searchable": spread_ms(saves_s), "idle": idle}, daemon.root)


def _save_s(client: httpx.Client, folder: Path, size_bytes: int, number: int) -> float:
    """Seconds from the save to the first search that finds its word."""
    word = f"quokka{number:04}"
    body = (f"# A note about {word}\n\n" + "Some plain words to fill the note with text.\n" * 1000)[:size_bytes]
    temporary = folder / ".saved.md.tmp"
    temporary.write_text(body)
    began_s = time.perf_counter()
    temporary.replace(folder / "saved.md")
    wait_until(lambda: search(client, word, BUCKET), f"{word} is found", every_s=0.01)
    return time.perf_counter() - began_s


def _idle(watch: Watch, seconds: float) -> dict[str, float]:
    """What the watcher computes in so many seconds, and how often it looked at everything by then."""
    before_s = processor_s(watch.process.pid)
    time.sleep(seconds)
    return {
        "processor_percent": round(100 * (processor_s(watch.process.pid) - before_s) / seconds, 3),
        "rss_mb": round(psutil.Process(watch.process.pid).memory_info().rss / 1024 / 1024, 1),
        "syncs": watch.states.count("syncing"),
    }


if __name__ == "__main__":
    main()
