"""What README.md shows is what happens: its commands, run in order in a fresh copy of this tree."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.forks import ROOT
from tests.acceptance.installations import Installation, environment
from tests.rules.transcripts import shown_commands

#: The first command makes an environment and installs the project.
COMMAND_TIMEOUT_S = 300.0


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Installation]:
    """Somebody with a fresh copy of the tree and nothing else."""
    fresh = Installation(tmp_path)
    # Compiled when they are imported, which most modules of the libraries never are.
    fresh.environ = environment(tmp_path, {"PIP_NO_COMPILE": "1"})
    for inherited in ("PYTHONPATH", "VIRTUAL_ENV", "PYTEST_CURRENT_TEST"):
        fresh.environ.pop(inherited, None)
    yield fresh
    fresh.clear()


def test_the_commands_of_the_readme_do_what_it_says(reader: Installation) -> None:
    copy = _copy_tree(reader.root / "svc")
    shown = shown_commands((copy / "README.md").read_text(encoding="utf-8"))
    assert shown
    for command in shown:
        ended = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command.line],
            cwd=copy,
            env=reader.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )
        printed = ended.stdout + ended.stderr
        assert ended.returncode == 0, f"{command.line}\n{printed}"
        assert command.promises(ended.stdout), f"{command.line}\npromises {command.output}, printed\n{printed}"


def _copy_tree(target: Path) -> Path:
    """What a clone would have: no caches, no environments, no build folders."""
    left_out = shutil.ignore_patterns(
        ".git", ".venv", "*_cache", "__pycache__", "*.egg-info", "build", "dist", ".hypothesis"
    )
    shutil.copytree(ROOT, target, ignore=left_out)
    return target
