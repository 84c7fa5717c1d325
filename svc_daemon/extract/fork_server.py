"""The fork server: the process that forks, watches, kills and reaps the child processes. It reads no documents itself.

- `extractors` starts the fork server with an empty environment, a session of its own, and a socket to the daemon.
- The fork server wakes when the daemon sends a request, a child ends (SIGCHLD), or a child's time is up.
- When the socket is closed, the fork server kills all children, removes the scratch folder, and ends.
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
import time
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from svc_daemon.core.text.media_types import find_format, from_filename
from svc_daemon.extract import confined_children
from svc_daemon.extract.child_limits import CageLimits, ChildProgress
from svc_daemon.extract.formats import READERS, Given
from svc_daemon.extract.messages import (
    SHORT,
    ChildOutcome,
    DocumentRequest,
    KillReason,
    count_documents,
    parse_document,
    receive_request,
)
from svc_daemon.wire.light.parsing import parse_json

#: Seconds without work after which the next parser is loaded. A release that is installed meanwhile has other files.
_IDLE_S = 0.1
#: Descriptors per request at least: the documents, and the pipe for the replies.
_DESCRIPTORS = 2


@dataclass(slots=True)
class _Child:
    """A running child and its time limits."""

    job: int
    progress: ChildProgress
    #: Monotonic time at which the child is killed if it still reads the same document.
    deadline: float
    #: Monotonic time at which the child is killed in any case.
    last_deadline: float
    #: Maximum elapsed time for each document.
    wall_seconds: float
    #: Index, from 0, of the document that the child was reading when the time limit was last checked.
    overdue: int = 0
    killed: KillReason = ""

    @property
    def blamed(self) -> int:
        """Return the index, from 0, of the document that caused the child's end; -1 if none did."""
        _, number = self.progress.read()
        # The child was killed because document `overdue` took too long. If the child has begun the next document since,
        # neither document is to blame.
        return -1 if self.killed == "wall" and number != self.overdue else number


class ForkServer:
    def __init__(self, control: socket.socket, scratch: Path, limits: CageLimits) -> None:
        self._control = control
        self._scratch = scratch
        self._limits = limits
        self._children: dict[int, _Child] = {}
        self._wakeup, self._bell = socket.socketpair()
        #: The modules of the parsers that may not be loaded yet.
        self._unloaded = sorted({reader[0] for reader in READERS.values()})

    def serve(self) -> None:
        """Serve requests until the daemon closes its socket."""
        self._bell.setblocking(False)
        signal.set_wakeup_fd(self._bell.fileno(), warn_on_full_buffer=False)
        # Only a signal with a handler wakes this process.
        signal.signal(signal.SIGCHLD, lambda *_: None)
        # A terminal signals the whole process group, but the daemon ends this process by closing its socket.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        confined_children.preload()
        # A child's garbage collection would copy the memory of the loaded objects, so exclude these objects from it.
        gc.freeze()
        is_open = True
        while is_open:
            ready = self._wait()
            if self._wakeup in ready:
                self._wakeup.recv(4096)
            while self._children and self._bury(os.WNOHANG):
                pass
            if self._control in ready:
                is_open = self._take_request()
            now = time.monotonic()
            for pid, child in self._children.items():
                if not is_open:
                    _kill(pid, child, "asked")
                elif child.deadline <= now and not child.killed:
                    begun, child.overdue = child.progress.read()
                    child.deadline = min(begun + child.wall_seconds, child.last_deadline)
                    if child.deadline <= now:
                        _kill(pid, child, "wall")
        while self._children:
            self._bury(0)
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _wait(self) -> list[socket.socket]:
        """Wait for a request, the end of a child, or a deadline. Without work, load parsers one by one."""
        waiting = [child.deadline for child in self._children.values() if not child.killed]
        is_idle = bool(self._unloaded) and not self._children
        timeout = max(0.0, min(waiting) - time.monotonic()) if waiting else _IDLE_S if is_idle else None
        ready, _, _ = select.select([self._control, self._wakeup], [], [], timeout)
        if is_idle and not ready:
            _load_parser(self._unloaded.pop())
        return ready

    def _take_request(self) -> bool:
        """Carry out a request to kill or fork a child. Returns False if the daemon has ended.

        The errno of a failed fork is reported to the daemon.
        """
        received = receive_request(self._control)
        if received is None:
            return False
        request, descriptors = received
        if "kill" in request:
            for pid, child in self._children.items():
                if child.job == request["kill"]:
                    _kill(pid, child, "asked")
            return True
        # With too many open files, the kernel drops a request's descriptors.
        short_of = errno.EMFILE if len(descriptors) < _DESCRIPTORS + ("pages" in request) else 0
        try:
            if not short_of:
                self._fork(request, descriptors)
        except OSError as error:
            short_of = error.errno or 0
        for descriptor in descriptors:
            os.close(descriptor)
        if short_of:
            self._report(request["job"], {"exit": SHORT + short_of, "killed": "", "at": 0})
        return True

    def _fork(self, request: dict[str, Any], descriptors: list[int]) -> None:
        limits = self._limits.for_scans() if "recognize" in request else self._limits
        if "document" in request:
            _load_reader(parse_document(request["document"]))
        progress, parent = ChildProgress(), os.getpid()
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            confined_children.live(request, descriptors, self._scratch, limits, progress, parent)
        now, wall_s = time.monotonic(), limits.wall_seconds
        # Starting the child may take as long as reading one more document.
        last_s = now + (1 + (count_documents(request) or 1)) * wall_s
        self._children[pid] = _Child(request["job"], progress, now + wall_s, last_s, wall_s)

    def _bury(self, options: int) -> bool:
        """Reap a child that has ended, kill its descendants, and report it. Returns False if none has ended.

        The descendants are killed before the child is reaped, because a reaped child's process id can be used again. On
        macOS, Python before 3.13 can only reap the child first.
        """
        if hasattr(os, "waitid"):
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT | options)
            pid, status = (ended.si_pid, 0) if ended else (0, 0)
        else:
            pid, status = os.waitpid(-1, options)
        if not pid:
            return False
        _kill_group(pid)
        if hasattr(os, "waitid"):
            _, status = os.waitpid(pid, 0)
        child = self._children.pop(pid)
        folder = confined_children.private_folder(self._scratch, pid)
        if folder.exists():
            shutil.rmtree(folder, ignore_errors=True)
        status = os.waitstatus_to_exitcode(status)
        self._report(child.job, {"exit": status, "killed": child.killed, "at": child.blamed})
        return True

    def _report(self, job: int, outcome: ChildOutcome) -> None:
        with suppress(OSError):
            self._control.sendall(json.dumps({"job": job, **outcome}).encode() + b"\n")


def _load_reader(requested: DocumentRequest) -> None:
    """Import the parser of this document's format, so that no child process has to import it."""
    if format_ := find_format(from_filename(requested.filename) or requested.content_type):
        _load_parser(READERS[format_.key][0])


def _load_parser(name: str) -> None:
    module = f"svc_daemon.extract.formats.{name}"
    if module not in sys.modules:
        # The child that needs the parser reports the error.
        with suppress(ImportError):
            loaded = import_module(module)
            if sample := getattr(loaded, "SAMPLE", b""):
                loaded.read(Given(data=sample, filename="", content_type="", limits=CageLimits()))
        gc.freeze()


def _kill(pid: int, child: _Child, why: KillReason) -> None:
    child.killed = why
    os.kill(pid, signal.SIGKILL)
    _kill_group(pid)


def _kill_group(pid: int) -> None:
    # The process group may not exist yet, or may have ended.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def main() -> None:
    """Run the fork server. Arguments: the scratch folder, the limits as JSON."""
    control = socket.socket(fileno=0)
    ForkServer(control, Path(sys.argv[-2]), CageLimits(**parse_json(sys.argv[-1]))).serve()
