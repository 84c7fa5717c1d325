"""What starts cost: of `svc` until it ends, and of the daemon's process until its first answer on /healthz.

Wall time and processor time, each the median of its rounds.
"""

import os
import statistics
import subprocess
import time
from collections import defaultdict

from tests.acceptance.installations import wait_until
from tests.bench.harness import Side, all_sides, clock_s, read_options, report, timed

#: As the installed command starts: no search for a module to run.
_SVC = ("-c", "import sys; from svc_cli.main import main; sys.exit(main())")
_COMMANDS = {
    "interpreter": ("-c", "pass"),
    "svc --version": (*_SVC, "--version"),
    "svc --help": (*_SVC, "--help"),
    "svc upload": (*_SVC, "upload", "leave.md", "-b", "handbook", "--json"),
    "svc status --json": (*_SVC, "status", "--json"),
    "svc status -b": (*_SVC, "status", "-b", "handbook", "--json"),
    "svc search": (*_SVC, "search", "leave", "--json"),
    "TAB on a bucket": (*_SVC, "bucket", "ls", "--names", "--no-autostart"),
}
Costs = dict[str, list[tuple[float, float]]]


def main() -> None:
    options = read_options(__doc__, rounds=10)
    with all_sides(options, is_running=False) as sides:
        costs: dict[str, Costs] = {side.name: defaultdict(list) for side in sides}
        for side in sides * options.rounds:
            _measure(side, costs[side.name])
    rows = []
    for start in costs["now"]:
        for name, each in costs.items():
            wall_ms, cpu_ms = (round(statistics.median(kind), 1) for kind in zip(*each[start], strict=True))
            rows.append({"start": start, "side": name, "wall_ms": wall_ms, "cpu_ms": cpu_ms})
    report("starts", options, rows)


def _measure(side: Side, costs: Costs) -> None:
    """One round: a daemon on a fresh directory and again on the same one, and each command."""
    (side.root / "leave.md").write_text("Leave is granted by the team lead.\n")
    for start in ("daemon, first start", "daemon, later start"):
        (process, cpu_s), wall_s = timed(lambda: _start(side))
        costs[start].append((wall_s * 1000, cpu_s * 1000))
        if start == "daemon, first start":
            _stop(process)
    _run(side, "svc upload")
    for command in _COMMANDS:
        cpu_s, wall_s = timed(lambda: _run(side, command))  # noqa: B023
        costs[command].append((wall_s * 1000, cpu_s * 1000))
    _stop(process)
    side.files.root.rename(side.root / f"data-{time.monotonic_ns()}")


def _start(side: Side) -> tuple["subprocess.Popen[bytes]", float]:
    process = side.spawn_daemon()
    wait_until(side.health, "the daemon's first answer", every_s=0.005)
    return process, clock_s(process.pid)


def _stop(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    process.wait()


def _run(side: Side, command: str) -> float:
    """Run a command to its end; the seconds of a processor that it took."""
    words = [side.python, *_COMMANDS[command]]
    null = subprocess.DEVNULL
    process = subprocess.Popen(words, env=side.environ, cwd=side.root, stdin=null, stdout=null)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command} ended with {process.returncode}")
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
