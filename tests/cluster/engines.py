"""Starts the engines that others build, each as a process of this test run, and ends it by its process id."""

import os
import random
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.acceptance.installations import TooLate, wait_until

#: A fresh PostgreSQL makes its files first, on a machine that runs other tests.
START_TIMEOUT_S = 60.0
#: An engine that has not ended after this time is killed.
STOP_TIMEOUT_S = 15.0
#: What the engines of a whole run may fill.
ROOM_BYTES = 4 * 1024**3


#: A folder in memory, where there is one: it saves engines most of their time, and disks from their writes.
MEMORY = Path("/dev/shm")


@contextmanager
def scratch_folder(*, in_memory: bool = True) -> Iterator[Path]:
    """A folder for the files of engines that nobody wants to keep; in memory, where there is some."""
    has_room = in_memory and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM_BYTES
    parent = MEMORY if has_room else None
    with TemporaryDirectory(prefix="svc-engines-", dir=parent, ignore_cleanup_errors=True) as name:
        yield Path(name)


#: Below those that the system gives to connections, each of which could take a port before its engine listens.
PORTS = range(20_000, 32_000)
#: Keep other processes of the tests from choosing the same ports.
_CLAIMS: list[socket.socket] = []


def free_port() -> int:
    """A port of loopback that nobody listens on, and that no other test gets while this process runs."""
    while True:
        port = random.choice(PORTS)
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0svc-test-port-{port}")
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            claim.close()
            continue
        _CLAIMS.append(claim)
        return port


def listens(port: int) -> bool:
    """Whether something takes connections at this port of loopback."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Engine:
    """One process; what it prints goes to a file in its folder. It can be killed and started again on its files."""

    #: What asks the process to end.
    stop_signal = signal.SIGTERM

    def __init__(
        self,
        folder: Path,
        command: Sequence[str],
        environ: Mapping[str, str] | None = None,
        user: str | None = None,
    ) -> None:
        """`user` runs the process; None is who runs the tests."""
        self.folder = folder
        self._command = command
        self._environ = {**os.environ, **(environ or {})}
        self._user = user
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, is_ready: Callable[[], bool]) -> None:
        """Start the process and wait until `is_ready`; raises TooLate with what it printed."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "engine.log").open("ab") as log:
            self._process = process = subprocess.Popen(
                self._command,
                cwd=self.folder,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # A group of its own, so that its children end with it.
                start_new_session=True,
                user=self._user,
            )
        try:
            wait_until(lambda: process.poll() is not None or is_ready(), self._command[0], START_TIMEOUT_S)
        except TooLate as late:
            self.kill()
            raise TooLate(f"{late}; it printed: {self.printed()}") from None
        if process.poll() is not None:
            raise TooLate(f"{self._command[0]} ended with {process.returncode}; it printed: {self.printed()}")

    def stop(self) -> None:
        """End the process as its operator would."""
        self._end(self.stop_signal)

    def kill(self) -> None:
        """kill -9, as a crash or the kernel would."""
        self._end(signal.SIGKILL)

    def suspend(self) -> None:
        """Let the process take connections and answer nothing, as on a machine that hangs."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def printed(self) -> str:
        return (self.folder / "engine.log").read_text(encoding="utf-8", errors="replace")[-4000:]

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, number)

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        os.killpg(process.pid, number)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def running(engine: Engine, is_ready: Callable[[], bool]) -> Iterator[Engine]:
    """The engine while it runs."""
    engine.start(is_ready)
    try:
        yield engine
    finally:
        engine.stop()
