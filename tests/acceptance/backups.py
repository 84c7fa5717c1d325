"""Make backups, also hostile ones, and restore them, in the test's process or in a child that is killed."""

import os
import shutil
import signal
import sqlite3
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

from svc_daemon.core.times import to_text
from svc_daemon.offline.backing_up import BackupOptions, BackupSummary, back_up
from svc_daemon.offline.restoring import RestoreOptions, RestoreSummary, restore
from svc_daemon.paths import DataFiles
from svc_daemon.store.files.backups import BackupFolder, find_backup
from tests.acceptance.calls import take_in
from tests.acceptance.installations import Installation
from tests.conftest import UNLIMITED

#: `run_killed` counts the lines that are executed in these modules.
COUNTED = tuple(
    f"svc_daemon/{name}.py"
    for name in ("offline/backing_up", "offline/restoring", "store/files/backups", "store/files/copies")
)
#: The name of the backup in `backup_m013.tar.gz`, which was made with the first schema.
BACKUP = "2026-11-28T16-47-36Z"


def unpack_backup(folder: Path) -> None:
    """Unpack a backup of the first schema, whose idempotency keys become as young as on the day it was made."""
    with tarfile.open(Path(__file__).parent.parent / "store" / "backup_m013.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    with closing(sqlite3.connect(folder / BACKUP / "state.db")) as state, state:
        state.execute("UPDATE idempotency SET created_at = ?", (to_text(datetime.now(UTC)),))


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


def fill_data(root: Path) -> Iterator[Path]:
    """Yield the data directory of a killed daemon with three ready notes and an open upload session."""
    installation = Installation(root, **UNLIMITED).start()
    with installation.client() as client:
        for number in range(3):
            take_in(client, "inbox", f"{number}.md", f"# Note {number}\n\nThe umber quay.\n".encode())
        body = {"filename": "half.md", "size_bytes": 20}
        opened = client.post("/v1/buckets/inbox/uploads", json=body).json()
        headers = {"Content-Range": "bytes 0-9/20"}
        assert client.put(opened["upload_url"], content=b"0123456789", headers=headers).status_code == 308
    installation.kill()
    yield installation.files.root
    installation.clear()


class Stage:
    """A hostile backup in `root/backups`, a restored directory in `root/data`, and files of others in `root/home`."""

    def __init__(self, whole: Path, root: Path) -> None:
        self.root = root
        self.backups, self.data, self.home = (root / name for name in ("backups", "data", "home"))
        self.backup = Path(shutil.copytree(whole, self.backups / whole.name))
        (self.home / "folder").mkdir(parents=True)
        for name in (".bashrc", "folder/letter.txt", "src_" + "0" * 26, "folder/upl_" + "0" * 26):
            (self.home / name).write_text("theirs")
        with closing(sqlite3.connect(self.home / "theirs.db")) as theirs, theirs:
            theirs.execute("CREATE TABLE letters (text TEXT)")

    def sql(self, *statements: str, name: str = "state.db") -> None:
        with closing(sqlite3.connect(self.backup / name, isolation_level=None)) as state:
            state.execute("PRAGMA foreign_keys = OFF")
            for statement in statements:
                state.execute(statement)
            # A complete backup has no log beside its databases.
            state.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def outside(self) -> dict[str, bytes | str]:
        """Return what is in all files and links, except in the restored directory and the backups."""
        places = [path for path in self.root.rglob("*") if not path.is_relative_to(self.data)]
        kept = [path for path in places if not path.is_relative_to(self.backups)]
        return {
            str(path): str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else ""
            for path in kept
        }

    def files(self) -> list[str]:
        """Return the names of all files and links in the restored directory."""
        found = [path for path in self.data.rglob("*") if path.is_symlink() or not path.is_dir()]
        return sorted(str(path.relative_to(self.data)) for path in found)


def put_link(path: Path, target: Path) -> None:
    """Put a symbolic link in the place of a file or folder, which may be missing."""
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def put_hard_link(path: Path, target: Path) -> None:
    path.unlink()
    path.hardlink_to(target)


def put_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)
