"""The command line without the modules that only Unix has works against a server, and the daemon says what it needs."""

import sys
from pathlib import Path

import pytest

from tests.acceptance.installations import Installation
from tests.cli.consoles import write

#: Runs a program after the import of these modules was blocked.
_BLOCKED = """
import sys
sys.modules |= dict.fromkeys(("fcntl", "pwd", "grp", "resource", "termios", "tty", "pty", "syslog"))
sys.argv[:1] = ["svc"]
from {module} import main
main()
"""


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
        blocked = _BLOCKED.format(module="svc_cli.main")
        ended = shared_installation.run(sys.executable, "-c", blocked, *command.split(), cwd=tmp_path)
        assert ended.exit == 0, (command, ended.stderr)


def test_the_daemon_says_in_one_line_that_it_needs_wsl(shared_installation: Installation) -> None:
    alone = shared_installation.run(sys.executable, "-c", _BLOCKED.format(module="svc_daemon.command.main"), "serve")
    assert (alone.exit, alone.stdout, alone.stderr.count("\n")) == (1, "", 1)
    assert "WSL" in alone.stderr
    by_svc = shared_installation.run(sys.executable, "-c", _BLOCKED.format(module="svc_cli.main"), "status")
    assert by_svc.exit == 12
    assert by_svc.stderr.startswith("error: The local daemon runs on Linux and macOS, and on Windows in WSL.\n")
