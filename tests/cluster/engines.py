"""Start and stop engine processes of a test run: PostgreSQL, the object store and Milvus."""

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

import psutil

from tests.acceptance.installations import WaitTimeout, wait_until

#: The timeout of a start: a new PostgreSQL creates its files first, on a machine that is busy with other tests.
START_TIMEOUT_S = 60.0
#: An engine that has not ended after this time is killed.
STOP_TIMEOUT_S = 15.0
#: How much space the engines of a whole run may use.
ROOM_BYTES = 4 * 1024**3


#: A folder in memory, if the system has one, which makes engines much faster.
MEMORY = Path("/dev/shm")


@contextmanager
def scratch_folder(*, in_memory: bool = True) -> Iterator[Path]:
    """Create a temporary folder for engines' files, in memory if there is enough space."""
    has_room = in_memory and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM_BYTES
    parent = MEMORY if has_room else None
    with TemporaryDirectory(prefix="svc-engines-", dir=parent, ignore_cleanup_errors=True) as name:
        yield Path(name)


#: Below the ephemeral ports, which any outgoing connection could occupy before an engine listens.
PORTS = range(20_000, 32_000)
#: Sockets that keep other test processes from choosing the same ports.
_CLAIMS: list[socket.socket] = []


def free_port() -> int:
    """Return an unused loopback port that no other test process gets while this process runs."""
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
    """Whether something accepts connections at this loopback port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Engine:
    """An engine process, whose output goes to a file in its folder; it can be stopped and started again."""

    #: The signal that stops the process.
    stop_signal = signal.SIGTERM

    def __init__(
        self,
        folder: Path,
        command: Sequence[str],
        environ: Mapping[str, str] | None = None,
        user: str | None = None,
    ) -> None:
        """Set up the process, which runs as `user`, or as the user of the tests if that is None."""
        self.folder = folder
        self._command = command
        self._environ = {**os.environ, **(environ or {})}
        self._user = user
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, is_ready: Callable[[], bool]) -> None:
        """Start the process and wait until `is_ready`; raises WaitTimeout with the process's output."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "engine.log").open("ab") as log:
            self._process = process = subprocess.Popen(
                self._command,
                cwd=self.folder,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # In its own process group, so that its children are killed with it.
                start_new_session=True,
                user=self._user,
            )
        try:
            wait_until(lambda: process.poll() is not None or is_ready(), self._command[0], START_TIMEOUT_S)
        except WaitTimeout as late:
            self.kill()
            raise WaitTimeout(f"{late}; it printed: {self.printed()}") from None
        if process.poll() is not None:
            raise WaitTimeout(f"{self._command[0]} ended with {process.returncode}; it printed: {self.printed()}")

    def stop(self) -> None:
        """Stop the process with its stop signal."""
        self._end(self.stop_signal)

    def kill(self) -> None:
        """Kill the process with SIGKILL."""
        self._end(signal.SIGKILL)

    def suspend(self) -> None:
        """Suspend the process, so that it accepts connections but doesn't respond, like a hanging machine."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def printed(self) -> str:
        return (self.folder / "engine.log").read_text(encoding="utf-8", errors="replace")[-4000:]

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            # PostgreSQL's children have sessions of their own.
            process = psutil.Process(self._process.pid)
            for each in (process, *process.children(recursive=True)):
                each.send_signal(number)

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        # Stopped while they are listed, so that it forks no more. PostgreSQL's have sessions of their own, outlive the
        # server for a moment and keep its memory, with which it doesn't start again.
        os.killpg(process.pid, signal.SIGSTOP)
        children = psutil.Process(process.pid).children(recursive=True)
        os.killpg(process.pid, number)
        os.killpg(process.pid, signal.SIGCONT)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        _, left = psutil.wait_procs(children, STOP_TIMEOUT_S)
        for child in left:
            child.kill()


@contextmanager
def running(engine: Engine, is_ready: Callable[[], bool]) -> Iterator[Engine]:
    """Run the engine during the block."""
    engine.start(is_ready)
    try:
        yield engine
    finally:
        engine.stop()
