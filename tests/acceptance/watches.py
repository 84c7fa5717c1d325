"""Run a real `svc watch run` and read the lines that it prints."""

import json
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.acceptance.installations import IMPATIENT, PATIENCE_S, Installation, wait_until


class Watch:
    """A watcher process and the NDJSON lines that it has printed."""

    def __init__(self, installation: Installation, *arguments: str, program: list[str] | None = None) -> None:
        """Start an impatient `svc watch run`, or `program` instead, which has to run it."""
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8"}
        self.process: subprocess.Popen[str] = (
            installation.spawn_svc("watch", "run", *arguments, "--ndjson", module=IMPATIENT)
            if program is None
            else subprocess.Popen(program, env=installation.environ, cwd=installation.root, **pipes)
        )
        self.lines: list[dict[str, Any]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(json.loads(line))

    @property
    def states(self) -> list[str]:
        return [line["state"] for line in self.lines if line["type"] == "watch.state"]

    @property
    def notes(self) -> list[str]:
        return [line["message"] for line in self.lines if line["type"] == "watch.note"]

    def items(self, path: str | None = None) -> list[tuple[str, str]]:
        """Return the reported actions and paths in order, of all paths or of one."""
        items = [(line["action"], line["path"]) for line in self.lines if line["type"] == "watch.item"]
        return [item for item in items if path in (None, item[1])]

    def wait_for_state(self, state: str, times: int = 1) -> None:
        wait_until(lambda: self.states.count(state) >= times, f"state {state} {times} times; {self.lines[-3:]}")

    def wait_for_item(self, action: str, path: str) -> None:
        wait_until(lambda: (action, path) in self.items(), f"{action} {path}; {self.lines[-3:]}")

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal, wait until the watcher ends, and return its exit code."""
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        return code


@contextmanager
def watching(installation: Installation, *arguments: str, program: list[str] | None = None) -> Iterator[Watch]:
    """Start a watcher that has finished its first sync and waits for changes; kill it at the end of the block."""
    watch = Watch(installation, *arguments, program=program)
    try:
        watch.wait_for_state("watching")
        yield watch
    finally:
        if watch.process.poll() is None:
            watch.end(signal.SIGKILL)


def fill(folder: Path, **texts: str) -> Path:
    """Write these texts as Markdown files into the folder, and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.md").write_text(f"{text}\n")
    return folder


def run_state(installation: Installation, name: str) -> dict[str, Any]:
    """Return what `svc watch status` shows for one mapping."""
    state: dict[str, Any] = installation.svc("watch", "status", name, "--json").json["mappings"][0]
    return state
