"""The files through which a watcher and other processes communicate, one set for each mapping.

`.json`   the watcher's state, replaced atomically
`.log`    a line of JSON for each action of the watcher
`.lock`   locked while the watcher runs, until its process ends
`.ask`    a request for a full sync, which exists until the sync is done
"""

import contextlib
import hashlib
import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from svc_cli.errors import SyncRunning
from svc_cli.private_files import lock as lock_file
from svc_cli.private_files import rename
from svc_cli.sync.mappings import Mapping
from svc_daemon.wire import Json
from svc_daemon.wire.light.parsing import parse_json

#: A longer log is renamed to `.log.1`.
LOG_BYTES = 1024 * 1024
#: A request with such a token also accepts that a link leads to the folder now, or that it has another owner.
ACCEPTING = "accept-"


@dataclass(frozen=True, slots=True)
class Record:
    """The files of one mapping's watcher, such as its state and its log."""

    base: Path

    @classmethod
    def of(cls, mapping: Mapping, state_dir: Path, service: str) -> "Record":
        """Return the record of a mapping. `service` is the service's URL; empty for the local daemon."""
        identity = json.dumps([service, mapping.bucket, str(mapping.folder), mapping.name])
        return cls(state_dir / "watch" / hashlib.sha256(os.fsencode(identity)).hexdigest()[:24])

    @classmethod
    def all(cls, state_dir: Path) -> "list[Record]":
        """Return the records of all mappings that this user has watched."""
        return [cls(path.with_suffix("")) for path in sorted((state_dir / "watch").glob("*.json"))]

    @contextlib.contextmanager
    def hold(self, what: str) -> Iterator[None]:
        """Lock the mapping during the block. Raises SyncRunning if another watcher runs."""
        self.base.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._path("lock").open("a") as lock:
            if not _lock(lock.fileno()):
                raise SyncRunning(
                    f"{what} is already being watched.",
                    hint="`svc watch status` shows the running watcher; one is enough.",
                )
            yield

    @property
    def is_held(self) -> bool:
        """Whether a watcher of this mapping is running."""
        try:
            with self._path("lock").open("a") as lock:
                return not _lock(lock.fileno())
        except FileNotFoundError:
            return False

    def read_state(self) -> Json:
        """Return the state that the last watcher wrote; empty if there is none."""
        try:
            state: Json = parse_json(self._path("json").read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return state

    def write_state(self, state: Json) -> None:
        draft = self._path("json.new")
        draft.write_text(json.dumps(state, ensure_ascii=False), "utf-8", errors="surrogateescape")
        rename(draft, self._path("json"))

    def log(self, line: Json) -> None:
        """Append a line to the log."""
        path = self._path("log")
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_size > LOG_BYTES:
                path.replace(self._path("log.1"))
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        with path.open("a", encoding="utf-8", errors="surrogateescape") as log:
            log.write(json.dumps({"at": at, **line}, ensure_ascii=False) + "\n")

    def read_log(self, lines: int) -> list[Json]:
        """Return the last `lines` lines of the log, oldest first."""
        found: list[str] = []
        for name in ("log.1", "log"):
            with contextlib.suppress(FileNotFoundError):
                found += self._path(name).read_text("utf-8", errors="replace").splitlines()
        # A killed watcher may have left an incomplete line.
        return [parse_json(line) for line in found[-lines:] if line.endswith("}")] if lines else []

    def ask(self, *, accepts_root: bool) -> str:
        """Request a full sync. Returns a token, which the watcher's state contains after the sync."""
        token = f"{ACCEPTING if accepts_root else ''}{uuid.uuid4().hex}"
        draft = self._path(f"ask.{token}")
        draft.write_text(token)
        rename(draft, self._path("ask"))
        return token

    def find_ask(self) -> str | None:
        """Return the token of the pending request for a full sync; None if there is none."""
        try:
            return self._path("ask").read_text() or None
        except OSError:
            return None

    def end_ask(self, token: str) -> None:
        """Delete the request with this token, unless a newer request has replaced it."""
        if self.find_ask() == token:
            with contextlib.suppress(OSError):
                self._path("ask").unlink()

    def forget(self) -> None:
        """Delete the watcher's files for this mapping."""
        for name in ("json", "log", "log.1", "ask", "lock"):
            self._path(name).unlink(missing_ok=True)

    def _path(self, suffix: str) -> Path:
        return self.base.with_name(f"{self.base.name}.{suffix}")


def _lock(descriptor: int) -> bool:
    try:
        lock_file(descriptor)
    except BlockingIOError:
        return False
    return True
