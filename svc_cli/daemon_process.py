"""Finds, starts and stops the local daemon.

One daemon owns a data directory: it holds a lock on it as long as it runs. The file `daemon.json` in the directory says
where the daemon listens, but may be stale. It is trusted only if `/healthz` at that address returns the same
installation id and proves knowledge of the directory's secret. So a reused process id or another program on the port,
even another user's, can't be mistaken for the daemon, and no key is sent to it.

A second lock guards the start: if 20 commands run at once, one starts the daemon and the others find it.
"""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
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
#: Seconds to wait until a daemon has stopped. It stops within 10 s; the rest is for a machine under load.
STOP_TIMEOUT_S = 15.0
#: If starting the daemon takes longer than this many seconds, the user is notified.
SILENT_START_S = 0.3
LOG_TAIL_LINES = 8
#: Number of bytes at the end of the log in which its last lines are looked for.
LOG_TAIL_BYTES = 64 * 1024
#: Bytes of free disk space required for capturing the output of a daemon that fails to start.
OUTPUT_BYTES = 4096
#: A folder in memory, used if the disk is full. Exists on Linux only; elsewhere the default temporary folder is used.
MEMORY_FOLDER = "/dev/shm"  # noqa: S108 - the file in it has no name
#: Pause in seconds before another attempt if the data directory is locked.
LOCKED_PAUSE_S = 0.1


@dataclass(frozen=True, slots=True)
class Daemon:
    """A running daemon that has proved to own this data directory."""

    pid: int
    base_url: str
    health: DaemonHealth
    record: Mapping[str, Any]

    @property
    def certificate(self) -> str | None:
        """The certificate that the daemon must present, in PEM form; None if it uses plain HTTP."""
        return pem_in(self.record)


@dataclass(frozen=True, slots=True)
class LogPlace:
    """How far a log file was read."""

    inode: int
    offset: int
    #: The beginning of a line that was incomplete.
    rest: bytes


class Installation:
    """A data directory, as selected by the environment, and the daemon that owns it."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = environ
        self.files = paths.DataFiles(paths.data_dir(environ))

    @property
    def fixed_url(self) -> str | None:
        """Return the configured or default address of the daemon; None if it uses any free port."""
        listen = self.environ.get("SVC_LISTEN") or (DEFAULT_ADDRESS if paths.is_default_data_dir(self.environ) else "")
        return f"http://{listen}" if listen and not listen.endswith(":0") else None

    def record(self) -> dict[str, Any] | None:
        """Return the content of `daemon.json`, perhaps left by a daemon that has ended; None if it is missing."""
        try:
            found = json.loads(self.files.daemon.read_text("utf-8"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) and "base_url" in found else None

    def secret(self) -> bytes | None:
        """Return the secret that this directory's daemon must prove to know; None if it can't be read."""
        try:
            return parse_secret(self.files.secret.read_text("utf-8"))
        except (OSError, UnicodeDecodeError):
            return None

    def find(self) -> Daemon | None:
        """Return the running daemon; None if none runs.

        Raises DaemonUnreachable if the daemon doesn't answer or can't be verified, or if another program uses its port.
        """
        record = self.record()
        seen = probe(str(record["base_url"]), secret=self.secret(), certificate=pem_in(record)) if record else None
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
        """Return the error for a service that claims to be this directory's daemon but can't prove it."""
        return DaemonUnreachable(
            f"What answers at {base_url} did not prove that it is the daemon of {self.files.root}; no key was sent.",
            code="svc_daemon_unproven",
            hint=f"if process {pid} is your `svc-daemon`: `kill {pid}`, then run the same command again.",
            details={"address": base_url, "pid": pid},
        )

    def ensure_running(self, report: Callable[[str], None], listen: str | None = None) -> tuple[Daemon, bool]:
        """Return the running daemon, and whether this call started it. Raises DaemonUnreachable if it can't start."""
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
        """Terminate the running daemon, and wait until it has ended. Returns its process id; None if none was running.

        Raises DaemonUnreachable if it has not ended after STOP_TIMEOUT_S.
        """
        daemon = self.find()
        if daemon is None:
            return None
        os.kill(daemon.pid, signal.SIGTERM)
        deadline_s = time.monotonic() + STOP_TIMEOUT_S
        while _is_alive(daemon.pid):
            if time.monotonic() > deadline_s:
                raise DaemonUnreachable(
                    f"The daemon (process {daemon.pid}) did not stop within {STOP_TIMEOUT_S:.0f} s."
                )
            time.sleep(0.02)
        return daemon.pid

    def command(self, listen: str | None = None, faults: Path | None = None) -> list[str]:
        """Return the command that runs the daemon in the foreground; `faults` is the argument of `--faults`."""
        options = [*(["--listen", listen] if listen else []), *(["--faults", str(faults)] if faults else [])]
        return [sys.executable, "-m", "svc_daemon", "serve", *options]

    def child_environ(self) -> dict[str, str]:
        """Return the daemon's environment. SVC_DATA_DIR is made absolute, since the daemon's current folder differs."""
        folders = {"SVC_DATA_DIR": str(self.files.root)} if self.environ.get("SVC_DATA_DIR") else {}
        return {**self.environ, **folders}

    def log_tail(self, lines: int) -> list[str]:
        """Return the last lines of the daemon's log, oldest first."""
        return self.read_log(None)[0][-lines:] if lines else []

    def read_log(self, place: LogPlace | None) -> tuple[list[str], LogPlace | None]:
        """Return the lines that were written to the log after this place, and the place after them.

        None means a place near the end of the log. If the log was rotated, the lines of both files are returned.
        """
        log, lines = self.files.log, list[str]()
        rotated = log.with_name(f"{log.name}.1")
        with suppress(FileNotFoundError):
            if place is not None and log.stat().st_ino != place.inode and rotated.stat().st_ino == place.inode:
                lines, _ = _read_lines(rotated, place)
            added, place = _read_lines(log, place)
            lines += added
        return lines, place

    def _start(self, output: BinaryIO, report: Callable[[str], None], listen: str | None) -> Daemon:
        process = self._spawn(output, listen)
        began_s, said = time.monotonic(), False
        while time.monotonic() - began_s < START_TIMEOUT_S:
            found = self.find() if self.record() else None
            if found:
                return found
            if process.poll() == Exit.LOCKED:
                # Another daemon, which is about to end, still holds the lock of the data directory.
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
        """Open a file for what the daemon prints until it has opened its log; in memory if the disk is full."""
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
        """Start the daemon in a session of its own, so that Ctrl-C or closing the terminal doesn't stop it."""
        output.truncate(0)
        return subprocess.Popen(
            self.command(listen),
            # `python -m` searches the current folder first, so run in the folder of our packages, not in the user's.
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
            f"{address} is in use by {who}, not by the daemon of {self.files.root}.",
            code="svc_port_taken",
            hint=f"stop that program (`ss -ltnp`), or choose another port: SVC_LISTEN={free}.",
            details={"address": address, "data_dir": str(self.files.root)},
        )

    @contextmanager
    def _start_lock(self) -> Iterator[None]:
        self.files.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self.files.root / "start.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            # This can't block for long: the process that holds the lock gives up after START_TIMEOUT_S, and if it dies,
            # the kernel releases the lock.
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def pem_in(record: Mapping[str, Any]) -> str | None:
    """Return the certificate that the daemon wrote into `daemon.json`, in PEM form."""
    return (record.get("certificate") or {}).get("pem")


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


def _read_lines(path: Path, place: LogPlace | None) -> tuple[list[str], LogPlace]:
    """Return the complete lines of a file after this place, and the place after them.

    If the place is in another file, all lines are returned.
    """
    with path.open("rb") as file:
        found, rest = os.fstat(file.fileno()), b""
        if place is None:
            file.seek(max(0, found.st_size - LOG_TAIL_BYTES))
        elif place.inode == found.st_ino and place.offset <= found.st_size:
            file.seek(place.offset)
            rest = place.rest
        *whole, rest = (rest + file.read()).split(b"\n")
        return [line.decode("utf-8", "replace") for line in whole], LogPlace(found.st_ino, file.tell(), rest)
