"""Finds, starts and stops the local daemon.

One daemon owns one data directory, by a lock that it holds for life. `daemon.json` beside it is only a hint: it is
trusted when `/healthz` returns its installation id and proves to hold the directory's secret. So a stale file, a reused
process id or another program on the port, even of another user, can't be mistaken for the daemon and gets no key.

Starting is guarded by a lock of its own: of 20 commands at once one starts the daemon and the others find it.
"""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO

from svc_cli.daemon_probes import DaemonHealth, Foreign, probe
from svc_cli.errors import DaemonUnreachable
from svc_cli.exits import Exit
from svc_daemon import paths
from svc_daemon.wire.proofs import parse_secret

DEFAULT_ADDRESS = "127.0.0.1:7820"
START_TIMEOUT_S = 10.0
#: The daemon stops within 10 s; the rest is for a loaded machine.
STOP_TIMEOUT_S = 15.0
#: A start that takes longer than this is reported.
SILENT_START_S = 0.3
LOG_TAIL_LINES = 8
#: Bytes of free disk needed for the output of a daemon that can't start.
OUTPUT_BYTES = 4096
#: Elsewhere than on Linux the system's folder for temporary files must do.
MEMORY_FOLDER = "/dev/shm"  # noqa: S108 - the file in it has no name
#: Before another attempt at a directory that is locked.
LOCKED_PAUSE_S = 0.1


@dataclass(frozen=True, slots=True)
class Daemon:
    """A running daemon that has proved to be the one of this data directory."""

    pid: int
    base_url: str
    health: DaemonHealth
    record: Mapping[str, Any]


class Installation:
    """The data directory of an environment, and the daemon that owns it."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = environ
        self.files = paths.DataFiles(paths.data_dir(environ))

    @property
    def fixed_url(self) -> str | None:
        """The fixed address of this installation; None if it uses any free port."""
        listen = self.environ.get("SVC_LISTEN") or (DEFAULT_ADDRESS if paths.is_default_data_dir(self.environ) else "")
        return f"http://{listen}" if listen and not listen.endswith(":0") else None

    def record(self) -> dict[str, Any] | None:
        """The record that the last daemon wrote about itself; that one may have ended."""
        try:
            found = json.loads(self.files.daemon.read_text("utf-8"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) and "base_url" in found else None

    def secret(self) -> bytes | None:
        """The secret that this directory's daemon must prove to have; None if it can't be read."""
        try:
            return parse_secret(self.files.secret.read_text("utf-8"))
        except (OSError, UnicodeDecodeError):
            return None

    def find(self) -> Daemon | None:
        """The running daemon, or None. Raises DaemonUnreachable if something else holds its port."""
        record = self.record()
        seen = probe(str(record["base_url"]), secret=self.secret()) if record else None
        if record and isinstance(seen, DaemonHealth) and seen.installation_id == record.get("installation_id"):
            if seen.is_proven:
                return Daemon(int(record["pid"]), str(record["base_url"]), seen, record)
            if _is_alive(int(record["pid"])):
                raise self.unproven(str(record["base_url"]), int(record["pid"]))
        if record and isinstance(seen, Foreign) and seen.is_silent and _is_alive(int(record["pid"])):
            raise DaemonUnreachable(
                f"The daemon (process {record['pid']}) at {record['base_url']} does not answer.",
                hint=f"`svc daemon logs` may show why; `kill {record['pid']}` ends it.",
            )
        if self.fixed_url:
            self._refuse_taken_port(self.fixed_url)
        return None

    def unproven(self, base_url: str, pid: int) -> DaemonUnreachable:
        """The error for a service that claims to be this directory's daemon and can't prove it."""
        return DaemonUnreachable(
            f"What answers at {base_url} did not prove that it is the daemon of {self.files.root}; no key was sent.",
            code="svc_daemon_unproven",
            hint=f"if process {pid} is your `svc-daemon`: `kill {pid}`, then run the same command again.",
            details={"address": base_url, "pid": pid},
        )

    def ensure_running(self, report: Callable[[str], None], listen: str | None = None) -> tuple[Daemon, bool]:
        """The running daemon, started if there was none; True where this call started it. Raises DaemonUnreachable."""
        found = self.find()
        if found:
            return found, False
        with self._start_lock():
            found = self.find()
            if found:
                return found, False
            with self._open_output() as output:
                return self._start(output, report, listen), True

    def stop(self) -> int | None:
        """Ask the running daemon to end and wait until it has; its process id, or None where none ran."""
        daemon = self.find()
        if daemon is None:
            return None
        os.kill(daemon.pid, signal.SIGTERM)
        deadline_s = time.monotonic() + STOP_TIMEOUT_S
        while _is_alive(daemon.pid):
            if time.monotonic() > deadline_s:
                raise DaemonUnreachable(f"The daemon (process {daemon.pid}) did not end within {STOP_TIMEOUT_S:.0f} s.")
            time.sleep(0.02)
        return daemon.pid

    def command(self, listen: str | None = None) -> list[str]:
        """How the daemon is started, in the foreground."""
        return [sys.executable, "-m", "svc_daemon", "serve", *(["--listen", listen] if listen else [])]

    def child_environ(self) -> dict[str, str]:
        """This environment, with folders made absolute: the daemon runs in another folder than the user."""
        folders = {"SVC_DATA_DIR": str(self.files.root)} if self.environ.get("SVC_DATA_DIR") else {}
        return {**self.environ, **folders}

    def log_tail(self, lines: int) -> list[str]:
        """The last lines of the daemon's log, oldest first."""
        try:
            with self.files.log.open("rb") as file:
                file.seek(max(0, self.files.log.stat().st_size - 64 * 1024))
                return file.read().decode("utf-8", "replace").splitlines()[-lines:]
        except OSError:
            return []

    def _start(self, output: BinaryIO, report: Callable[[str], None], listen: str | None) -> Daemon:
        process = self._spawn(output, listen)
        began_s, said = time.monotonic(), False
        while time.monotonic() - began_s < START_TIMEOUT_S:
            found = self.find() if self.record() else None
            if found:
                return found
            if process.poll() == Exit.LOCKED:
                # A daemon that is just ending still holds the lock.
                time.sleep(LOCKED_PAUSE_S)
                process = self._spawn(output, listen)
            elif process.poll() is not None:
                break
            if not said and time.monotonic() - began_s > SILENT_START_S:
                said = True
                report("starting the daemon …")
            time.sleep(0.02)
        code = process.poll()
        what = f"did not answer within {START_TIMEOUT_S:.0f} s" if code is None else f"ended with exit code {code}"
        output.seek(0)
        tail = output.read().decode("utf-8", "replace").splitlines()[-LOG_TAIL_LINES:] or self.log_tail(LOG_TAIL_LINES)
        raise DaemonUnreachable(
            "\n  ".join([f"The daemon could not be started: it {what}.", *tail]),
            hint="`svc daemon run` starts it in the foreground, `svc doctor` checks the installation.",
            details={"exit_code": code, "log": tail},
        )

    def _open_output(self) -> BinaryIO:
        """A file for the daemon's output before its log is open, in memory if the disk is full."""
        path = self.files.log.with_name("start.log")
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            output = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), "r+b", buffering=0)
            output.write(b" " * OUTPUT_BYTES)
            output.truncate(0)
        except OSError:
            return TemporaryFile(dir=MEMORY_FOLDER if os.access(MEMORY_FOLDER, os.W_OK) else None, buffering=0)
        return output

    def _spawn(self, output: BinaryIO, listen: str | None) -> "subprocess.Popen[bytes]":
        """Start the daemon in a session of its own, so that neither Ctrl-C nor a closed terminal reaches it."""
        output.truncate(0)
        return subprocess.Popen(
            self.command(listen),
            # Run in the folder of our packages, so that `-m` never finds modules in the user's current folder.
            cwd=Path(paths.__file__).parent.parent,
            env=self.child_environ(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )

    def _refuse_taken_port(self, base_url: str) -> None:
        seen = probe(base_url, timeout_s=2.0)
        if seen is None:
            return
        address = base_url.removeprefix("http://")
        who = f"something else ({seen.reason})" if isinstance(seen, Foreign) else "the daemon of another data directory"
        host, _, port = address.rpartition(":")
        free = f"{host}:{int(port) + 1}" if port.isdigit() else "127.0.0.1:7821"
        raise DaemonUnreachable(
            f"{address} is held by {who}, not by the daemon of {self.files.root}.",
            code="svc_port_taken",
            hint=f"stop what holds it (`ss -ltnp`), or choose another port: SVC_LISTEN={free}.",
            details={"address": address, "data_dir": str(self.files.root)},
        )

    @contextmanager
    def _start_lock(self) -> Iterator[None]:
        self.files.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self.files.root / "start.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            # The holder gives up after START_TIMEOUT_S, and the kernel frees the lock of one that dies.
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _is_alive(pid: int) -> bool:
    try:
        # A daemon that this process started stays a zombie until its exit status is read.
        if os.waitpid(pid, os.WNOHANG)[0] == pid:
            return False
    except ChildProcessError:
        pass
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
