"""Starts and stops child processes: Python interpreters that each run one module in isolation from the daemon.

They do work that may crash or hang, or that processes untrusted data: extracting documents and running models. Each
process has its own session, an empty environment, `/` as its working directory, and a socket as standard input; it ends
when the socket is closed.
"""

import json
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

#: Seconds to wait for a process to end after its socket is closed, before it is killed.
STOP_S = 5.0
#: `-I` ignores the environment and the working directory, so the child gets its `sys.path` from the daemon.
_BOOT = (
    "import sys, json, importlib; sys.path[:] = json.loads(sys.argv.pop(1)); "
    "importlib.import_module(sys.argv.pop(1)).main()"
)


def start_module(
    module: str, arguments: Sequence[str], control: socket.socket, words: Path
) -> "subprocess.Popen[bytes]":
    """Run `main` of a module in a new process. `control` is its standard input; its stderr goes to the file `words`."""
    root = str(Path(__file__).parents[1])
    path = [root, *(entry for entry in sys.path if Path(entry).is_absolute() and entry != root)]
    with words.open("wb") as complaints:
        return subprocess.Popen(
            [sys.executable, "-I", "-c", _BOOT, json.dumps(path), module, *arguments],
            stdin=control.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=complaints,
            env={},
            cwd="/",
            start_new_session=True,
        )


def await_end(process: "subprocess.Popen[bytes]") -> None:
    """Wait for a process to end after its socket was closed; kill it after `STOP_S` seconds."""
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def last_words(words: Path) -> str:
    """Return the end of the error output that a process wrote to the file `words`."""
    try:
        return words.read_text("utf-8", "replace")[-2000:].strip()
    except FileNotFoundError:
        return ""
