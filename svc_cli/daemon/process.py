"""Finds, starts and stops the local daemon.

The file `daemon.json` says where the daemon listens, but may be stale. So no key is sent to that address before the
daemon has proved that it knows the secret in the data directory.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO, NamedTuple

from svc_cli.credentials import ServiceAddress, origin_of
from svc_cli.daemon.probes import DaemonHealth, Foreign, LocalProof, probe
from svc_cli.deadlines import Deadline
from svc_cli.errors import DaemonUnreachable, UsageError
from svc_cli.exits import Exit
from svc_cli.private_files import check_visible, lock, make_data_folder
from svc_daemon import paths
from svc_daemon.wire.light.local_daemons import read_secret
from svc_daemon.wire.light.parsing import parse_json

DEFAULT_ADDRESS = "127.0.0.1:7820"
#: Seconds to wait until another process has left the data directory, unless that is a daemon that is starting.
START_TIMEOUT_S = 10.0
#: Seconds to wait until a daemon has stopped, which takes up to 10 s.
STOP_TIMEOUT_S = 15.0
#: Seconds after which the user is notified that the daemon is starting.
SILENT_START_S = 0.3
#: Seconds between two lines about a daemon that is still starting, for example because it upgrades its database.
STILL_STARTING_S = 10.0
LOG_TAIL_LINES = 8
#: Maximum bytes to read from the end of the log.
LOG_TAIL_BYTES = 64 * 1024
#: Bytes of disk space reserved for the output of a daemon that fails to start.
OUTPUT_BYTES = 4096
#: A folder in memory (on Linux), used if the disk is full.
MEMORY_FOLDER = "/dev/shm"  # noqa: S108 - the file in it has no name
#: Seconds until the next attempt if the data directory is locked.
LOCKED_PAUSE_S = 0.1


class Daemon(NamedTuple):
    """A running daemon that has proved that it uses this data directory."""

    pid: int
    base_url: str
    health: DaemonHealth
    record: Mapping[str, Any]
    #: Where to send requests and the key.
    address: ServiceAddress


class LogPlace(NamedTuple):
    """How far a log file was read."""

    inode: int
    offset: int
    #: The beginning of the last line, if that was incomplete when it was read.
    rest: bytes


class Installation:
    """The data directory that the environment selects, and its daemon."""

    def __init__(self, environ: Mapping[str, str], *, keep_open: bool = False) -> None:
        """With `keep_open`, the connection on which the daemon has answered is kept open (see `probe`)."""
        self.environ = environ
        self._keep_open = keep_open
        self.files = paths.DataFiles(paths.data_dir(environ))

    @property
    def fixed_url(self) -> str | None:
        """Return the daemon's configured or default address; None if it uses any free port.

        Raises UsageError if SVC_LISTEN is not an address.
        """
        listen = self.environ.get("SVC_LISTEN") or (DEFAULT_ADDRESS if paths.is_default_data_dir(self.environ) else "")
        if not listen or listen.endswith(":0"):
            return None
        host, _, port = listen.rpartition(":")
        try:
            origin_of(f"http://{host and listen}")
            int(port)
        except (UsageError, ValueError) as error:
            raise UsageError(
                "SVC_LISTEN is not an address to listen at: it takes a host and a port.",
                hint="it looks like 127.0.0.1:7820, or [::1]:7820.",
            ) from error
        return f"http://{listen}"

    def record(self) -> dict[str, Any] | None:
        """Return the content of `daemon.json`, which may be stale; None if it is missing."""
        try:
            found = parse_json(paths.read_own(self.files.daemon))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) and "base_url" in found else None

    def secret(self) -> bytes | None:
        """Return the secret that the daemon must prove to know; None if it can't be read or trusted."""
        return read_secret(self.files.secret)

    def address(self, base_url: str, health: DaemonHealth, certificate: str | None = None) -> ServiceAddress:
        """Return the address of the daemon, which has proved that it listens there."""
        proof = LocalProof(health.installation_id, self.files.secret)
        return ServiceAddress(base_url, self.files.admin_key, certificate, proof)

    def find(self) -> Daemon | None:
        """Return the running daemon; None if none runs.

        Raises DaemonUnreachable if it doesn't answer, or if the program that answers can't prove that it is the daemon,
        and UsageError if this user may not look.
        """
        if find_spec("fcntl") is None:
            raise DaemonUnreachable(
                "The local daemon runs on Linux and macOS, and on Windows in WSL.",
                hint="`wsl --install` sets WSL up; or name a server: SVC_BASE_URL or --base-url.",
            )
        record = self.record()
        if record is None:
            check_visible(self.files.daemon)
        base_url, keep_open = str((record or {}).get("base_url")), self._keep_open
        certificate = ((record or {}).get("certificate") or {}).get("pem")
        seen = record and probe(base_url, secret=self.secret(), certificate=certificate, keep_open=keep_open)
        if record and isinstance(seen, DaemonHealth):
            is_named = seen.installation_id == record.get("installation_id")
            if is_named and seen.is_proven:
                address = self.address(base_url, seen, certificate)
                return Daemon(int(record["pid"]), base_url, seen, record, address)
            seen.close()
            if is_named and _is_alive(int(record["pid"])):
                raise self.unproven(base_url, int(record["pid"]))
        if record and isinstance(seen, Foreign) and seen.is_silent and _is_alive(int(record["pid"])):
            raise DaemonUnreachable(
                f"The daemon (process {record['pid']}) at {record['base_url']} does not answer.",
                hint=f"`svc daemon logs` may show why; `kill {record['pid']}` ends it.",
            )
        if self.fixed_url:
            self.refuse_taken_port(self.fixed_url, may_be_starting=True)
        return None

    def get(self) -> Daemon:
        """Return the running daemon. Raises DaemonUnreachable if none runs, and the errors of `find`."""
        found = self.find()
        if found is None and self._is_held():
            raise DaemonUnreachable(
                f"A process uses {self.files.root}, but no daemon answers: it is starting, or a command of "
                "`svc-daemon` is at work.",
                hint="run the same command again in a moment; `svc daemon logs` may show more.",
            )
        if found is None:
            raise DaemonUnreachable(
                f"No daemon is running for {self.files.root}.", hint="`svc daemon start` starts it."
            )
        return found

    def unproven(self, base_url: str, pid: int) -> DaemonUnreachable:
        """Return the error for a service that claims to be this daemon but can't prove it."""
        return DaemonUnreachable(
            f"What answers at {base_url} did not prove that it is the daemon of {self.files.root}; no key was sent.",
            code="svc_daemon_unproven",
            hint=f"if process {pid} is your `svc-daemon`: `kill {pid}`, then run the same command again.",
            details={"address": base_url, "pid": pid},
        )

    def ensure_running(
        self, report: Callable[[str], None], listen: str | None = None, deadline: Deadline | None = None
    ) -> tuple[Daemon, bool]:
        """Return the running daemon, and whether this call started it.

        A daemon that is starting is waited for as long as its process lives. Raises DaemonUnreachable if it can't
        start, and WaitTimedOut.
        """
        found = self.find()
        if found:
            return found, False
        patience = _Patience(report, deadline or Deadline())
        with self._start_lock(patience):
            found = self.find()
            if found:
                return found, False
            with self._open_output() as output:
                return self._start(output, patience, listen), True

    def stop(self) -> int | None:
        """Stop the daemon and wait until it has ended. Returns its process id; None if none was running.

        Raises DaemonUnreachable if it has not ended in time.
        """
        if (daemon := self.find()) is None:
            return None
        os.kill(daemon.pid, signal.SIGTERM)
        deadline_s = time.monotonic() + STOP_TIMEOUT_S
        # A daemon that has ended stays a zombie until the program that started it, such as a watcher, reads its status.
        while _is_alive(daemon.pid) and self._is_held():
            if time.monotonic() > deadline_s:
                raise DaemonUnreachable(
                    f"The daemon (process {daemon.pid}) did not stop within {STOP_TIMEOUT_S:.0f} s."
                )
            time.sleep(0.02)
        return daemon.pid

    def command(self, listen: str | None = None, faults: Path | None = None) -> list[str]:
        """Return the command that runs the daemon in the foreground."""
        options = [*(["--listen", listen] if listen else []), *(["--faults", str(faults)] if faults else [])]
        return [sys.executable, "-m", "svc_daemon", "serve", *options]

    def child_environ(self) -> dict[str, str]:
        """Return the daemon's environment. SVC_DATA_DIR is absolute, because the daemon runs in another folder."""
        folders = {"SVC_DATA_DIR": str(self.files.root)} if self.environ.get("SVC_DATA_DIR") else {}
        return {**self.environ, **folders}

    def read_log(self, place: LogPlace | None) -> tuple[list[str], LogPlace | None]:
        """Return the log's lines after `place`, and the place from which the next call should continue.

        If `place` is None, return the last lines.
        """
        log, lines = self.files.log, list[str]()
        rotated = log.with_name(f"{log.name}.1")
        with suppress(FileNotFoundError):
            lines, found = _read_lines(log, place)
            # The log may be rotated at any time, so compare with the file that was read.
            if place is not None and found.inode != place.inode:
                with suppress(FileNotFoundError):
                    lines = (_read_lines(rotated, place)[0] if rotated.stat().st_ino == place.inode else []) + lines
            place = found
        return lines, place

    def _start(self, output: BinaryIO, patience: "_Patience", listen: str | None) -> Daemon:
        place = self.read_log(None)[1]
        process, began_s = self._spawn(output, listen), time.monotonic()
        while True:
            found = self.find() if self.record() else None
            if found:
                # The daemon outlives this process, which Python would otherwise warn about.
                process.returncode = 0
                for line in _read_output(output):
                    if line.startswith("warning: "):
                        patience.report(line)
                return found
            if process.poll() == Exit.LOCKED:
                seen = probe(self.fixed_url, timeout_s=0.5) if self.fixed_url else None
                # A daemon listens before it has opened its database, which can take long after an upgrade.
                is_starting = isinstance(seen, Foreign) and seen.is_silent
                if time.monotonic() - began_s > START_TIMEOUT_S and not is_starting:
                    break
                # Try again: a daemon that is about to end still holds the lock of the data directory.
                patience.pause(LOCKED_PAUSE_S)
                process = self._spawn(output, listen)
            elif process.poll() is not None:
                break
            patience.pause(0.02)
        # Lines in front of `place` are of an earlier daemon.
        tail = (_read_output(output) or self.read_log(place)[0])[-LOG_TAIL_LINES:]
        raise DaemonUnreachable(
            "\n  ".join([f"The daemon could not be started: it ended with exit code {process.poll()}.", *tail]),
            hint="correct the setting, and run the command again."
            if process.poll() == Exit.USAGE
            else "`svc daemon run` starts it in the foreground, `svc doctor` checks the installation.",
            details={"exit_code": process.poll(), "log": tail},
        )

    def _is_held(self) -> bool:
        """Whether a process has locked the data directory."""
        try:
            descriptor = os.open(self.files.root, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def _open_output(self) -> BinaryIO:
        """Open a file for the output of a starting daemon. If the disk is full, the file is in memory."""
        path = self.files.log.with_name("start.log")
        try:
            paths.make_folder(path.parent)
            output = os.fdopen(paths.open_own(path, os.O_RDWR | os.O_CREAT | os.O_APPEND), "r+b", buffering=0)
            output.write(b" " * OUTPUT_BYTES)
            output.truncate(0)
        except OSError:
            return TemporaryFile(dir=MEMORY_FOLDER if os.access(MEMORY_FOLDER, os.W_OK) else None, buffering=0)
        return output

    def _spawn(self, output: BinaryIO, listen: str | None) -> "subprocess.Popen[bytes]":
        """Start the daemon so that neither Ctrl-C nor closing the terminal stops it."""
        output.truncate(0)
        return subprocess.Popen(
            self.command(listen),
            # `python -m` imports from the current folder first, which must not be the user's.
            cwd=Path(paths.__file__).parent.parent,
            env=self.child_environ(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )

    def refuse_taken_port(self, base_url: str, *, may_be_starting: bool) -> None:
        """Raise DaemonUnreachable if another program listens at this address; a daemon that starts is silent, too."""
        seen = probe(base_url, timeout_s=2.0)
        is_silent = isinstance(seen, Foreign) and seen.is_silent
        if seen is None or (may_be_starting and is_silent and self._is_held()):
            return
        address = base_url.removeprefix("http://")
        who = f"something else ({seen.reason})" if isinstance(seen, Foreign) else "the daemon of another data directory"
        host, _, port = address.rpartition(":")
        free = f"{host}:{int(port) + 1}" if port.isascii() and port.isdigit() else "127.0.0.1:7821"
        raise DaemonUnreachable(
            f"{address} is in use by {who}, not by the daemon of {self.files.root}.",
            code="svc_port_taken",
            hint=f"stop that program (`ss -ltnp`), or choose another port: SVC_LISTEN={free}.",
            details={"address": address, "data_dir": str(self.files.root)},
        )

    @contextmanager
    def _start_lock(self, patience: "_Patience") -> Iterator[None]:
        make_data_folder(self.files.root)
        descriptor = paths.open_own(self.files.root / "start.lock", os.O_RDWR | os.O_CREAT)
        try:
            while True:
                # The process that holds the lock waits for a daemon that it has started.
                with suppress(BlockingIOError):
                    lock(descriptor)
                    break
                patience.pause(0.02)
            yield
        finally:
            os.close(descriptor)


class _Patience:
    """Waits for a daemon that is starting, and reports that."""

    def __init__(self, report: Callable[[str], None], deadline: Deadline) -> None:
        self.report, self._deadline = report, deadline
        self._began_s = time.monotonic()
        self._next_s = SILENT_START_S

    def pause(self, seconds: float) -> None:
        """Wait a moment. Raises WaitTimedOut at the deadline."""
        self._deadline.check()
        waited_s = time.monotonic() - self._began_s
        if waited_s > self._next_s:
            is_first = self._next_s == SILENT_START_S
            self.report(
                "starting the daemon …" if is_first else f"the daemon is still starting, for {waited_s:.0f} s …"
            )
            self._next_s = STILL_STARTING_S * (waited_s // STILL_STARTING_S + 1)
        time.sleep(seconds)


def _read_output(output: BinaryIO) -> list[str]:
    """Return the lines that a starting daemon has written."""
    output.seek(0)
    return output.read().decode("utf-8", "replace").splitlines()


def _is_alive(pid: int) -> bool:
    try:
        # A daemon that this process has started stays a zombie until its exit status is read.
        if os.waitpid(pid, os.WNOHANG)[0] == pid:
            return False
    except ChildProcessError:
        pass
    try:
        os.kill(pid, 0)
    except OSError as error:
        return isinstance(error, PermissionError)
    return True


def _read_lines(path: Path, place: LogPlace | None) -> tuple[list[str], LogPlace]:
    """Return the complete lines after `place`, and how far the file was now read.

    If `place` belongs to another file, return all lines.
    """
    with os.fdopen(paths.open_own(path, os.O_RDONLY), "rb") as file:
        found, rest = os.fstat(file.fileno()), b""
        if place is None:
            file.seek(max(0, found.st_size - LOG_TAIL_BYTES))
        elif place.inode == found.st_ino and place.offset <= found.st_size:
            file.seek(place.offset)
            rest = place.rest
        *whole, rest = (rest + file.read()).split(b"\n")
        return [line.decode("utf-8", "replace") for line in whole], LogPlace(found.st_ino, file.tell(), rest)
