"""Watching a folder: from a save until a search finds it, and what a watcher costs that has nothing to do.

A save is a temporary file that takes the place of the old one, as most editors do it; the time ends with the first
search that finds its new word.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.acceptance.calls import search
from tests.acceptance.installations import wait_until
from tests.acceptance.watches import Watch, watching
from tests.bench.bench_folders import make_files
from tests.bench.installations import running_daemon
from tests.bench.machines import report, spread_ms

BUCKET = "bench"
SAVE_TIMEOUT_S = 30.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000, help="files that lie in the folder besides")
    parser.add_argument("--size-bytes", type=int, default=10_240, help="of the file that is saved")
    parser.add_argument("--saves", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long it is idle")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, running_daemon(Path(name)) as daemon, daemon.client() as client:
        folder = Path(name) / "docs"
        bodies = make_files(folder, options.files, 200)
        first = daemon.svc("sync", str(folder), "-b", BUCKET, "--json", "--wait", "accepted")
        if first.exit:
            raise SystemExit(first.stdout)
        wait_until(lambda: _ready(client) == len(bodies), "all is searchable", 3600, 1.0)
        with watching(daemon, str(folder), "-b", BUCKET) as watch:
            idle = _idle(watch, options.seconds)
            durations_s = [_save(client, folder, options.size_bytes, number) for number in range(options.saves)]
        parameters = {each: getattr(options, each) for each in ("files", "size_bytes", "saves", "seconds")}
        report("watch", parameters, {"save_to_searchable": spread_ms(durations_s), "idle": idle}, Path(name))


def _ready(client: httpx.Client) -> int:
    answer = client.get(f"/v1/buckets/{BUCKET}")
    answer.raise_for_status()
    return int(answer.json()["counts"]["retrievable"])


def _save(client: httpx.Client, folder: Path, size_bytes: int, number: int) -> float:
    """Seconds from the save to the first search that finds its word."""
    word = f"quokka{number:04}"
    body = (f"# A note about {word}\n\n" + "Some plain words to fill the note with text.\n" * 1000)[:size_bytes]
    temporary = folder / ".saved.md.tmp"
    temporary.write_text(body)
    began_s = time.perf_counter()
    temporary.replace(folder / "saved.md")
    wait_until(lambda: search(client, word, BUCKET), f"{word} is found", SAVE_TIMEOUT_S, 0.01)
    return time.perf_counter() - began_s


def _idle(watch: Watch, seconds: float) -> dict[str, Any]:
    """What the watcher computes in so many seconds, and how often it looked at everything by then."""
    process = psutil.Process(watch.process.pid)
    before = process.cpu_times()
    time.sleep(seconds)
    after = process.cpu_times()
    used_s = after.user + after.system - before.user - before.system
    return {
        "processor_percent": round(100 * used_s / seconds, 3),
        "rss_mb": round(process.memory_info().rss / 1024 / 1024, 1),
        "syncs": watch.states.count("syncing"),
    }


if __name__ == "__main__":
    main()
