"""What a committed file may not name: package registries and places on one machine."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.rules.modules import ROOT

#: Each pattern is written so that it does not match itself.
_FORBIDDEN = {
    "a package registry": r"\b(pypi|pythonhosted|npmjs|yarnpkg|crates|conda)\.(org|com|io)\b|--(extra-)?index-url",
    "an install of another project": r"pip3? install( -\S+| [\w-]+\.txt)* ['\"]?svc(?![\w./-])",
    "a place on one machine": r"(?<![\w.])/(work|root|home/\w+|Users/\w+|tmp/\w+|opt/\w+)/",
}


def committed_files() -> list[Path]:
    """Files that git tracks; raises CalledProcessError outside a repository."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def forbidden(text: str) -> Iterator[str]:
    """A phrase for each registry or machine path that a text names."""
    for meaning, pattern in _FORBIDDEN.items():
        for match in re.finditer(pattern, text):
            yield f"{match.group()} is {meaning}"
