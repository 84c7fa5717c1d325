"""`svc daemon …` and starting by itself, with real daemons."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from svc_cli.commands.doctor import least_free_bytes
from svc_cli.daemon_process import Installation as Found
from svc_daemon.paths import DataFiles
from tests.acceptance.installations import Installation, wait_until
from tests.conftest import UNLIMITED, MakeInstallation


def test_status_tells_where_who_and_how_busy(shared_installation: Installation) -> None:
    told = shared_installation.svc("daemon", "status", "--json").json
    announced = shared_installation.announced
    assert (told["base_url"], told["pid"]) == (announced["base_url"], announced["pid"])
    assert told["data_dir"] == str(shared_installation.files.root)
    assert told["queue"] == {"queued": 0, "running": 0}
    assert told["uptime_seconds"] >= 0
    assert told["running"] is True


def test_starting_what_runs_changes_nothing(shared_installation: Installation) -> None:
    pid = shared_installation.pid
    assert shared_installation.svc("daemon", "start", "--json").json["pid"] == pid


def test_stopping_twice_is_fine(make_installation: MakeInstallation) -> None:
    fresh = make_installation()
    fresh.root.mkdir()
    started = fresh.svc("daemon", "start", "--json").json["pid"]
    stopped = [fresh.svc("daemon", "stop", "--json").json for _ in range(2)]
    assert [(each["stopped"], each["pid"]) for each in stopped] == [(True, started), (False, None)]


def test_without_autostart_nothing_is_started(make_installation: MakeInstallation) -> None:
    fresh = make_installation()
    fresh.root.mkdir()
    finished = fresh.svc("bucket", "ls", "--no-autostart", "--json")
    assert (finished.exit, finished.json["error"]["code"]) == (12, "svc_daemon_unreachable")
    assert not fresh.files.daemon.exists()


def test_a_stale_announcement_is_no_daemon(make_installation: MakeInstallation) -> None:
    killed = make_installation()
    killed.start()
    killed.kill()
    assert killed.files.daemon.exists()
    assert killed.svc("daemon", "status", "--json").exit == 12
    assert killed.svc("bucket", "ls").exit == 0
    assert killed.health() is not None


def test_a_daemon_that_can_not_start_is_told_with_its_last_words(make_installation: MakeInstallation) -> None:
    broken = make_installation(SVC_LOG_LEVEL="shouting")
    broken.root.mkdir()
    finished = broken.svc("bucket", "ls", "--json")
    assert finished.exit == 12
    assert "SVC_LOG_LEVEL" in finished.json["error"]["message"]


def test_a_limit_that_is_not_in_force_is_said(shared_installation: Installation, tmp_path: Path) -> None:
    told = dict(shared_installation.environ)
    told["SVC_LIMIT_TAGS"] = "7"
    told["SVC_LIMIT_NONSENSE"] = "1"
    ended = subprocess.run(
        [sys.executable, "-m", "svc_cli", "bucket", "ls"],
        env=told,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0
    assert "SVC_LIMIT_TAGS=7 is not in force: the running daemon has 20" in ended.stderr
    assert "SVC_LIMIT_NONSENSE is not a setting" in ended.stderr
    assert "SVC_LIMIT_CREATES" not in ended.stderr


def test_the_log_is_shown_and_followed(installation: Installation) -> None:
    shown = installation.svc("daemon", "logs", "-n", "5", "--json").json
    assert shown["path"] == str(installation.files.log)
    assert 1 <= len(shown["lines"]) <= 5
    following = installation.spawn_svc("daemon", "logs", "--follow", "--ndjson", "-n", "1")
    assert following.stdout is not None
    assert json.loads(following.stdout.readline())["type"] == "log"
    installation.svc("bucket", "ls")
    assert json.loads(following.stdout.readline())["type"] == "log"
    following.send_signal(signal.SIGINT)
    following.communicate(timeout=30)
    assert following.returncode == 130


def test_run_is_the_daemon_itself(make_installation: MakeInstallation) -> None:
    fresh = make_installation()
    fresh.root.mkdir()
    running = fresh.spawn_svc("daemon", "run")
    wait_until(lambda: fresh.health() is not None, "the daemon's first answer")
    assert fresh.pid == running.pid
    running.send_signal(signal.SIGTERM)
    running.communicate(timeout=30)
    assert running.returncode == 0


def test_listening_elsewhere_says_what_that_exposes(make_installation: MakeInstallation) -> None:
    fresh = make_installation()
    fresh.root.mkdir()
    started = fresh.svc("daemon", "start", "--listen", "0.0.0.0:0", "--json")
    assert started.exit == 0
    assert "other machines" in started.stderr
    assert "other machines" not in fresh.svc("daemon", "restart", "--listen", "127.0.0.1:0").stderr


@pytest.mark.parametrize(
    ("environ", "url"),
    [
        ({}, "http://127.0.0.1:7820"),
        ({"SVC_LISTEN": "127.0.0.1:9000"}, "http://127.0.0.1:9000"),
        ({"SVC_DATA_DIR": "elsewhere"}, None),
        ({"SVC_DATA_DIR": "elsewhere", "SVC_LISTEN": "127.0.0.1:9000"}, "http://127.0.0.1:9000"),
        ({"SVC_LISTEN": "127.0.0.1:0"}, None),
    ],
)
def test_only_the_default_installation_owns_the_known_port(environ: dict[str, str], url: str | None) -> None:
    assert Found(environ).fixed_url == url


def test_a_relative_folder_is_the_same_for_the_daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Found({"SVC_DATA_DIR": "data"}).child_environ()["SVC_DATA_DIR"] == str(tmp_path / "data")


GB = 1024**3


@pytest.mark.parametrize(
    ("total_bytes", "least_bytes"), [(GB, GB // 4), (20 * GB, 20 * GB // 50), (50 * GB, GB), (4000 * GB, GB)]
)
def test_doctor_knows_the_daemons_reserve_of_free_disk(total_bytes: int, least_bytes: int) -> None:
    assert least_free_bytes(total_bytes) == least_bytes


def test_doctor_looks_at_everything(shared_installation: Installation, make_installation: MakeInstallation) -> None:
    healthy = shared_installation.svc("doctor", "--json")
    checks = {check["check"]: check["state"] for check in healthy.json["checks"]}
    assert healthy.exit == 0
    assert set(checks.values()) == {"ok"}
    assert {"program", "settings", "data folder", "daemon", "key", "service", "answers"} <= set(checks)
    fresh = make_installation("fresh", **UNLIMITED)
    fresh.root.mkdir()
    asleep = fresh.svc("doctor", "--json")
    assert asleep.exit == 0
    assert {"daemon": "warning"}.items() <= {each["check"]: each["state"] for each in asleep.json["checks"]}.items()
    assert not DataFiles(fresh.root / "data").daemon.exists()
