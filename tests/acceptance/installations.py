"""An installation as users have it: its own folders, a real daemon process, and the real `svc` command."""

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import httpx
import psutil

from svc_daemon.paths import DataFiles
from tests.acceptance.forks import ROOT, Fork, can_fork
from tests.acceptance.rotations import LoadBalancer

T = TypeVar("T")

#: The default timeout of tests: far longer than anything they wait for takes, even on a busy machine.
PATIENCE_S = 60.0
#: The module that is `svc` with short limits of time.
IMPATIENT = "tests.acceptance.impatient"
#: The timeout of commands: longer than any of them takes, so that the test of a hanging command fails.
COMMAND_TIMEOUT_S = 180.0
#: The address at which clients reach the nodes of a cluster.
_HOST = "127.0.0.1"


class WaitTimeout(AssertionError):
    """A condition was not met before its timeout; the message names the condition."""


def wait_until(condition: Callable[[], T | None], what: str, timeout_s: float = PATIENCE_S, every_s: float = 0.02) -> T:
    """Call `condition` until it returns a true value, and return that value; raises WaitTimeout at the timeout.

    The longer it has waited, the longer it pauses, so that it doesn't take the time of what it waits for.
    """
    began_s = time.monotonic()
    while not (value := condition()):
        waited_s = time.monotonic() - began_s
        if waited_s > timeout_s:
            raise WaitTimeout(f"{what}: not within {timeout_s:g} s")
        time.sleep(max(every_s, min(waited_s / 10, 0.2)))
    return value


@dataclass(frozen=True, slots=True)
class Finished:
    """The exit code and output of a command."""

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
        value = self.json
        assert "type" not in value or "request_id" in value["error"], (
            "the error of a summary has the request's id in it"
        )
        return self.exit, str(value["error"]["code"])


def _list_files(installation: "Installation", folder: str) -> dict[str, int]:
    sizes = {}
    for path in getattr(installation.files, folder).iterdir():
        # The daemon may remove the file before its size is read.
        with suppress(FileNotFoundError):
            sizes[path.name] = path.stat().st_size
    return sizes


def _count_in_file(installation: "Installation") -> tuple[int, int]:
    file = next(installation.files.index.glob("*.db"), None)
    if file is None:
        return 0, 0
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        tables = ("chunks", "vectors")
        chunks, vectors = (connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables)
    return int(chunks), int(vectors)


class Installation:
    """Starts, kills and stops a daemon, and runs `svc` and HTTP requests against it."""

    #: Returns the environment variables that select the engines; pytest's options replace it.
    environ_for: ClassVar[Callable[[Path], Mapping[str, str]]] = staticmethod(lambda _: {})
    #: Returns the sizes of the files in `blobs` or `parts`, by name.
    list_stored: ClassVar["Callable[[Installation, str], dict[str, int]]"] = staticmethod(_list_files)
    #: Counts the chunks in the index and the chunks with a vector.
    count_vectors: ClassVar["Callable[[Installation], tuple[int, int]]"] = staticmethod(_count_in_file)
    #: How many daemons serve each installation of the run; more than one needs shared engines.
    node_count: ClassVar[int] = 1

    def __init__(self, root: Path, **variables: str) -> None:
        self.root = root
        self.files = DataFiles(root / "data")
        self.environ = environment(root, {**type(self).environ_for(root), **variables})
        #: The module that is run as `svc-daemon`.
        self.program = "svc_daemon"
        #: More arguments of `svc-daemon serve`.
        self.options: Sequence[str] = ()
        #: How long the daemon may take until its first response.
        self.start_timeout_s = PATIENCE_S
        #: How long the daemon may take to stop.
        self.stop_timeout_s = PATIENCE_S
        self._process: subprocess.Popen[bytes] | None = None
        #: The address that the daemon listens on, if it is one of several nodes.
        self._address = ""
        #: The other nodes, and the load balancer in front of all nodes.
        self._others: list[Installation] = []
        self._balancer: LoadBalancer | None = None

    def start(self, launcher: Sequence[str] = ()) -> Self:
        """Start the daemon and wait until it responds; raises WaitTimeout with the daemon's output.

        `launcher` is a command that is put before the daemon's own and must replace itself with it, as `exec` does.
        """
        has_others = type(self).node_count > 1 and not (launcher or self.options or "SVC_TLS_CERT" in self.environ)
        if has_others or self._balancer is not None:
            self._open_balancer()
        self._process = self.spawn_daemon(launcher)
        if self._others:
            # The first node that starts creates the admin key.
            self._wait(self.files.admin_key.exists, "the key")
            for node in self._others:
                node.environ = {**self.environ, **_folders(node.root)}
                node._process = node.spawn_daemon()
        nodes: list[Installation] = [self, *self._others]
        for node in nodes:
            node._wait(node._answers, "the daemon's first answer")
        if self._balancer is not None:
            self._announce(f"http://{_HOST}:{self._balancer.port}")
        return self

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        try:
            wait_until(condition, what, self.start_timeout_s)
        except WaitTimeout as late:
            self.kill()
            raise WaitTimeout(f"{late}; it printed: {self.printed()}") from None

    def _open_balancer(self) -> None:
        """Open the load balancer in front of all nodes, at which programs find the daemon from now on."""
        hosts = [f"127.0.0.{2 + number}" for number in range(type(self).node_count)]
        if self._balancer is None:
            self._balancer = LoadBalancer(hosts)
            self._others = [Installation(self.root / f"node{number}") for number in range(2, len(hosts) + 1)]
        self._balancer.open()
        for host, node in zip(hosts, (self, *self._others), strict=True):
            node._address = f"{host}:{self._balancer.port}"

    def _announce(self, base_url: str) -> None:
        staged = self.files.daemon.with_suffix(".staged")
        staged.touch(0o600)
        staged.write_text(json.dumps({**self.announced, "base_url": base_url}))
        staged.replace(self.files.daemon)

    def spawn_daemon(self, launcher: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        """Start another daemon process on the same folders without waiting for it."""
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / "daemon.out").open("ab") as out:
            listen = ("--listen", self._address) if self._address else ()
            return self.spawn(self.program, "serve", *listen, *self.options, launcher=launcher, stdout=out, stderr=out)

    def kill(self) -> None:
        """Kill the daemon with SIGKILL."""
        process = self._started()
        process.kill()
        for node in self._others:
            node.kill()
        process.wait()
        if self._balancer is not None:
            self._balancer.close()

    def crash(self) -> None:
        """Kill the daemon with SIGKILL and start it again."""
        self.kill()
        self.start()

    def stop(self) -> int:
        """Stop the daemon with SIGTERM and return its exit code; raises WaitTimeout."""
        nodes = [self, *self._others]
        for node in nodes:
            node._started().terminate()
        try:
            return max((node._started().wait(self.stop_timeout_s) for node in nodes), key=abs)
        except subprocess.TimeoutExpired:
            self.kill()
            raise WaitTimeout(f"the daemon's end: not within {self.stop_timeout_s:g} s") from None
        finally:
            if self._balancer is not None:
                self._balancer.close()

    def clear(self) -> None:
        """End every daemon of these folders, including one that a command has started."""
        if self._process is not None and self._process.poll() is None:
            self.stop()
        for node in self._others:
            node.clear()
        stop_process(self.pid)

    def printed(self) -> str:
        """Return the end of the daemon's standard output and standard error."""
        out = self.root / "daemon.out"
        return out.read_text(encoding="utf-8", errors="replace")[-4000:] if out.exists() else ""

    @property
    def announced(self) -> dict[str, Any]:
        """The content of daemon.json, or an empty dict if it doesn't exist or can't be read."""
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
        """The admin key that the first start has created."""
        return self.files.admin_key.read_text(encoding="utf-8").strip()

    @property
    def pids(self) -> list[int]:
        """The process ids of all nodes."""
        return [node._started().pid for node in (self, *self._others)]

    def part_sizes(self) -> dict[str, int]:
        """Return how many bytes each open upload session has received, by session id."""
        return type(self).list_stored(self, "parts")

    def blob_sizes(self) -> dict[str, int]:
        """Return the sizes of the blobs, by name."""
        return type(self).list_stored(self, "blobs")

    def log_lines(self) -> list[dict[str, Any]]:
        """Return the lines of the daemon's log in order, those of several nodes sorted by time."""
        texts = [node.files.log.read_text(encoding="utf-8") for node in (self, *self._others)]
        # The last line may be incomplete.
        lines = [json.loads(line) for text in texts for line in text.split("\n")[:-1]]
        return sorted(lines, key=lambda line: str(line["ts"]))

    def client(self, **headers: str) -> httpx.Client:
        """Return an HTTP client with the admin key, unless `headers` has another; the caller closes it."""
        if "Authorization" not in headers:
            headers["Authorization"] = f"Bearer {self.key}"
        # The connection is local, and loading certificates would cost 20 ms for each client.
        return httpx.Client(base_url=self.base_url, headers=headers, trust_env=False, verify=False, timeout=PATIENCE_S)

    def health(self) -> dict[str, Any] | None:
        """Return the response of /healthz, or None if the daemon doesn't respond."""
        try:
            answer = httpx.get(f"{self.base_url}/healthz", trust_env=False, verify=False, timeout=10)
        except (KeyError, httpx.TransportError):
            return None
        return dict(answer.json()) if answer.status_code == 200 else None

    def svc(
        self, *arguments: str, stdin: str | None = None, cwd: Path | None = None, timeout_s: float = COMMAND_TIMEOUT_S
    ) -> Finished:
        """Run `svc` without a terminal and without colours, and return its result."""
        process = self.spawn_svc(*arguments, cwd=cwd, stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE)
        with process:
            try:
                out, err = process.communicate(stdin, timeout_s)
            except subprocess.TimeoutExpired:
                process.kill()
                raise WaitTimeout(f"svc {' '.join(arguments)}: not within {timeout_s:g} s") from None
        return Finished(process.returncode, out, err)

    def run(self, *command: str, without: Sequence[str] = (), **options: Any) -> Finished:
        """Run any program in the installation's environment, less the variables `without`, and return its result."""
        environ = {name: value for name, value in self.environ.items() if name not in without}
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        options = {"cwd": self.root, "timeout": COMMAND_TIMEOUT_S, **pipes, **options}
        ended = subprocess.run(command, env=environ, check=False, **options)
        return Finished(ended.returncode, ended.stdout, ended.stderr)

    def verify(self, *options: str) -> Finished:
        """Run `svc-daemon verify` on the data directory."""
        return self.operate("verify", *options)

    def operate(self, *arguments: str, timeout_s: float = COMMAND_TIMEOUT_S) -> Finished:
        """Run `svc-daemon` and return its result; of several nodes, on the folder of one that is running."""
        running = [node for node in self._others if node._process and node._process.poll() is None]
        words, pipe = (self.program, *arguments), subprocess.PIPE
        with (running or [self])[0].spawn(*words, stdout=pipe, stderr=pipe, encoding="utf-8") as process:
            out, err = process.communicate(timeout=timeout_s)
        return Finished(process.returncode, out, err)

    def assert_intact(self) -> None:
        """Stop the daemon and assert that `svc-daemon verify --read-data` finds no fault in its data directory."""
        if self._started().poll() is not None:
            stop_process(self.pid)
        elif (code := self.stop()) != 0:
            raise AssertionError(f"the daemon ended with {code}")
        verified = self.verify("--read-data")
        if verified.exit != 0:
            raise AssertionError(verified.stdout + verified.stderr)

    def spawn_svc(
        self, *arguments: str, cwd: Path | None = None, stdin: int = subprocess.DEVNULL, module: str = "svc_cli"
    ) -> "subprocess.Popen[str]":
        """Start `svc` and return its process without waiting for it."""
        pipe = subprocess.PIPE
        return self.spawn(
            module, *arguments, cwd=cwd or self.root, stdin=stdin, stdout=pipe, stderr=pipe, encoding="utf-8"
        )

    def spawn(self, *words: str, launcher: Sequence[str] = (), **options: Any) -> "subprocess.Popen[Any]":
        """Start the Python module `words[0]` with the other words as arguments; as a fork where that is the same."""
        options = {"env": self.environ, "cwd": self.root, "stdin": subprocess.DEVNULL, **options}
        if launcher or not can_fork(self.environ):
            return subprocess.Popen([*launcher, sys.executable, "-m", *words], **options)
        return Fork(words, **options)

    def _started(self) -> "subprocess.Popen[bytes]":
        if self._process is None:
            raise AssertionError("start the installation first")
        return self._process

    def _answers(self) -> bool:
        """Whether the process that was started last responds, and not an earlier one on the same folders."""
        process = self._started()
        if process.poll() is not None:
            raise WaitTimeout(f"the daemon ended with {process.returncode}")
        return self.pid == process.pid and self.health() is not None


def environment(root: Path, variables: dict[str, str]) -> dict[str, str]:
    """Return this process's environment without SVC_ variables, plus folders under `root` and the given variables."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("SVC_")}
    return inherited | _folders(root) | {"PYTHONPATH": str(ROOT), "NO_COLOR": "1"} | variables


def _folders(root: Path) -> dict[str, str]:
    return {f"SVC_{kind.upper()}_DIR": str(root / kind) for kind in ("data", "config", "state")}


def stop_process(pid: int | None) -> None:
    """End a daemon process that may not be a child of the test, if it still runs."""
    if pid is None or not _is_daemon(pid):
        return
    process = psutil.Process(pid)
    process.terminate()
    try:
        wait_until(lambda: not _is_daemon(pid), f"the end of process {pid}")
    except WaitTimeout:
        process.kill()


def _is_daemon(pid: int) -> bool:
    """Whether this process id is a running daemon; a zombie isn't."""
    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and "svc_daemon" in process.cmdline()
    except psutil.NoSuchProcess:
        return False


def process_tree(pid: int) -> list[psutil.Process]:
    """Return a process and all its descendants."""
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]
