"""The harness of the benchmarks: daemons of this checkout and of a base, what they cost, and how figures are printed.

`--base PYTHON_OR_VENV` measures another checkout in the same run, the one that this interpreter has installed. The
sides take turns, the base first, so that a busy second slows both alike.
"""

import argparse
import json
import os
import platform
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import psutil

from tests.acceptance.installations import Installation, process_tree, wait_until
from tests.conftest import UNLIMITED

T = TypeVar("T")
Row = dict[str, Any]

#: How often the end of a command is looked for; no figure is finer.
TICK_S = 0.004
#: How often the memory of the daemon's whole tree is summed, which takes the kernel a millisecond.
MEMORY_EVERY_S = 0.25


class Used(NamedTuple):
    """Seconds of a processor, user and system."""

    daemon: float = 0.0
    fork_server: float = 0.0
    #: The children that read documents, ended ones too.
    readers: float = 0.0
    command: float = 0.0

    def each_ms(self, files: int) -> Row:
        """Milliseconds of a processor for each file, in all and apart."""
        parts = {f"{name}_ms": round(used_s * 1000 / files, 3) for name, used_s in self._asdict().items()}
        return {"processor_ms": round(sum(self) * 1000 / files, 3)} | parts


class Cost(NamedTuple):
    """What one command took, and its daemon meanwhile."""

    wall_s: float
    used: Used
    #: The most memory of the command, and of the daemon and its children.
    command_mb: float
    tree_mb: float


class Side(Installation):
    """An installation of the checkout that an interpreter has installed; its programs are interpreters of their own."""

    def __init__(self, root: Path, name: str, python: str, **variables: str) -> None:
        super().__init__(root, **variables)
        self.name = name
        self.python = python
        #: How the interpreter is given a module to run.
        self.runs: Sequence[str] = ("-m",)
        # What the interpreter has installed counts, not the folder that the benchmark runs from, and it keeps its
        # compiled modules: without them each command would compile for a quarter of a second.
        for variable in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE"):
            self.environ.pop(variable, None)
        root.mkdir(parents=True)

    def spawn(self, *words: str, launcher: Any = (), **options: Any) -> "subprocess.Popen[Any]":
        """Start the module that comes first with the other words."""
        options = {"env": self.environ, "cwd": self.root, "stdin": subprocess.DEVNULL, **options}
        return subprocess.Popen([*launcher, self.python, *self.runs, *words], **options)

    def run_svc(self, *words: str, meanwhile: Callable[[], object] = lambda: None) -> Cost:
        """Run `svc` to its end, and `meanwhile` every few milliseconds. Raises RuntimeError if it fails."""
        before, peaks_mb, looked_s = self._used(), [0.0, 0.0], 0.0
        with (self.root / "svc.out").open("wb") as out, (self.root / "svc.err").open("wb") as err:
            begin_s = time.perf_counter()
            process = self.spawn("svc_cli", *words, stdout=out, stderr=err)
            while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
                meanwhile()
                peaks_mb[0] = max(peaks_mb[0], _peak_mb(process.pid))
                if time.perf_counter() > looked_s + MEMORY_EVERY_S:
                    looked_s, peaks_mb[1] = time.perf_counter(), max(peaks_mb[1], self.tree_mb())
                time.sleep(TICK_S)
            wall_s = time.perf_counter() - begin_s
        process.returncode = os.waitstatus_to_exitcode(ended[1])
        if process.returncode:
            raise RuntimeError(f"svc {words} ended with {process.returncode}: {self.said()}")
        spent = Used(*(after - was for after, was in zip(self._used(), before, strict=True)))
        used = spent._replace(command=ended[2].ru_utime + ended[2].ru_stime)
        return Cost(wall_s, used, peaks_mb[0], peaks_mb[1])

    def said(self) -> str:
        """The end of what the last `svc` printed, on both streams."""
        texts = ((self.root / f"svc.{stream}").read_text(encoding="utf-8") for stream in ("out", "err"))
        return "\n".join(text[-2000:] for text in texts)

    def printed_json(self) -> Any:
        """The JSON value that the last `svc` printed."""
        return json.loads((self.root / "svc.out").read_text(encoding="utf-8"))

    def facts(self) -> dict[str, Any]:
        """What `/healthz` says; raises ConnectionError if nothing does."""
        if (health := self.health()) is None:
            raise ConnectionError(f"the daemon of {self.name} does not answer")
        return health

    def wait_idle(self, timeout_s: float = 3600, every_s: float = 0.2) -> None:
        """Wait until nothing is left to index."""
        wait_until(lambda: not any(self.facts()["queue"].values()), "the end of indexing", timeout_s, every_s)

    def processor_s(self) -> float:
        """User and system time of the daemon and of all below it, ended ones too, in seconds."""
        return processor_s(self.pid or 0)

    def tree_mb(self) -> float:
        """Memory of the daemon and its children, each shared page counted once."""
        total = 0
        for process in process_tree(self.pid or 0):
            with suppress(psutil.NoSuchProcess):
                total += process.memory_full_info().pss
        return total / 2**20

    def _used(self) -> Used:
        pid, times = self.pid or 0, {}
        for process in process_tree(pid):
            with suppress(psutil.NoSuchProcess):
                times[process.pid] = process.ppid(), process.cpu_times()
        own_s = {each: used.user + used.system for each, (_, used) in times.items()}
        servers_s = sum(own_s[each] for each, (parent, _) in times.items() if parent == pid)
        reaped_s = sum(used.children_user + used.children_system for _, used in times.values())
        return Used(own_s[pid], servers_s, sum(own_s.values()) + reaped_s - own_s[pid] - servers_s)


def read_options(about: str | None, **defaults: Any) -> argparse.Namespace:
    return make_parser(about, **defaults).parse_args()


def make_parser(about: str | None, **defaults: Any) -> argparse.ArgumentParser:
    """An option for each default, of its type: a list takes several values, False makes a flag, None takes it away."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in ({"base": "", "json": False, "folder": ""} | defaults).items():
        if default is None:
            parser.set_defaults(**{name: ""})
            continue
        first = default[0] if isinstance(default, list) and default else default
        takes: Row = {"action": "store_true"} if first is False else {"type": type(first), "default": default}
        if isinstance(default, list):
            takes["nargs"] = "*"
        parser.add_argument(f"--{name.replace('_', '-')}", **takes, help="default: %(default)s")
    return parser


@contextmanager
def all_sides(
    options: argparse.Namespace, variables: Mapping[str, str] = UNLIMITED, *, is_running: bool = True
) -> Iterator[list[Side]]:
    """Fresh installations of all sides with these variables, their daemons running."""
    with tempfile.TemporaryDirectory(dir=options.folder or None) as root, ExitStack() as stack:
        sides = []
        for name, python in pythons(options.base).items():
            sides.append(side := Side(Path(root) / name, name, python, **variables))
            stack.callback(side.clear)
            if is_running:
                side.start()
        yield sides


def pythons(base: str) -> dict[str, str]:
    """The interpreter of each side, by its name."""
    # Links stay as they are: a virtual environment's interpreter is one.
    path = Path(base).absolute()
    return ({"base": str(path / "bin/python" if path.is_dir() else path)} if base else {}) | {"now": sys.executable}


def report(name: str, options: argparse.Namespace, rows: Sequence[Row]) -> None:
    """Print the rows as a table; with `--json` one JSON line, with the parameters and the machine."""
    machine = describe(Path(options.folder or tempfile.gettempdir()))
    if options.json:
        line = {"benchmark": name, "parameters": vars(options), "rows": rows, "machine": machine}
        sys.stdout.write(json.dumps(line) + "\n")
        return
    columns = list(dict.fromkeys(column for row in rows for column in row))
    cells = [columns, *([str(row.get(column, "")) for column in columns] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ("  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)) for line in cells)
    sys.stdout.write("\n".join(lines) + f"\n(an fsync: {machine['fsync_ms']} ms)\n")


def describe(folder: Path) -> Row:
    """What speed depends on: processor, versions, and the median cost of making 4 KB durable in a folder."""
    names = (line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name"))
    path, costs_s = folder / f"fsync-probe-{os.getpid()}", []
    with path.open("wb", buffering=0) as probe:
        for _ in range(50):
            probe.write(bytes(4096))
            costs_s.append(timed(lambda: os.fsync(probe.fileno()))[1])
    path.unlink()
    return {
        "system": platform.platform(),
        "processor": next(names, platform.machine()).rpartition(": ")[2],
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        **{name: version(name) for name in ("starlette", "uvicorn")},
        "fsync_ms": round(statistics.median(costs_s) * 1000, 3),
    }


def timed(call: Callable[[], T]) -> tuple[T, float]:
    """What a call returns, and the seconds that it took."""
    begin_s = time.perf_counter()
    returned = call()
    return returned, time.perf_counter() - begin_s


def processor_s(pid: int) -> float:
    """User and system time of a process and of all below it, ended ones too, in seconds."""
    total_s = clock_s(pid)
    for process in process_tree(pid):
        with suppress(psutil.NoSuchProcess):
            total_s += sum(process.cpu_times()[2 if process.pid == pid else 0 : 4])
    return total_s


def clock_s(pid: int) -> float:
    """User and system time of a process alone, read from its clock (Linux): other counters have steps of 10 ms."""
    return time.clock_gettime(~pid << 3 | 2)


def spread_ms(durations_s: Sequence[float], *ranks: str) -> dict[str, float]:
    """p50, p95, p99 and the longest of some durations, or those that are named, in milliseconds."""
    ordered, count = sorted(durations_s), len(durations_s)
    places = {"max": count - 1} | {f"p{rank}": count * rank // 100 for rank in (50, 90, 95, 99)}
    return {f"{name}_ms": round(ordered[places[name]] * 1000, 2) for name in ranks or ("p50", "p95", "p99", "max")}


def _peak_mb(pid: int) -> float:
    """The most memory that the process has had; 0 once it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024
