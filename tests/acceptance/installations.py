"""One installation as a user has it: three folders, a real daemon process, and the real `svc` beside it."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

import httpx
import psutil

from svc_daemon.paths import DataFiles
from tests.acceptance.forks import ROOT, Fork, can_fork

T = TypeVar("T")

#: A daemon answers within one second; a busy machine with two cores gets more.
START_TIMEOUT_S = 20.0
#: The daemon gives itself 10 s to stop.
STOP_TIMEOUT_S = 12.0
#: Longer than any command of the tests takes, so that one that hangs fails by name.
COMMAND_TIMEOUT_S = 180.0


class TooLate(AssertionError):
    """A condition did not come true by its deadline; the message names it."""


def wait_until(condition: Callable[[], T | None], what: str, timeout_s: float = 30.0, every_s: float = 0.02) -> T:
    """The first value of `condition` that counts as true; raises TooLate at the deadline."""
    deadline_s = time.monotonic() + timeout_s
    while not (value := condition()):
        if time.monotonic() > deadline_s:
            raise TooLate(f"{what}: not within {timeout_s:g} s")
        time.sleep(every_s)
    return value


@dataclass(frozen=True, slots=True)
class Finished:
    """How a command ended."""

    exit: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        """The one JSON value on standard output."""
        return json.loads(self.stdout)

    @property
    def failure(self) -> tuple[int, str]:
        """The exit code and the error code of a command that failed with `--json`."""
        return self.exit, str(self.json["error"]["code"])


class Installation:
    """Starts, kills and stops one daemon; runs `svc` and HTTP requests against it."""

    def __init__(self, root: Path, **variables: str) -> None:
        self.root = root
        self.files = DataFiles(root / "data")
        self.environ = environment(root, variables)
        #: What follows `svc-daemon serve`.
        self.options: Sequence[str] = ()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, launcher: Sequence[str] = ()) -> Self:
        """Start the daemon and wait until it answers; raises TooLate with what it printed.

        `launcher` is the command that starts it, less the command that it starts, and must become the daemon's process.
        """
        self._process = self.spawn_daemon(launcher)
        try:
            wait_until(self._answers, "the daemon's first answer", START_TIMEOUT_S)
        except TooLate as late:
            self.kill()
            raise TooLate(f"{late}; it printed: {self.printed()}") from None
        return self

    def spawn_daemon(self, launcher: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        """Start one more daemon process on the same folders, without waiting for anything."""
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / "daemon.out").open("ab") as out:
            return self.spawn("svc_daemon", "serve", *self.options, launcher=launcher, stdout=out, stderr=out)

    def kill(self) -> None:
        """kill -9, as a crash or the kernel would."""
        process = self._started()
        process.kill()
        process.wait()

    def crash(self) -> None:
        """kill -9, and start again."""
        self.kill()
        self.start()

    def stop(self) -> int:
        """SIGTERM; the exit code, or TooLate."""
        process = self._started()
        process.terminate()
        try:
            return process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise TooLate(f"the daemon's end: not within {STOP_TIMEOUT_S:g} s") from None

    def clear(self) -> None:
        """End whatever runs on these folders, a daemon that a command started by itself included."""
        if self._process is not None and self._process.poll() is None:
            self.stop()
        stop_process(self.pid)

    def printed(self) -> str:
        """What the daemon wrote to its terminal."""
        out = self.root / "daemon.out"
        return out.read_text(encoding="utf-8", errors="replace")[-4000:] if out.exists() else ""

    @property
    def announced(self) -> dict[str, Any]:
        """daemon.json; empty while there is none, and where there can be none."""
        try:
            facts: dict[str, Any] = json.loads(self.files.daemon.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError, json.JSONDecodeError):
            return {}
        return facts

    @property
    def pid(self) -> int | None:
        return self.announced.get("pid")

    @property
    def base_url(self) -> str:
        return str(self.announced["base_url"])

    @property
    def key(self) -> str:
        """The admin key that the first start made."""
        return self.files.admin_key.read_text(encoding="utf-8").strip()

    def client(self, **headers: str) -> httpx.Client:
        """A client with the admin key, unless another is given; the caller closes it."""
        if "Authorization" not in headers:
            headers["Authorization"] = f"Bearer {self.key}"
        # There is no TLS to verify, and reading the certificates would cost 20 ms each time.
        return httpx.Client(base_url=self.base_url, headers=headers, trust_env=False, verify=False, timeout=30)

    def health(self) -> dict[str, Any] | None:
        """The answer of /healthz, or None when nobody answers."""
        try:
            answer = httpx.get(f"{self.base_url}/healthz", trust_env=False, verify=False, timeout=5)
        except (KeyError, httpx.TransportError):
            return None
        return dict(answer.json()) if answer.status_code == 200 else None

    def svc(
        self, *arguments: str, stdin: str | None = None, cwd: Path | None = None, timeout_s: float = COMMAND_TIMEOUT_S
    ) -> Finished:
        """Run `svc` to its end, with neither terminal nor colours."""
        process = self.spawn_svc(*arguments, cwd=cwd, stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE)
        with process:
            try:
                out, err = process.communicate(stdin, timeout_s)
            except subprocess.TimeoutExpired:
                process.kill()
                raise TooLate(f"svc {' '.join(arguments)}: not within {timeout_s:g} s") from None
        return Finished(process.returncode, out, err)

    def run(self, *command: str, without: Sequence[str] = (), **options: Any) -> Finished:
        """Run any program to its end, in this environment `without` some variables."""
        environ = {name: value for name, value in self.environ.items() if name not in without}
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        options = {"cwd": self.root, "timeout": COMMAND_TIMEOUT_S, **pipes, **options}
        ended = subprocess.run(command, env=environ, check=False, **options)
        return Finished(ended.returncode, ended.stdout, ended.stderr)

    def verify(self, *options: str) -> Finished:
        """`svc-daemon verify` on the data directory."""
        return self.operate("verify", *options)

    def operate(self, *arguments: str) -> Finished:
        """Run `svc-daemon` to its end."""
        pipe = subprocess.PIPE
        with self.spawn("svc_daemon", *arguments, stdout=pipe, stderr=pipe, encoding="utf-8") as process:
            out, err = process.communicate(timeout=COMMAND_TIMEOUT_S)
        return Finished(process.returncode, out, err)

    def hold_to_every_promise(self) -> None:
        """Stop the daemon, whatever started it; then its data directory must be whole, to the last byte."""
        if self._started().poll() is not None:
            stop_process(self.pid)
        elif (code := self.stop()) != 0:
            raise AssertionError(f"the daemon ended with {code}")
        verified = self.verify("--read-data")
        if verified.exit != 0:
            raise AssertionError(verified.stdout + verified.stderr)

    def spawn_svc(
        self, *arguments: str, cwd: Path | None = None, stdin: int = subprocess.DEVNULL
    ) -> "subprocess.Popen[str]":
        """Start `svc` and return at once."""
        pipe = subprocess.PIPE
        return self.spawn(
            "svc_cli", *arguments, cwd=cwd or self.root, stdin=stdin, stdout=pipe, stderr=pipe, encoding="utf-8"
        )

    def spawn(self, *words: str, launcher: Sequence[str] = (), **options: Any) -> "subprocess.Popen[Any]":
        """Start the module that comes first with the other words: as a fork, where that is the same."""
        options = {"env": self.environ, "cwd": self.root, "stdin": subprocess.DEVNULL, **options}
        if launcher or not can_fork(self.environ):
            return subprocess.Popen([*launcher, sys.executable, "-m", *words], **options)
        return Fork(words, **options)

    def _started(self) -> "subprocess.Popen[bytes]":
        if self._process is None:
            raise AssertionError("start the installation first")
        return self._process

    def _answers(self) -> bool:
        """Whether this very process answers, not one that lived here before."""
        process = self._started()
        if process.poll() is not None:
            raise TooLate(f"the daemon ended with {process.returncode}")
        return self.pid == process.pid and self.health() is not None


def environment(root: Path, variables: dict[str, str]) -> dict[str, str]:
    """This process's environment with nothing of ours in it but folders under `root` and the given variables."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("SVC_")}
    folders = {f"SVC_{kind.upper()}_DIR": str(root / kind) for kind in ("data", "config", "state")}
    return inherited | folders | {"PYTHONPATH": str(ROOT), "NO_COLOR": "1"} | variables


def stop_process(pid: int | None) -> None:
    """End a daemon that is nobody's child any more, if it is still there."""
    if pid is None or not _is_daemon(pid):
        return
    process = psutil.Process(pid)
    process.terminate()
    try:
        wait_until(lambda: not _is_daemon(pid), f"the end of process {pid}", STOP_TIMEOUT_S)
    except TooLate:
        process.kill()


def _is_daemon(pid: int) -> bool:
    """Whether a daemon runs under this number; one that nobody has reaped yet runs no more."""
    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and "svc_daemon" in process.cmdline()
    except psutil.NoSuchProcess:
        return False


def process_tree(pid: int) -> list[psutil.Process]:
    """A process and all below it."""
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]
