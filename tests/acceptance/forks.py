"""Run `svc` and `svc-daemon` as forks of a process with their modules loaded, which saves a second per process.

A fork is a process like any other: it has its own folder, environment, standard streams, signals and exit code, and
runs its program as `python -m` does. What an interpreter does before that is proved by the tests that start one: the
README's and the recipe's commands, `svc` that starts its daemon, and all that need another environment or launcher.
A daemon that is a fork forks its extraction server, too; the tests of `extract` start theirs with an interpreter.
Each process of a test run has one server, which ends with it.
"""

import atexit
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from starlette.routing import compile_path

ROOT = Path(__file__).resolve().parents[2]
#: The size limit of a request to the fork server, enough for 500 environment variables.
MESSAGE_BYTES = 128 * 1024
#: The module of a daemon's extraction server.
EXTRACTION = "svc_daemon.extract.fork_server"
#: What the server imports besides the whole command line: the daemon, and the modules that it imports late.
DAEMON_MODULES = (
    "svc_daemon.command.main",
    "svc_daemon.server.server",
    "svc_daemon.offline.verify",
    "svc_daemon.offline.backing_up",
    "svc_daemon.offline.restoring",
    "svc_daemon.offline.upgrading",
    "svc_daemon.offline.admin_requests",
    EXTRACTION,
    # For the schema of a new state; imports NumPy.
    "sqlite_utils",
)
#: Names in the server's command line, by which tests find its forks.
PROGRAMS = ("svc_cli", "svc_daemon", EXTRACTION)
#: More modules for the server to import, in runs whose daemons need more libraries.
MORE_MODULES: list[str] = []
#: Prefixes of the variables that an interpreter reads at its start, and that a fork therefore can't change.
OF_THE_INTERPRETER = ("PYTHON", "LC_", "LANG")
#: The exit code of this fork, once its program has ended without an error of Python's.
EXIT_CODES: list[int] = []


class Fork(subprocess.Popen[Any]):
    """A process forked by the server, with the interface of `Popen`; its arguments are a module and its arguments."""

    def _execute_child(self, args: Sequence[str], *settings: Any) -> None:
        _executable, _preexec, _close, _pass, cwd, env, _info, _flags, _shell, *pipes = settings
        stdin, _, _, stdout, _, stderr = pipes[:6]
        self._ended, theirs = os.pipe()
        weakref.finalize(self, os.close, self._ended).atexit = False
        try:
            request = {"module": args[0], "arguments": list(args[1:]), "cwd": str(cwd), "env": dict(env)}
            self.pid = fork_server().fork(request, (stdin, stdout, stderr, theirs))
        finally:
            os.close(theirs)
            self._close_pipe_fds(*pipes[:6])  # type: ignore[attr-defined]
        self._child_created = True

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        self._await_end(0)
        return self.returncode

    def _wait(self, timeout: float | None) -> int:
        self._await_end(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return self.returncode

    def _await_end(self, timeout_s: float | None) -> None:
        """Read the exit code if it arrives within the timeout; None waits without one."""
        if self.returncode is None and select.select([self._ended], [], [], timeout_s)[0]:
            with self._waitpid_lock:  # type: ignore[attr-defined]
                if self.returncode is None:
                    self.returncode = int(os.read(self._ended, 16))


class _ExtractionServer(subprocess.Popen[bytes]):
    """A process as `subprocess.Popen` starts it, or the one that waits to be the extraction server of this daemon."""

    #: The id and the socket of the process that waits; it was forked before the daemon had threads.
    waiting: ClassVar[tuple[int, socket.socket] | None] = None

    def _execute_child(self, args: Sequence[str], *settings: Any) -> None:
        if EXTRACTION not in args or (waiting := _ExtractionServer.waiting) is None:
            super()._execute_child(args, *settings)  # type: ignore[misc]
            return
        _ExtractionServer.waiting, pipes = None, settings[9:15]
        self.pid, control = waiting
        with control:
            socket.send_fds(control, [json.dumps(args[-2:]).encode()], (pipes[0], pipes[3], pipes[5]))
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]


def _prepare_extraction() -> None:
    """Fork the process that waits to be the extraction server."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if pid := os.fork():
        theirs.close()
        _ExtractionServer.waiting = pid, ours
        return
    ours.close()
    os.setsid()
    message, streams, _, _ = socket.recv_fds(theirs, MESSAGE_BYTES, 3)
    if message:
        theirs.detach()
        _become(streams)
        os.chdir("/")
        os.environ.clear()
        sys.argv[1:] = json.loads(message)
        importlib.import_module(EXTRACTION).main()
    os._exit(0)


class ForkServer:
    """The client of the fork server, in the process of the tests."""

    def __init__(self) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno()), *PROGRAMS, *MORE_MODULES],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
            )

    def fork(self, request: Mapping[str, Any], descriptors: Sequence[int]) -> int:
        """Fork a process that runs the requested module with these descriptors as standard streams; return its id."""
        with self._lock:
            socket.send_fds(self._control, [json.dumps(request).encode()], descriptors)
            return int(self._control.recv(16))

    def close(self) -> None:
        """Stop the server; its forks keep running."""
        self._control.close()
        self._process.communicate()


@cache
def fork_server() -> ForkServer:
    """Return the fork server of this process, which the first call starts."""
    server = ForkServer()
    atexit.register(server.close)
    return server


def can_fork(environ: Mapping[str, str]) -> bool:
    """Whether a fork of the server behaves like a new interpreter in this environment."""
    ours, theirs = (
        {name: value for name, value in each.items() if name.startswith(OF_THE_INTERPRETER) and name != "PYTHONPATH"}
        for each in (os.environ, environ)
    )
    return ours == theirs and environ.get("PYTHONPATH") == str(ROOT)


def _serve(control: socket.socket) -> dict[str, Any]:
    """Fork for each request and report each fork's exit code; in a fork, return what it is to run."""
    #: The process and the descriptor that its exit code is written to, by pidfd.
    forks: dict[int, tuple[int, int]] = {}
    events = select.poll()
    events.register(control, select.POLLIN)
    while True:
        for descriptor, _ in events.poll():
            if descriptor != control.fileno():
                events.unregister(descriptor)
                pid, report = forks.pop(descriptor)
                os.write(report, str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())
                os.close(report)
                os.close(descriptor)
                continue
            message, streams, _, _ = socket.recv_fds(control, MESSAGE_BYTES, 4)
            if not message:
                sys.exit()
            pid = os.fork()
            if not pid:
                control.detach()
                _become(streams[:3])
                return dict(json.loads(message))
            for stream in streams[:3]:
                os.close(stream)
            forks[(watched := os.pidfd_open(pid))] = pid, streams[3]
            events.register(watched, select.POLLIN)
            control.send(str(pid).encode())


def _become(streams: Sequence[int]) -> None:
    """Make these the standard streams, and close the server's other descriptors."""
    for number, (stream, name) in enumerate(zip(streams, ("stdin", "stdout", "stderr"), strict=True)):
        os.dup2(stream, number)
        before = getattr(sys, name)
        how = {"encoding": before.encoding, "errors": before.errors, "closefd": False}
        fresh = os.fdopen(number, before.mode, 1 if name == "stderr" else -1, **how)
        setattr(sys, name, fresh)
        setattr(sys, f"__{name}__", fresh)
    os.closerange(3, 1024)


def _run(module: str, arguments: Sequence[str], cwd: str, env: Mapping[str, str]) -> None:
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.path[0] = cwd
    sys.argv[1:] = arguments
    if arguments[:1] == ["serve"]:
        _prepare_extraction()
        subprocess.Popen = _ExtractionServer  # type: ignore[misc, assignment]
    code = 0
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        if ended.code and not isinstance(ended.code, int):
            raise
        code = int(ended.code or 0)
    EXIT_CODES.append(code)
    sys.exit(code)


def _leave() -> None:
    """End a fork before the interpreter frees its modules: this would copy their pages, which takes 50 ms."""
    with suppress(OSError, ValueError):  # which the interpreter reports
        sys.stdout.flush()
        sys.stderr.flush()
        for code in EXIT_CODES:
            os._exit(code)


if __name__ == "__main__":
    # Registered first, so that it runs after all other functions.
    atexit.register(_leave)
    import svc_cli

    names = [found.name for found in pkgutil.walk_packages(svc_cli.__path__, "svc_cli.")]
    for name in (*DAEMON_MODULES, *sys.argv[2 + len(PROGRAMS) :], *names):
        if not name.endswith("__main__"):
            importlib.import_module(name)
    # Python keeps what is compiled here of the paths of all routes, for each daemon.
    for row in importlib.import_module("svc_daemon.api.app").ENDPOINTS:
        compile_path(row.path)
    # Objects made before the fork stay in shared memory: the collector would make each fork copy their pages.
    gc.freeze()
    _run(**_serve(socket.socket(fileno=int(sys.argv[1]))))
