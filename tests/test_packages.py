"""The wheel is reproducible and has everything that an installation needs, and how extras are installed."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from svc_daemon.wire.light.extras import install_command
from svc_daemon.wire.light.versions import VERSION
from tests.rules.manuals import manuals
from tests.rules.modules import ROOT

#: The files and folders that the wheel and the source archive are built from.
SOURCES = ("CHANGELOG.md", "LICENSE", "README.md", "constraints.txt", "pyproject.toml")
FOLDERS = ("completions", "docs", "man", "svc_cli", "svc_daemon")


def copied(folder: Path) -> Path:
    folder.mkdir()
    for name in SOURCES:
        shutil.copy2(ROOT / name, folder)
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def built(sources: Path, target: str) -> Path:
    """Build the wheel or the source archive with the installed hatchling, and return its path."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", "dist"]
    subprocess.run(command, cwd=sources, check=True, capture_output=True, timeout=120)
    (made,) = (sources / "dist").glob("*.whl" if target == "wheel" else "*.tar.gz")
    return made


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copied(tmp_path_factory.mktemp("packages") / "one")


@pytest.fixture(scope="module")
def wheel(sources: Path) -> Path:
    return built(sources, "wheel")


def test_wheel_and_source_archive_are_reproducible(sources: Path, wheel: Path, tmp_path: Path) -> None:
    other = copied(tmp_path / "two")
    for path in other.rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
        path.chmod(0o700 if path.is_dir() else 0o600)
    assert sha256(built(other, "wheel")) == sha256(wheel)
    assert sha256(built(other, "sdist")) == sha256(built(sources, "sdist"))


def test_wheel_has_the_programs_manuals_completions_and_all_modules(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
        programs = archive.read(f"svc_knowledge-{VERSION}.dist-info/entry_points.txt").decode()
    shared = {name.partition(".data/data/share/")[2] for name in names if ".data/data/" in name}
    assert shared == {
        "bash-completion/completions/svc",
        "fish/vendor_completions.d/svc.fish",
        "man/man1/svc-daemon.1",
        "man/man1/svc.1",
        "zsh/site-functions/_svc",
    }
    assert re.findall(r"^(\S+) = ", programs, re.MULTILINE) == ["svc", "svc-daemon"]
    modules = [*(ROOT / "svc_cli").rglob("*.py"), *(ROOT / "svc_daemon").rglob("*.py")]
    assert {str(path.relative_to(ROOT)) for path in modules} <= names
    assert not [name for name in names if name.startswith("tests")]


@pytest.mark.parametrize(("name", "page"), manuals().items())
def test_committed_manuals_are_current_and_readable(name: str, page: str) -> None:
    assert (ROOT / "man" / name).read_text(encoding="utf-8") == page, "outdated: run python -m tests.rules.manuals"
    if program := shutil.which("groff"):
        read = subprocess.run(
            [program, "-man", "-ww", "-Tutf8", ROOT / "man" / name], capture_output=True, text=True, check=True
        )
        assert read.stderr == ""


@pytest.mark.rule("client.mypy")
def test_programs_that_use_the_client_pass_mypy_with_the_wheels_types(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv")
    (packages,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    with ZipFile(wheel) as archive:
        archive.extractall(packages)
    programs = tmp_path / "programs"
    programs.mkdir()
    shutil.copy2(ROOT / "tests" / "acceptance" / "downstream.py", programs)
    page = (ROOT / "docs" / "how-to" / "python.md").read_text(encoding="utf-8")
    for number, example in enumerate(re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)):
        (programs / f"example_{number}.py").write_text(example, encoding="utf-8")
    python = tmp_path / "venv" / "bin" / "python"
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--python-executable",
        str(python),
        "--cache-dir",
        str(tmp_path),
        ".",
    ]
    checked = subprocess.run(command, cwd=programs, capture_output=True, text=True, timeout=300, check=False)
    assert checked.stdout == "Success: no issues found in 4 source files\n", checked.stdout + checked.stderr


@pytest.mark.parametrize(
    ("record", "command"),
    (
        (None, "pip install 'svc-knowledge[mcp]'"),
        ({"url": "file:///srv/svc", "dir_info": {}}, "pip install '.[mcp]' (in the checkout)"),
        ({"url": "file:///srv/svc", "dir_info": {"editable": True}}, "pip install -e '.[mcp]' (in the checkout)"),
        (
            {"url": "file:///tmp/built%2B1.whl", "archive_info": {}},
            "pip install 'built+1.whl[mcp]' (where the file is)",
        ),
    ),
)
def test_extra_is_installed_as_the_package_was(
    record: dict[str, Any] | None, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Installed:
        def read_text(self, name: str) -> str | None:
            return json.dumps(record) if record and name == "direct_url.json" else None

    monkeypatch.setattr("svc_daemon.wire.light.extras.distribution", lambda _: Installed())
    assert install_command("mcp") == command
