"""The files of a watcher that other processes read, a few small ones for each mapping.

`.json` is its state, replaced as a whole; `.log` is what it did, a line of JSON each; `.lock` is held as long as it
runs, and released by the kernel however it ends; `.ask` is there while somebody waits for a whole sync.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from svc_cli.errors import SyncRunning
from svc_cli.sync.mappings import Mapping
from svc_daemon.wire import Json

#: A longer log becomes `.log.1`, in the place of the one before.
LOG_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Record:
    """The files of one mapping."""

    base: Path

    @classmethod
    def of(cls, mapping: Mapping, state_dir: Path, service: str) -> "Record":
        """`service` is the address that was asked for; empty for the local daemon, wherever it listens."""
        identity = json.dumps([service, mapping.bucket, str(mapping.folder), mapping.name])
        return cls(state_dir / "watch" / hashlib.sha256(os.fsencode(identity)).hexdigest()[:24])

    @classmethod
    def all(cls, state_dir: Path) -> "list[Record]":
        """Every mapping that was ever watched by this user."""
        return [cls(path.with_suffix("")) for path in sorted((state_dir / "watch").glob("*.json"))]

    @contextlib.contextmanager
    def hold(self, what: str) -> Iterator[None]:
        """Hold the lock of the only watcher of this mapping. Raises SyncRunning."""
        self.base.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._path("lock").open("a") as lock:
            if not _lock(lock.fileno()):
                raise SyncRunning(
                    f"{what} is watched already.", hint="`svc watch status` shows by whom; one watcher is enough."
                )
            yield

    @property
    def is_held(self) -> bool:
        """Whether a watcher runs."""
        try:
            with self._path("lock").open("a") as lock:
                return not _lock(lock.fileno())
        except FileNotFoundError:
            return False

    def read_state(self) -> Json:
        """The state that the last watcher wrote; empty where there was none."""
        try:
            state: Json = json.loads(self._path("json").read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return state

    def write_state(self, state: Json) -> None:
        draft = self._path("json.new")
        draft.write_text(json.dumps(state, ensure_ascii=False), "utf-8", errors="surrogateescape")
        draft.replace(self._path("json"))

    def log(self, line: Json) -> None:
        """Add a line, with its time."""
        path = self._path("log")
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_size > LOG_BYTES:
                path.replace(self._path("log.1"))
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        with path.open("a", encoding="utf-8", errors="surrogateescape") as log:
            log.write(json.dumps({"at": at, **line}, ensure_ascii=False) + "\n")

    def read_log(self, lines: int) -> list[Json]:
        """The last lines, oldest first."""
        found: list[str] = []
        for name in ("log.1", "log"):
            with contextlib.suppress(FileNotFoundError):
                found += self._path(name).read_text("utf-8", errors="replace").splitlines()
        # A watcher that was killed may have left half a line.
        return [json.loads(line) for line in found[-lines:] if line.endswith("}")] if lines else []

    def ask(self) -> str:
        """Ask the watcher for a whole sync. Returns the token that its state will show as `flushed` when it is done."""
        token = uuid.uuid4().hex
        draft = self._path(f"ask.{token}")
        draft.write_text(token)
        draft.replace(self._path("ask"))
        return token

    def find_ask(self) -> str | None:
        """The token of the last request for a sync."""
        try:
            return self._path("ask").read_text() or None
        except OSError:
            return None

    def end_ask(self, token: str) -> None:
        """Forget the request, unless somebody has asked again."""
        if self.find_ask() == token:
            with contextlib.suppress(OSError):
                self._path("ask").unlink()

    def forget(self) -> None:
        """Remove the files."""
        for name in ("json", "log", "log.1", "ask", "lock"):
            self._path(name).unlink(missing_ok=True)

    def _path(self, suffix: str) -> Path:
        return self.base.with_name(f"{self.base.name}.{suffix}")


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
