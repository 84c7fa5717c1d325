"""One daemon per data directory, which commands start when they need it and SIGTERM stops."""

import json
import signal
import socket
from pathlib import Path

import psutil
import pytest

from svc_daemon.embed import installing
from svc_daemon.embed.installed_models import ModelFolder
from svc_daemon.exits import EXIT_LOCKED
from tests.acceptance.calls import port_of, take_in
from tests.acceptance.installations import PATIENCE_S, Installation, process_tree, wait_until
from tests.conftest import UNLIMITED, MakeInstallation
from tests.embed.models import write_model
from tests.processes import children_of


def _daemons(installation: Installation) -> list[int]:
    """Return the ids of the processes that serve this data directory."""
    found = []
    for process in psutil.process_iter():
        try:
            if {"svc_daemon", "serve"} <= set(process.cmdline()):
                found += [process.pid] * (process.environ().get("SVC_DATA_DIR") == str(installation.files.root))
        except psutil.Error:
            continue
    return found


def test_sigterm_stops_the_daemon_with_exit_code_0_despite_an_open_request(installation: Installation) -> None:
    with socket.create_connection(("127.0.0.1", port_of(installation))) as connection:
        connection.sendall(b"POST /v1/search HTTP/1.1\r\nContent-Length: 100\r\n")
        assert installation.stop() == 0
    assert installation.health() is None


@pytest.mark.one_daemon
def test_sighup_stops_the_daemon_as_sigterm_does(make_installation: MakeInstallation) -> None:
    installation = make_installation(**UNLIMITED).start()
    process = psutil.Process(installation.pid)
    process.send_signal(signal.SIGHUP)
    wait_until(lambda: '"message":"stopped"' in installation.files.log.read_text(), "the daemon has stopped in order")
    assert not installation.files.daemon.exists()


def test_second_daemon_on_the_same_data_directory_exits_as_locked(installation: Installation) -> None:
    announced = installation.announced
    assert installation.spawn_daemon().wait(PATIENCE_S) == EXIT_LOCKED
    assert "Another process is using" in installation.printed()
    assert installation.announced == announced
    assert installation.health() is not None


def test_twenty_concurrent_commands_start_one_daemon(make_installation: MakeInstallation) -> None:
    fresh = make_installation()
    fresh.root.mkdir()
    commands = [fresh.spawn_svc("bucket", "ls", "--json") for _ in range(20)]
    ended = [(command.communicate(timeout=120), command.returncode) for command in commands]
    assert [code for _, code in ended] == [0] * 20
    assert all(json.loads(out)["buckets"] == [] for (out, _), _ in ended)
    # A daemon that didn't get the lock may be about to exit.
    wait_until(lambda: _daemons(fresh) == [fresh.pid], "one daemon is left")


@pytest.mark.one_daemon  # each machine has a model of its own
def test_child_processes_end_when_the_daemon_is_killed(make_installation: MakeInstallation, tmp_path: Path) -> None:
    installation = make_installation(**UNLIMITED)
    tiny = str(write_model(tmp_path / "tiny"))
    installing.install(ModelFolder(installation.files.models), tiny, lambda: "2026-01-01T00:00:00.000Z", print)
    with installation.start().client() as client:
        take_in(client, "notes", "notes.md", b"# Notes\n\nSome text.")
    model = wait_until(lambda: children_of(installation.pid, "svc_daemon.embed.model_process"), "the model's process")
    children = process_tree(installation.pid or 0)[1:]
    installation.kill()
    assert set(model) < set(children)
    assert psutil.wait_procs(children, PATIENCE_S)[1] == []
