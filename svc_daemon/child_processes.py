"""Starts and stops child processes that run one Python module, isolated from the daemon.

The child processes read untrusted documents or run models, and so may crash or hang. Each has its own session, an empty
environment, and a socket as standard input. A child process ends when its socket is closed.
"""

import json
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

#: Seconds until a process is killed after its socket is closed.
STOP_S = 5.0
#: The code that a child runs. `python -I` ignores the environment, so the daemon passes its `sys.path` as an argument.
_BOOT = (
    "import sys, json, importlib; sys.path[:] = json.loads(sys.argv.pop(1)); "
    "importlib.import_module(sys.argv.pop(1)).main()"
)


def start_module(
    module: str, arguments: Sequence[str], control: socket.socket, words: Path
) -> "subprocess.Popen[bytes]":
    """Run `main` of a module in a new process.

    `control` becomes the process's standard input. Its error output goes to the file `words`.
    """
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
    """Wait for a process whose socket is closed; kill it after `STOP_S` seconds."""
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
