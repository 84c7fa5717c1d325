"""What most benchmarks begin with: their options, and a daemon to measure, without limits and gone afterwards."""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.acceptance.installations import Finished, Installation
from tests.bench.machines import timed
from tests.conftest import UNLIMITED

#: Has a daemon start by an interpreter of its own: a fork of the tests' server has its modules loaded already.
NEW_INTERPRETER = ("env",)


def read_options(about: str | None, **defaults: Any) -> argparse.Namespace:
    """An option for each default, of its type: a list takes several values, False makes a flag."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="where the data directories are made")
    for name, default in defaults.items():
        first = default[0] if isinstance(default, list) else default
        takes = {"action": "store_true"} if first is False else {"type": type(first), "default": default}
        if isinstance(default, list):
            takes["nargs"] = "*"
        parser.add_argument(f"--{name.replace('_', '-')}", **takes, help="default: %(default)s")
    return parser.parse_args()


@contextmanager
def measured(
    folder: Path | None, variables: Mapping[str, str] = UNLIMITED, *, is_running: bool = True
) -> Iterator[Installation]:
    """An installation in a folder of its own under `folder`, with these variables."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        daemon = Installation(Path(name) / "daemon", **variables)
        daemon.root.mkdir()
        try:
            if is_running:
                daemon.start()
            yield daemon
        finally:
            daemon.clear()


def spawn_svc(daemon: Installation, *words: str) -> "subprocess.Popen[str]":
    """Start `svc` in the installation's folder, by an interpreter of its own."""
    command, pipe = [sys.executable, "-m", "svc_cli", *words], subprocess.PIPE
    return subprocess.Popen(command, env=daemon.environ, cwd=daemon.root, stdout=pipe, stderr=pipe, text=True)


def run_svc(daemon: Installation, *words: str) -> tuple[Finished, float]:
    """Run `svc` in the installation's folder; how it ended, and its seconds."""
    process = spawn_svc(daemon, *words)
    (out, err), took_s = timed(process.communicate)
    finished = Finished(process.returncode, out, err)
    if finished.exit:
        raise RuntimeError(f"svc ended with {finished.exit}: {finished.stderr}")
    return finished, took_s
