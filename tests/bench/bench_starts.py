"""What starts cost: of `svc` until it ends, and of the daemon's process until its first answer on /healthz.

    python -m tests.bench.bench_starts --base ~/svc-1.0

Wall time and processor time, each the median of its rounds. With `--base`, the installation of another interpreter
is measured too, in turns, so that a busy second slows both alike; its figures come first in each pair.
"""

import argparse
import os
import statistics
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil

from tests.acceptance.installations import wait_until
from tests.bench.machines import report
from tests.bench.sides import Side, pythons
from tests.conftest import UNLIMITED

#: As the installed command starts: no search for a module to run.
_SVC = ("-c", "import sys; from svc_cli.main import main; sys.exit(main())")
_COMMANDS = {
    "interpreter": ("-c", "pass"),
    "svc --version": (*_SVC, "--version"),
    "svc --help": (*_SVC, "--help"),
    "svc status --json": (*_SVC, "status", "--json"),
    "TAB on a bucket": (*_SVC, "bucket", "ls", "--names", "--no-autostart"),
    "svc status -b": (*_SVC, "status", "-b", "handbook", "--json"),
    "svc search": (*_SVC, "search", "leave", "--json"),
    "svc upload": (*_SVC, "upload", "leave.md", "-b", "handbook", "--json"),
}


class Starts:
    """One of the installations that are compared, and what its starts have cost."""

    def __init__(self, root: Path, name: str, python: str) -> None:
        self._daemon = Side(root, name, python, **UNLIMITED)
        #: Wall and processor milliseconds of each round, by what was started.
        self.costs: dict[str, list[tuple[float, float]]] = defaultdict(list)
        (root / "leave.md").write_text("Leave is granted by the team lead.\n")

    def measure(self) -> None:
        """One round: a daemon on a fresh directory and again on the same one, and each command."""
        self._time("daemon, first start", self._start)
        self._time("daemon, stop", self._stop)
        self._time("daemon, later start", self._start)
        self._run("svc upload", _COMMANDS["svc upload"])
        for name, words in _COMMANDS.items():
            self._time(name, partial(self._run, name, words))
        self._stop()
        self._daemon.files.root.rename(self._daemon.root / f"data-{time.monotonic_ns()}")

    def _time(self, name: str, act: Callable[[], float]) -> None:
        begin_s = time.perf_counter()
        cpu_s = act()
        self.costs[name].append(((time.perf_counter() - begin_s) * 1000, cpu_s * 1000))

    def _start(self) -> float:
        self._process = self._daemon.spawn_daemon()
        wait_until(self._daemon.health, "the daemon's first answer", every_s=0.005)
        return self._used_s()

    def _used_s(self) -> float:
        return float(sum(psutil.Process(self._process.pid).cpu_times()[:2]))

    def _stop(self) -> float:
        before_s = self._used_s()
        self._process.terminate()
        _, status, used = os.wait4(self._process.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        return used.ru_utime + used.ru_stime - before_s

    def _run(self, name: str, words: tuple[str, ...]) -> float:
        process = subprocess.Popen(
            [self._daemon.python, *words],
            env=self._daemon.environ,
            cwd=self._daemon.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"{name} ended with {process.returncode}")
        return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--base", default="", help="the interpreter, or its environment, to compare with")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sides = [Starts(Path(folder) / name, name, python) for name, python in pythons(options.base).items()]
        for _ in range(options.rounds):
            for side in sides:
                side.measure()
        results = {name: _compare([side.costs[name] for side in sides]) for name in sides[0].costs}
        report("starts", vars(options), {"wall_cpu_ms": results}, Path(folder))


def _compare(sides: list[list[tuple[float, float]]]) -> dict[str, list[float]]:
    """The medians of wall and processor time, side after side, and the shares that the last has of the first."""
    medians = [[statistics.median(costs) for costs in zip(*rounds, strict=True)] for rounds in sides]
    kinds = {kind: [round(side[place], 1) for side in medians] for place, kind in enumerate(("wall_ms", "cpu_ms"))}
    shares = [round(last / first, 2) for first, last in zip(medians[0], medians[-1], strict=True)]
    return kinds | ({"share_wall_cpu": shares} if len(sides) > 1 else {})


if __name__ == "__main__":
    main()
