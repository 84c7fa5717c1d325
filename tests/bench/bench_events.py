"""What the event log costs: the daemon's processor time for a small document until it is ready, with and without it.

Two daemons take turns in one run, and nobody follows either of them. The documents are sent one in a request, by some
clients at once, and as packs of a hundred, where a document costs least.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from statistics import fmean
from typing import Any

import httpx

from tests.acceptance.calls import upload
from tests.acceptance.installations import Installation, process_tree, wait_until
from tests.bench.bench_packs import send_batch
from tests.bench.installations import read_options
from tests.bench.machines import report
from tests.conftest import UNLIMITED

PACK_FILES = 100
Send = Callable[[httpx.Client, dict[str, bytes]], None]


class MeasuredDaemon(Installation):
    """An installation whose daemon is an interpreter of its own, of this module."""

    module = "svc_daemon"

    def spawn(self, *words: str, launcher: Sequence[str] = (), **options: Any) -> "subprocess.Popen[Any]":
        program = (self.module,) if words == ("svc_daemon", "serve") and self.module != "svc_daemon" else words
        options = {"env": self.environ, "cwd": self.root, "stdin": subprocess.DEVNULL, **options}
        return subprocess.Popen([*launcher, sys.executable, "-m", *program], **options)

    def used_s(self) -> float:
        """User and system time of the daemon and of all below it, ended ones too, in seconds.

        That of the daemon itself is read from its clock (Linux), as the other counters have steps of 10 ms.
        """
        daemon, *below = process_tree(self.pid or 0)
        own_s = time.clock_gettime(~daemon.pid << 3 | 2)
        return own_s + sum(daemon.cpu_times()[2:4]) + sum(sum(process.cpu_times()[:4]) for process in below)


class EventlessDaemon(MeasuredDaemon):
    module = "tests.bench.without_events"


def main() -> None:
    options = read_options(__doc__, turns=10, files=200, size_bytes=2000, clients=4)
    numbers, ways = count(), {"singly": send_singly(options.clients), "packed": send_packed}
    costs: dict[tuple[str, str], list[float]] = {}
    with daemons(options.folder) as sides:
        for turn in range(options.turns + 1):
            for way, send in ways.items():
                # Who is first changes with each turn.
                for name, side in list(sides.items())[:: 1 if turn % 2 else -1]:
                    files = {f"{next(numbers)}": text(number, options.size_bytes) for number in range(options.files)}
                    costs.setdefault((way, name), []).append(cost_ms(side, send, files))
        # The first turn warms both up.
        results = {way: {name: round(middle(costs[way, name][1:]), 3) for name in sides} for way in ways}
        for found in results.values():
            found["share"] = round(found["with_ms"] / found["without_ms"] - 1, 3)
        report("events", vars(options), results, sides["with_ms"].root)


@contextmanager
def daemons(folder: Path | None) -> Iterator[dict[str, MeasuredDaemon]]:
    with tempfile.TemporaryDirectory(dir=folder) as root:
        sides = {"with_ms": MeasuredDaemon(Path(root) / "with", **UNLIMITED)}
        sides["without_ms"] = EventlessDaemon(Path(root) / "without", **UNLIMITED)
        try:
            for side in sides.values():
                with side.start().client() as client:
                    client.put("/v1/buckets/bench").raise_for_status()
            yield sides
        finally:
            for side in sides.values():
                side.clear()


def middle(values: list[float]) -> float:
    """The mean of the middle half, which is finer than the median."""
    cut = len(values) // 4
    return fmean(sorted(values)[cut : len(values) - cut])


def text(number: int, size_bytes: int) -> bytes:
    return f"# Binder {number}\n\n".encode() + b"The umber binder leans on the shelf.\n" * (size_bytes // 37)


def cost_ms(side: MeasuredDaemon, send: Send, files: dict[str, bytes]) -> float:
    """Milliseconds of a processor for each file, from its request until it is ready."""
    before_s = side.used_s()
    with side.client() as client:
        send(client, files)
        wait_until(lambda: not sum(client.get("/healthz").json()["queue"].values()), "all are ready", 120, every_s=0.2)
    return (side.used_s() - before_s) * 1000 / len(files)


def send_singly(clients: int) -> Send:
    def send(client: httpx.Client, files: dict[str, bytes]) -> None:
        with ThreadPoolExecutor(clients) as threads:
            sent = threads.map(lambda each: upload(client, "bench", f"{each[0]}.md", each[1]), files.items())
            for answer in sent:
                answer.raise_for_status()

    return send


def send_packed(client: httpx.Client, files: dict[str, bytes]) -> None:
    rest = list(files.items())
    while rest:
        send_batch(client, dict(rest[:PACK_FILES]), is_packed=True)
        rest = rest[PACK_FILES:]


if __name__ == "__main__":
    main()
