"""`svc-daemon backup` of many small sources: the first, one with nothing new, one with some new ones; and a restore.

Beside `restic` on the same folder, where it is installed. The daemon runs but has nothing to do, so that copies are
alike; while it works, what restic copies would not fit together.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from tests.acceptance.installations import Installation
from tests.bench.bench_folders import make_files
from tests.bench.installations import measured, read_options, run_svc
from tests.bench.machines import report

Row = dict[str, float]


def main() -> None:
    options = read_options(__doc__, files=10_000, size_bytes=4096, new=100)
    with measured(options.folder) as daemon:
        notes = daemon.root / "notes"
        make_files(notes / "old", options.files, options.size_bytes)
        _take_in(daemon)
        tools = {"svc": _Svc(daemon)} | ({"restic": _Restic(daemon)} if shutil.which("restic") else {})
        figures: dict[str, dict[str, Row]] = {name: {} for name in tools}
        for turn in ("first", "unchanged", "some_new"):
            if turn == "some_new":
                make_files(notes / "new", options.new, options.size_bytes + 1)
                _take_in(daemon)
            for name, tool in tools.items():
                figures[name][turn] = tool.back_up()
        daemon.stop()
        for name, tool in tools.items():
            figures[name]["restore"] = tool.restore()
        sizes = {f"{name}_mb": _megabytes(daemon.root / name) for name in ("data", *tools)}
        report("backups", vars(options), {**figures, **sizes}, daemon.root)


def _take_in(daemon: Installation) -> None:
    run_svc(daemon, "upload", "notes", "-b", "bench", "--json", "--timeout", "60m")


class _Svc:
    def __init__(self, daemon: Installation) -> None:
        self._daemon = daemon

    def back_up(self) -> Row:
        return _measure(self._daemon.environ, sys.executable, "-m", "svc_daemon", "backup", self._daemon.root / "svc")

    def restore(self) -> Row:
        environ = {**self._daemon.environ, "SVC_DATA_DIR": str(self._daemon.root / "svc-restored")}
        return _measure(environ, sys.executable, "-m", "svc_daemon", "restore", self._daemon.root / "svc")


class _Restic:
    def __init__(self, daemon: Installation) -> None:
        self._root, self._data = daemon.root, daemon.files.root
        self._environ = {
            **os.environ,
            "RESTIC_REPOSITORY": str(daemon.root / "restic"),
            "RESTIC_PASSWORD": "bench",
            "RESTIC_CACHE_DIR": str(daemon.root / "restic-cache"),
        }
        _measure(self._environ, "restic", "init", "-q")

    def back_up(self) -> Row:
        return _measure(self._environ, "restic", "backup", "-q", self._data)

    def restore(self) -> Row:
        target = self._root / "restic-restored"
        return _measure(self._environ, "restic", "restore", "-q", "latest", "--target", target)


def _measure(environ: Mapping[str, str], *command: str | Path) -> Row:
    """Run a command to its end; its seconds by the clock and of the processor."""
    # What was written before is not its work.
    os.sync()
    begin_s = time.perf_counter()
    process = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - begin_s
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command} ended with {process.returncode}")
    return {"wall_s": round(wall_s, 2), "processor_s": round(used.ru_utime + used.ru_stime, 2)}


def _megabytes(folder: Path) -> float:
    """What the files of a folder take, each counted once however many links it has."""
    found = {(each.st_dev, each.st_ino): each for each in map(Path.lstat, folder.rglob("*"))}
    return round(sum(each.st_blocks * 512 for each in found.values()) / 1e6, 1)


if __name__ == "__main__":
    main()
