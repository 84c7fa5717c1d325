"""What is committed works on any machine and with any registry: it names neither."""

import re
import subprocess

import pytest

from tests.rules.modules import ROOT

#: Each pattern is written so that it does not match itself.
FORBIDDEN = {
    "a package registry": r"\b(pypi|pythonhosted|npmjs|yarnpkg|crates|conda)\.(org|com|io)\b|--(extra-)?index-url",
    "an install of another project": r"pip3? install( -\S+| [\w-]+\.txt)* ['\"]?svc(?![\w./-])",
    "a place on one machine": r"(?<![\w.])/(work|root|home/\w+|Users/\w+|tmp/\w+|opt/\w+)/",
}
SLASH = "/"
BAD = (
    *("https:" + "//py" + "pi.org/simple", "files.python" + "hosted.org", "--index" + "-url=file:x"),
    *(SLASH + "work/main", SLASH + "home/jo/svc", SLASH + "tmp/svc/venv"),
    *("`pip " + "install 'svc[mcp]'`", "pip " + "install -U svc\n"),
)


def forbidden(text: str) -> list[str]:
    """A phrase for each registry or machine path that a text names."""
    matches = ((meaning, re.finditer(pattern, text)) for meaning, pattern in FORBIDDEN.items())
    return [f"{match.group()} is {meaning}" for meaning, found in matches for match in found]


def test_no_committed_file_names_a_registry_or_a_machine() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    paths = [ROOT / name for name in listed.split("\0") if (ROOT / name).is_file()]
    texts = {path: path.read_text(encoding="utf-8", errors="replace") for path in paths}
    assert {path: found for path, text in texts.items() if (found := forbidden(text))} == {}


@pytest.mark.parametrize("text", BAD)
def test_a_registry_or_a_machine_path_is_found(text: str) -> None:
    assert len(forbidden(f"see {text} there")) == 1
