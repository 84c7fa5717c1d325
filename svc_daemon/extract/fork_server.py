"""The process that children are forked from: it forks, watches, kills and reaps, and reads no document itself.

Started by `cages` with an empty environment, a session of its own and one socket of the daemon's (its standard
input). It sleeps until the daemon asks for a child or for an end to one, a child ends (SIGCHLD), or a wall limit
passes. Since it alone reaps, a process id that it kills is always still its child's. When the daemon goes, its socket
ends: every child is killed, the folder of scratch files is removed, and the server ends.
"""

import errno
import gc
import json
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

from svc_daemon.core.media_types import find_format, from_filename
from svc_daemon.extract import children
from svc_daemon.extract.formats import READERS
from svc_daemon.extract.limits import CageLimits
from svc_daemon.extract.messages import SHORT, receive_request

#: What comes with a request: the blob, and the pipe of the answer.
_DESCRIPTORS = 2


@dataclass(slots=True)
class _Child:
    """One document that is being read."""

    job: int
    folder: str
    deadline: float
    #: Why we killed it: `wall` or `asked`; empty while we did not.
    killed: str = ""


class ForkServer:
    def __init__(self, control: socket.socket, scratch: Path, limits: CageLimits) -> None:
        self._control = control
        self._scratch = scratch
        self._limits = limits
        self._children: dict[int, _Child] = {}
        self._wakeup, self._bell = socket.socketpair()

    def serve(self) -> None:
        """Serve until the daemon goes."""
        self._listen_to_children()
        gc.freeze()
        while True:
            ready, _, _ = select.select([self._control, self._wakeup], [], [], self._patience())
            if self._wakeup in ready:
                self._wakeup.recv(4096)
            self._reap()
            if self._control in ready and not self._take_request():
                break
            self._kill_late()
        self._leave()

    def _listen_to_children(self) -> None:
        self._bell.setblocking(False)
        signal.set_wakeup_fd(self._bell.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _note)
        # A terminal or a service manager tells every process to stop: the daemon finishes its work first, then closes
        # the socket.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def _patience(self) -> float | None:
        """Seconds to the next wall limit."""
        waiting = [child.deadline for child in self._children.values() if not child.killed]
        return max(0.0, min(waiting) - time.monotonic()) if waiting else None

    def _take_request(self) -> bool:
        received = receive_request(self._control)
        if received is None:
            return False
        request, descriptors = received
        if "kill" in request:
            self._kill_job(request["kill"])
        else:
            self._try_fork(request, descriptors)
        return True

    def _try_fork(self, request: dict[str, Any], descriptors: list[int]) -> None:
        """Fork, or report to the daemon what the machine is short of."""
        # The kernel drops descriptors that there is no room for.
        short_of = errno.EMFILE if len(descriptors) < _DESCRIPTORS else 0
        try:
            if not short_of:
                self._fork(request, *descriptors)
        except OSError as error:
            short_of = error.errno or 0
        for descriptor in descriptors:
            os.close(descriptor)
        if short_of:
            self._tell({"job": request["job"], "exit": SHORT + short_of, "killed": ""})

    def _fork(self, request: dict[str, Any], blob: int, output: int) -> None:
        self._warm(request)
        # Somebody may have tidied it away.
        self._scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = tempfile.mkdtemp(dir=self._scratch)
        parent = os.getpid()
        try:
            pid = os.fork()
        except OSError:
            Path(folder).rmdir()
            raise
        if pid == 0:
            signal.set_wakeup_fd(-1)
            children.live(request, blob, output, folder, self._limits, parent)
        self._children[pid] = _Child(request["job"], folder, time.monotonic() + self._limits.wall_seconds)

    def _warm(self, request: dict[str, Any]) -> None:
        """Import the parser that the file's name promises, once: later children find it there."""
        format_ = find_format(from_filename(request["filename"]) or request["content_type"])
        module = f"svc_daemon.extract.formats.{READERS[format_.key]}" if format_ else ""
        if module and module not in sys.modules:
            # A parser that can't be imported is the child's to complain about.
            with suppress(ImportError):
                import_module(module)
            # What is frozen stays shared: no collection in a child writes to its pages.
            gc.freeze()

    def _kill_job(self, job: int) -> None:
        for pid, child in self._children.items():
            if child.job == job:
                _kill(pid, child, "asked")

    def _kill_late(self) -> None:
        now = time.monotonic()
        for pid, child in self._children.items():
            if child.deadline <= now and not child.killed:
                _kill(pid, child, "wall")

    def _reap(self) -> None:
        while self._children:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None:
                return
            self._bury(ended.si_pid)

    def _bury(self, pid: int) -> None:
        """End what the child left behind while its id is still taken, then let go of it and tell the daemon."""
        _kill_group(pid)
        _, status = os.waitpid(pid, 0)
        child = self._children.pop(pid)
        shutil.rmtree(child.folder, ignore_errors=True)
        self._tell({"job": child.job, "exit": os.waitstatus_to_exitcode(status), "killed": child.killed})

    def _tell(self, outcome: dict[str, Any]) -> None:
        with suppress(OSError):
            self._control.sendall(json.dumps(outcome).encode() + b"\n")

    def _leave(self) -> None:
        for pid, child in self._children.items():
            _kill(pid, child, "asked")
        while self._children:
            self._bury(os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT).si_pid)  # type: ignore[union-attr]
        shutil.rmtree(self._scratch, ignore_errors=True)


def _kill(pid: int, child: _Child, why: str) -> None:
    child.killed = why
    os.kill(pid, signal.SIGKILL)
    _kill_group(pid)


def _kill_group(pid: int) -> None:
    # A child that has just been forked has no group yet, and a finished one without descendants none any more.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _note(_number: int, _frame: FrameType | None) -> None:
    """A handler has to exist for a signal to ring the bell."""


def main() -> None:
    """Entry point: `scratch folder`, `limits as JSON`."""
    control = socket.socket(fileno=0)
    ForkServer(control, Path(sys.argv[-2]), CageLimits(**json.loads(sys.argv[-1]))).serve()
