"""Make backups and restore them, in the test's process or in a child that is killed at a chosen line."""

import os
import signal
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

from svc_daemon.backing_up import BackupOptions, BackupSummary, back_up
from svc_daemon.paths import DataFiles
from svc_daemon.restoring import RestoreOptions, RestoreSummary, restore
from svc_daemon.store.backups import BackupFolder, find_backup

#: `run_killed` counts the lines that are executed in these modules.
COUNTED = tuple(f"svc_daemon/{name}.py" for name in ("backing_up", "restoring", "store/backups", "store/copies"))


def make_backup(data: Path, folder: Path, *, keep: int = 7, read_data: bool = False) -> BackupSummary:
    options = BackupOptions(keep=keep, read_data=read_data, now=lambda: datetime.now(UTC), report=lambda *_: None)
    return back_up(DataFiles(data), BackupFolder(folder), options)


def restore_backup(folder: Path, data: Path) -> RestoreSummary:
    options = RestoreOptions(now=lambda: datetime.now(UTC), report=lambda *_: None)
    return restore(find_backup(folder), DataFiles(data), options)


def run_killed(work: Callable[[], object], line: int, counted: tuple[str, ...] = COUNTED) -> int:
    """Run `work` in a child that is killed before the given counted line; return how many lines it reached."""
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        lines = 0

        def trace(frame: FrameType, event: str, _argument: Any) -> Any:
            nonlocal lines
            if not frame.f_code.co_filename.endswith(counted):
                return None
            if event == "line":
                lines += 1
                if lines == line:
                    os.write(write, str(lines).encode())
                    os.kill(os.getpid(), signal.SIGKILL)
            return trace

        sys.settrace(trace)
        try:
            work()
        finally:
            sys.settrace(None)
            os.write(write, str(lines).encode())
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as reached:
        os.waitpid(child, 0)
        return int(reached.read())
