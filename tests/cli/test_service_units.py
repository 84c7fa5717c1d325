"""Service units: their commands, the escaping of values, and how they are installed and removed."""

import os
import plistlib
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from svc_cli.daemon.units import Launchd, Systemd, find_keys, manager_for, services_of
from svc_cli.errors import UsageError
from tests.acceptance.installations import Installation

ENVIRON = {"HOME": "/users/ann", "PATH": "/bin", "SVC_LISTEN": "127.0.0.1:9000", "SVC_API_KEY": "sk-secret"}
not_on_macos = pytest.mark.skipif(sys.platform == "darwin", reason="launchd is called otherwise")


def test_unit_runs_the_daemon_with_the_svc_variables_except_the_key() -> None:
    daemon, watch = (Systemd(ENVIRON).unit(service) for service in services_of(ENVIRON))
    assert daemon.path == Path("/users/ann/.config/systemd/user/svc.service")
    lines = [f"ExecStart={sys.executable} -P -m svc_daemon serve\n", "Environment=SVC_LISTEN=127.0.0.1:9000\n"]
    for unit, expected in ((daemon, lines), (watch, ["watch run --stay", "After=svc.service"])):
        assert [each for each in expected if each not in unit.text] == []
    assert "sk-secret" not in daemon.text + watch.text


def test_keys_tokens_and_passwords_are_in_no_unit_and_are_named() -> None:
    secrets = {
        **dict.fromkeys(("SVC_API_KEY", "SVC_WEBHOOK_SECRET", "SVC_LLM_API_KEY", "SVC_EMBED_API_KEY"), "hunter2"),
        "SVC_INDEX_TOKEN": "root:hunter2",
        "SVC_STATE_URL": "postgresql://svc:hunter2@db.example.com/svc",
        "OTEL_EXPORTER_OTLP_HEADERS": "authorization=hunter2",
    }
    environ = {**ENVIRON, **secrets, "SVC_LLM_API_KEY_FILE": "/keys/llm", "OTEL_SERVICE_NAME": "svc"}
    assert find_keys(environ) == sorted(secrets.keys() - {"SVC_API_KEY", "SVC_WEBHOOK_SECRET"})
    for manager in (Systemd(environ), Launchd(environ)):
        texts = [manager.unit(service).text for service in services_of(environ, "/backups")]
        assert ["hunter2" in text for text in texts] == [False] * 3
        assert all("/keys/llm" in text and "OTEL_SERVICE_NAME" in text for text in texts)
    # An address without a password is no secret.
    assert find_keys({"SVC_STATE_URL": "postgresql://svc@db.example.com:5432/svc", "SVC_LLM_API_KEY": ""}) == []


def test_custom_data_dir_changes_the_name_of_the_service_and_becomes_absolute() -> None:
    daemon = services_of({**ENVIRON, "SVC_DATA_DIR": "data"})[0]
    assert daemon.name.startswith("svc-")
    assert daemon.environ["SVC_DATA_DIR"] == str(Path("data").absolute())


def test_special_characters_of_systemd_are_escaped_and_newlines_refused() -> None:
    environ = {**ENVIRON, "SVC_LISTEN": 'a b"c%d$e\\f'}
    assert 'Environment="SVC_LISTEN=a b\\"c%%d$e\\\\f"\n' in Systemd(environ).unit(services_of(environ)[0]).text
    with pytest.raises(UsageError):
        Systemd(ENVIRON).unit(services_of({**ENVIRON, "SVC_LISTEN": "a\nExecStart=b"})[0])


def test_systemd_analyze_verify_reports_no_error(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not installed")
    for service in services_of(ENVIRON, "/backups"):
        for unit in filter(None, (Systemd(ENVIRON).unit(service), Systemd(ENVIRON).timer(service))):
            (tmp_path / unit.name).write_text(unit.text)
    command = ["systemd-analyze", "--user", "verify", *map(str, tmp_path.glob("svc*"))]
    # Without this folder, systemd doesn't check any unit.
    environ = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    ended = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert f"{tmp_path}/svc" not in ended.stderr, ended.stderr


def test_systemd_analyze_security_rates_each_service_below_the_threshold(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not installed")
    for service in services_of(ENVIRON, "/backups"):
        unit = Systemd(ENVIRON).unit(service)
        (tmp_path / unit.name).write_text(unit.text)
        # Without namespaces, which not every system allows users, the threshold can't be much lower.
        command = ["systemd-analyze", "security", "--offline=true", "--threshold=65", "--no-pager", unit.name]
        command = [*command[:-1], str(tmp_path / unit.name)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stdout + ended.stderr


def test_launchd_agent_is_a_property_list_with_the_same_command() -> None:
    manager = manager_for(ENVIRON, "darwin")
    assert isinstance(manager, Launchd)
    unit = manager.unit(services_of(ENVIRON)[0])
    agent = plistlib.loads(unit.text.encode())
    assert unit.path == Path("/users/ann/Library/LaunchAgents/local.svc.plist")
    assert agent["ProgramArguments"] == list(services_of(ENVIRON)[0].command)
    assert agent["EnvironmentVariables"] == {"SVC_LISTEN": "127.0.0.1:9000"}
    daily = plistlib.loads(manager.unit(services_of(ENVIRON, "/backups")[2]).text.encode())
    assert daily["ProgramArguments"][-2:] == ["backup", "/backups"]
    assert "KeepAlive" not in daily
    assert daily["StartCalendarInterval"] == {"Hour": 3, "Minute": 0}


def _with_systemctl(folder: Path, answer: str) -> Installation:
    """Return an installation with a fake `systemctl` that records its calls and then runs `answer`."""
    program = folder / "bin" / "systemctl"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$*" >> {folder}/calls\n{answer}\n')
    program.chmod(0o755)
    installation = Installation(folder / "one", HOME=str(folder / "home"), XDG_CONFIG_HOME="")
    installation.environ["PATH"] = f"{program.parent}:{installation.environ['PATH']}"
    installation.root.mkdir()
    return installation


@not_on_macos
def test_daemon_install_enables_units_and_uninstall_disables_and_removes_them(tmp_path: Path) -> None:
    installation = _with_systemctl(tmp_path, "exit 0")
    shown = installation.svc("daemon", "install", "--print")
    assert shown.exit == 0
    assert "svc_daemon" in shown.stdout
    assert [(tmp_path / name).exists() for name in ("home", "calls")] == [False, False], "printing writes nothing"
    printed = installation.svc("daemon", "install", "--backup", "/backups", "--print").stdout
    assert ["OnCalendar=daily" in printed, "svc_daemon backup /backups\n" in printed] == [True, True]
    installation.environ["SVC_LLM_API_KEY"] = "hunter2"
    installed = installation.svc("daemon", "install", "--backup", "/backups")
    assert (installed.exit, "name a file with it in SVC_LLM_API_KEY_FILE" in installed.stderr) == (0, True)
    backup, timer, watch, daemon = units = sorted((tmp_path / "home/.config/systemd/user").iterdir())
    assert [unit.name.partition("-backup")[2] for unit in (backup, timer)] == [".service", ".timer"]
    assert {stat.S_IMODE(unit.stat().st_mode) for unit in units} == {0o600}
    assert installation.svc("daemon", "uninstall").exit == 0
    assert not any(unit.exists() for unit in units)
    # The backup is started by its timer alone.
    names = f"{daemon.name} {watch.name} {timer.name}"
    calls = ["daemon-reload", f"enable --now {names}", f"disable --now {names}", "daemon-reload"]
    assert (tmp_path / "calls").read_text().splitlines() == [f"--user {call}" for call in calls]


@not_on_macos
def test_daemon_install_leaves_no_units_when_systemctl_fails(tmp_path: Path) -> None:
    refused = _with_systemctl(tmp_path, "echo no bus >&2; exit 1").svc("daemon", "install", "--json")
    assert refused.failure == (2, "svc_service_refused")
    assert "no bus" in refused.json["error"]["message"]
    assert list((tmp_path / "home/.config/systemd/user").iterdir()) == []


def test_windows_has_no_manager_of_services() -> None:
    with pytest.raises(UsageError, match="which Windows lacks") as refused:
        manager_for(ENVIRON, "win32")
    assert "svc watch run" in str(refused.value.hint)
