"""One run on two checkouts: the one at hand, and with `--base` that of another interpreter; what its work costs them.

The base comes first in each pair of rows. Its interpreter is named by itself or by its virtual environment.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from tests.acceptance.installations import Installation, process_tree
from tests.bench.installations import read_options
from tests.bench.machines import fsync_ms, report
from tests.conftest import UNLIMITED

Row = dict[str, Any]

#: How often the end of a command is looked for; no figure is finer.
TICK_S = 0.004
#: How often the memory of the daemon's whole tree is summed, which takes the kernel a millisecond.
MEMORY_EVERY_S = 0.25


class Used(NamedTuple):
    """Seconds of a processor, user and system."""

    daemon: float = 0.0
    fork_server: float = 0.0
    #: The children that read documents, reaped ones too.
    readers: float = 0.0
    command: float = 0.0

    def each_ms(self, files: int) -> dict[str, float]:
        """Milliseconds of a processor for each file, in all and apart."""
        parts = {f"{name}_ms": round(used_s * 1000 / files, 3) for name, used_s in self._asdict().items()}
        return {"processor_ms": round(sum(self) * 1000 / files, 3)} | parts


class Cost(NamedTuple):
    """What one command took, and its daemon meanwhile."""

    wall_s: float
    used: Used
    #: The most memory of the command, of the daemon by itself, and of the daemon and its children.
    command_mb: float
    daemon_mb: float
    tree_mb: float


class Side(Installation):
    """An installation of the checkout that an interpreter has installed; its programs are interpreters of their own."""

    def __init__(self, root: Path, name: str, python: str, **variables: str) -> None:
        super().__init__(root, **variables)
        self.name = name
        self.python = python
        # What the interpreter has installed counts, not the folder that the benchmark runs from, and it keeps its
        # compiled modules: without them each command would compile for a quarter of a second.
        for variable in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE"):
            self.environ.pop(variable, None)
        root.mkdir()

    def spawn(self, *words: str, launcher: Any = (), **options: Any) -> "subprocess.Popen[Any]":
        """Start the module that comes first with the other words."""
        options = {"env": self.environ, "cwd": self.root, "stdin": subprocess.DEVNULL, **options}
        return subprocess.Popen([*launcher, self.python, "-m", *words], **options)

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
                    looked_s, peaks_mb[1] = time.perf_counter(), max(peaks_mb[1], self._tree_mb())
                time.sleep(TICK_S)
            wall_s = time.perf_counter() - begin_s
        process.returncode = os.waitstatus_to_exitcode(ended[1])
        if process.returncode:
            raise RuntimeError(f"svc {words} ended with {process.returncode}: {self.said()}")
        spent = Used(*(after - was for after, was in zip(self._used(), before, strict=True)))
        used = spent._replace(command=ended[2].ru_utime + ended[2].ru_stime)
        return Cost(wall_s, used, peaks_mb[0], _peak_mb(self.pid or 0), peaks_mb[1])

    def said(self) -> str:
        """The end of what the last `svc` printed, on both streams."""
        texts = ((self.root / f"svc.{stream}").read_text(encoding="utf-8") for stream in ("out", "err"))
        return "\n".join(text[-2000:] for text in texts)

    def printed_json(self) -> Any:
        """The JSON value that the last `svc` printed."""
        return json.loads((self.root / "svc.out").read_text(encoding="utf-8"))

    def _used(self) -> Used:
        pid, times = self.pid or 0, {}
        for process in process_tree(pid):
            with suppress(psutil.NoSuchProcess):
                times[process.pid] = process.ppid(), process.cpu_times()
        own_s = {each: used.user + used.system for each, (_, used) in times.items()}
        servers_s = sum(own_s[each] for each, (parent, _) in times.items() if parent == pid)
        reaped_s = sum(used.children_user + used.children_system for _, used in times.values())
        return Used(own_s[pid], servers_s, sum(own_s.values()) + reaped_s - own_s[pid] - servers_s)

    def _tree_mb(self) -> float:
        """Memory of the daemon and its children, each shared page counted once."""
        total = 0
        for process in process_tree(self.pid or 0):
            with suppress(psutil.NoSuchProcess):
                total += process.memory_full_info().pss
        return total / 2**20


def each_side(
    options: argparse.Namespace, variables: Mapping[str, str] = UNLIMITED, *, is_running: bool = True
) -> Iterator[Side]:
    """A fresh installation of each side in its turn, its daemon running; gone when the next one comes."""
    for name, python in pythons(options.base).items():
        with _installed(options.folder, name, python, variables) as side:
            if is_running:
                side.start()
            yield side


@contextmanager
def all_sides(options: argparse.Namespace) -> Iterator[list[Side]]:
    """Fresh installations of all sides, their daemons running: for runs in turns, so that noise is the same for all."""
    with ExitStack() as stack:
        installed = (_installed(options.folder, *each, UNLIMITED) for each in pythons(options.base).items())
        yield [stack.enter_context(each).start() for each in installed]


@contextmanager
def _installed(folder: Path | None, name: str, python: str, variables: Mapping[str, str]) -> Iterator[Side]:
    with tempfile.TemporaryDirectory(dir=folder) as root:
        side = Side(Path(root) / "side", name, python, **variables)
        try:
            yield side
        finally:
            side.clear()


def pythons(base: str) -> dict[str, str]:
    """The interpreter of each side, by its name."""
    # Links stay as they are: a virtual environment's interpreter is one.
    path = Path(base).absolute()
    return ({"base": str(path / "bin/python" if path.is_dir() else path)} if base else {}) | {"now": sys.executable}


def read_side_options(about: str | None, **defaults: Any) -> argparse.Namespace:
    """The benchmark's own options, `--base` and `--json`."""
    return read_options(about, **defaults, base="", json=False)


def report_rows(name: str, options: argparse.Namespace, rows: list[Row]) -> None:
    """Print the table; with `--json`, one JSON line."""
    folder = options.folder or Path(tempfile.gettempdir())
    if options.json:
        report(name, vars(options), {"rows": rows}, folder)
        return
    columns = list(dict.fromkeys(column for row in rows for column in row))
    cells = [columns, *([str(row.get(column, "")) for column in columns] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ("  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)) for line in cells)
    sys.stdout.write("\n".join(lines) + f"\n(an fsync: {fsync_ms(folder)} ms)\n")


def _peak_mb(pid: int) -> float:
    """The most memory that the process has had; 0 once it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024
