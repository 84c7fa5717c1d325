"""Child processes: a new interpreter that runs one module, without access to the rest of the service.

They do work that may crash, hang or be attacked: reading documents and running models. Each has its own session, an
empty environment, no folder, and one socket as standard input; it ends when the socket is closed.
"""

import json
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

#: How long a process may take to end by itself once its socket is closed.
STOP_S = 5.0
#: `-I` keeps the environment and the working folder out; the daemon's own path brings exactly its own packages in.
_BOOT = (
    "import sys, json, importlib; sys.path[:] = json.loads(sys.argv.pop(1)); "
    "importlib.import_module(sys.argv.pop(1)).main()"
)


def start_module(
    module: str, arguments: Sequence[str], control: socket.socket, words: Path
) -> "subprocess.Popen[bytes]":
    """Run `main` of a module with these arguments and this socket; what it complains of goes into the file `words`."""
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
    """Wait for a process whose socket was closed; one that takes too long is killed."""
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def last_words(words: Path) -> str:
    """The end of a process's error output."""
    try:
        return words.read_text("utf-8", "replace")[-2000:].strip()
    except FileNotFoundError:
        return ""
