"""Shell commands of a page of the docs, run as a build runs them."""

import os
import subprocess
import sys
from pathlib import Path

from tests.acceptance.installations import Installation


def run_recipe(installation: Installation, commands: str) -> "subprocess.CompletedProcess[str]":
    """Run them in the installation's folder, with nobody at the keyboard."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{installation.environ['PATH']}"
    return subprocess.run(
        ["sh", "-c", commands],
        env={**installation.environ, "PATH": path, "CI": "1"},
        cwd=installation.root,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
