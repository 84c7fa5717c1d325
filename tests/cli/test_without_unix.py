"""The command line without the modules that only Unix has works against a server, and the daemon says what it needs."""

import sys
from pathlib import Path

import pytest

from tests.acceptance.installations import Installation
from tests.cli.consoles import write

#: Runs a program after the import of these modules was blocked, and these names were taken out of `os` and `signal`.
_BLOCKED = """
import asyncio, os, signal, socket, subprocess, sys, tempfile
sys.modules |= dict.fromkeys(("fcntl", "pwd", "grp", "resource", "termios", "tty", "pty", "syslog"))
for name in "{gone}".split():
    delattr(os if hasattr(os, name) else signal, name)
sys.argv[:1] = ["svc"]
from {module} import main
main()
"""


#: What Windows lacks, and what no command needs that opens no folder.
GONE = "O_NONBLOCK O_NOFOLLOW O_DIRECTORY O_CLOEXEC geteuid fork setsid fchmod chown pthread_kill SIGHUP SIGKILL"
#: Imports every module of the command line.
_IMPORTED = """
import pkgutil, importlib, svc_cli
for each in pkgutil.walk_packages(svc_cli.__path__, "svc_cli."):
    each.name.endswith("__main__") or importlib.import_module(each.name)
"""


def test_every_module_of_the_command_line_is_imported(shared_installation: Installation) -> None:
    blocked = _BLOCKED.partition("sys.argv")[0].format(gone=GONE)
    ended = shared_installation.run(sys.executable, "-c", blocked + _IMPORTED)
    assert (ended.exit, ended.stderr) == (0, "")


def test_commands_without_folders_need_nothing_that_windows_lacks(
    shared_installation: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "lines.txt", data=b"Words about piers.\r\nAnd more.\r\n")
    write(tmp_path, "svc.toml", data=b'bucket = "windows"\n')
    write(tmp_path, "key", data=shared_installation.key.encode())
    elsewhere = {name: str(tmp_path / name) for name in ("SVC_DATA_DIR", "SVC_CONFIG_DIR", "SVC_STATE_DIR")}
    elsewhere |= {"SVC_BASE_URL": shared_installation.base_url, "SVC_API_KEY_FILE": str(tmp_path / "key")}
    for name, value in elsewhere.items():
        monkeypatch.setitem(shared_installation.environ, name, value)
    blocked = _BLOCKED.format(module="svc_cli.main", gone=GONE)
    for command in (
        "upload lines.txt",
        "search piers -b windows",
        "ask what words are about piers -b windows",
        "status -b windows",
        "source ls",
        "source set lines.txt -b windows --tag t",
        "source get lines.txt",
        "bucket ls",
        "events --limit 3",
        "key ls",
        "agent ls",
        "config list",
        "config set search.k 5",
        "doctor",
        "watch ls",
        "auth status",
    ):
        ended = shared_installation.run(sys.executable, "-c", blocked, *command.split(), cwd=tmp_path)
        assert ended.exit == 0, (command, ended.stdout, ended.stderr)
    blocked = blocked.replace("sys.argv[:1]", "os.supports_dir_fd.clear(); sys.argv[:1]")
    for command in ("upload .", "sync . -b windows", "source get lines.txt -o copy.txt"):
        ended = shared_installation.run(sys.executable, "-c", blocked, *command.split(), cwd=tmp_path)
        assert (ended.exit, "in WSL" in ended.stderr) == (2, True), (command, ended.stderr)


def test_commands_work_against_a_server(
    shared_installation: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "docs/a.md", data=b"Words about quays.")
    environ = shared_installation.environ
    monkeypatch.setitem(environ, "SVC_BASE_URL", shared_installation.base_url)
    monkeypatch.setitem(environ, "SVC_API_KEY", shared_installation.key)
    for command in (
        "upload docs -b without-unix",
        "search quays -b without-unix",
        "sync docs -b without-unix-synced",
        "source get docs/a.md -b without-unix -o copy.md",
        "source get a.md -b without-unix-synced",
        "status",
    ):
        blocked = _BLOCKED.format(module="svc_cli.main", gone="")
        ended = shared_installation.run(sys.executable, "-c", blocked, *command.split(), cwd=tmp_path)
        assert ended.exit == 0, (command, ended.stderr)


def test_the_daemon_says_in_one_line_that_it_needs_wsl(shared_installation: Installation) -> None:
    alone = shared_installation.run(
        sys.executable, "-c", _BLOCKED.format(module="svc_daemon.command.main", gone=""), "serve"
    )
    assert (alone.exit, alone.stdout, alone.stderr.count("\n")) == (1, "", 1)
    assert "WSL" in alone.stderr
    by_svc = shared_installation.run(sys.executable, "-c", _BLOCKED.format(module="svc_cli.main", gone=""), "status")
    assert by_svc.exit == 12
    assert by_svc.stderr.startswith("error: The local daemon runs on Linux and macOS, and on Windows in WSL.\n")
