"""`svc daemon …`, autostart and `svc doctor`, with real daemons."""

import json
import os
import shutil
import signal
import socket
import sqlite3
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

from svc_cli.daemon import process
from svc_cli.daemon.probes import probe
from svc_cli.daemon.process import Installation as Found
from svc_cli.daemon.process import LogPlace
from svc_cli.errors import DaemonUnreachable, UsageError
from svc_daemon.wire.light.local_daemons import FREE_DISK_BYTES, least_free_bytes
from tests.acceptance.installations import PATIENCE_S, Finished, Installation, wait_until
from tests.cli.terminals import Json, RunSvc
from tests.conftest import UNLIMITED, MakeInstallation


@pytest.fixture
def fresh(make_installation: MakeInstallation) -> Installation:
    """An installation whose daemon was never started."""
    made = make_installation(**UNLIMITED)
    made.root.mkdir()
    return made


def test_status_shows_address_process_and_queue(shared_installation: Installation) -> None:
    shown, announced = shared_installation.svc("daemon", "status", "--json").json, shared_installation.announced
    facts = {"running": True, "base_url": announced["base_url"], "pid": announced["pid"]}
    facts |= {"data_dir": str(shared_installation.files.root), "queue": {"queued": 0, "running": 0}}
    assert {name: shown[name] for name in facts} == facts
    assert shown["uptime_seconds"] >= 0
    assert shown["last_trouble"] is None
    assert shown["disk"]["free_bytes"] > shown["disk"]["least_free_bytes"]
    assert 0 <= shown["vectors"]["missing"] <= shown["vectors"]["passages"]


def test_daemon_start_keeps_a_running_daemon(shared_installation: Installation) -> None:
    pid = shared_installation.pid
    assert shared_installation.svc("daemon", "start", "--json").json["pid"] == pid


def test_start_warns_when_other_machines_can_connect_and_a_second_stop_does_nothing(fresh: Installation) -> None:
    started = fresh.svc("daemon", "start", "--listen", "0.0.0.0:0", "--json")
    assert started.exit == 0
    assert "other machines" in started.stderr
    again = fresh.svc("daemon", "restart", "--listen", "127.0.0.1:0", "--json")
    assert again.json["pid"] != started.json["pid"]
    assert "other machines" not in again.stderr
    stopped = [fresh.svc("daemon", "stop", "--json").json for _ in range(2)]
    assert [(each["stopped"], each["pid"]) for each in stopped] == [(True, again.json["pid"]), (False, None)]


def test_what_a_starting_daemon_warns_of_is_shown_by_the_command_that_starts_it(fresh: Installation) -> None:
    fresh.environ |= {"SVC_LISTEN": "0.0.0.0:0", "SVC_FETCH_ALOW": "10.0.0.0/8"}
    warned = fresh.svc("bucket", "ls").stderr
    assert warned.count("other machines") == 1
    assert "SVC_FETCH_ALOW has no effect: SVC_FETCH_ALLOW is probably meant" in warned
    assert "other machines" not in fresh.svc("bucket", "ls").stderr
    assert fresh.svc("daemon", "stop").exit == 0
    assert "other machines" not in fresh.svc("bucket", "ls", "--quiet").stderr


def test_stop_ends_while_the_program_that_started_the_daemon_does_not_read_its_exit_status(fresh: Installation) -> None:
    # As a watcher does, or the first process of a container.
    started = fresh.spawn_daemon(launcher=("env",))
    wait_until(lambda: fresh.svc("daemon", "status", "--no-autostart", "--json").exit == 0, "the daemon answers")
    began_s = time.monotonic()
    stopped = fresh.svc("daemon", "stop", "--json")
    assert (stopped.exit, stopped.json["pid"]) == (0, started.pid), stopped.stdout
    assert time.monotonic() - began_s < process.STOP_TIMEOUT_S
    assert started.wait(PATIENCE_S) == 0


def test_daemon_of_a_folder_that_may_not_be_entered_is_not_taken_for_absent(tmp_path: Path) -> None:
    root = tmp_path / "another" / "data"
    root.mkdir(parents=True)
    found = Found({"SVC_DATA_DIR": str(root)})
    assert found.find() is None
    user = os.geteuid()
    root.parent.chmod(0)
    os.seteuid(user or 65534)
    try:
        for look in (found.find, found.stop):
            with pytest.raises(UsageError, match="Permission denied") as refused:
                look()
            assert "another user may have a daemon there" in str(refused.value.hint)
    finally:
        os.seteuid(user)
        root.parent.chmod(0o700)


def test_data_directory_that_cannot_be_made_is_refused_with_the_variable_to_set(
    fresh: Installation, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    fresh.environ["SVC_DATA_DIR"] = str(tmp_path / "file" / "data")
    refused = fresh.svc("status", "--json")
    assert refused.failure == (2, "svc_file_refused")
    assert refused.json["error"]["hint"] == "set SVC_DATA_DIR to a folder that this user may write."


@pytest.mark.parametrize("scheme", ("http", "https"))
def test_daemon_that_hangs_is_not_taken_for_absent(
    scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "probe", partial(probe, timeout_s=0.2))
    found = Found({"SVC_DATA_DIR": str(tmp_path)})
    # The system accepts connections for a program that doesn't.
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        base_url = f"{scheme}://127.0.0.1:{hanging.getsockname()[1]}"
        record = {"pid": os.getpid(), "base_url": base_url, "installation_id": "ins_1"}
        found.files.daemon.write_text(json.dumps(record), "utf-8")
        with pytest.raises(DaemonUnreachable, match=rf"\(process {os.getpid()}\) at {base_url} does not answer"):
            found.find()


@pytest.mark.parametrize("words", (("bucket", "ls"), ("auth", "logout")))
def test_no_autostart_starts_no_daemon(words: tuple[str, ...], fresh: Installation) -> None:
    finished = fresh.svc(*words, "--no-autostart", "--json")
    assert finished.failure == (12, "svc_daemon_unreachable")
    assert not fresh.files.daemon.exists()


def test_stale_announcement_of_a_killed_daemon_does_not_prevent_a_start(fresh: Installation) -> None:
    fresh.start()
    fresh.kill()
    assert fresh.files.daemon.exists()
    # What another program has written there is no announcement either.
    fresh.files.daemon.write_text("[" * 5000)
    assert [fresh.svc(*words).exit for words in (("daemon", "status"), ("bucket", "ls"))] == [12, 0]
    assert fresh.health() is not None


def test_limit_that_the_running_daemon_does_not_use_is_reported(here: RunSvc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SVC_LIMIT_TAGS", "7")
    monkeypatch.setenv("SVC_LIMIT_NONSENSE", "1")
    ended = here("bucket", "ls")
    lines = ("SVC_LIMIT_TAGS=7 has no effect yet: the running daemon uses 20", "SVC_LIMIT_NONSENSE is not a setting")
    assert ended.exit == 0
    assert [line for line in lines if line not in ended.stderr] == []
    assert "SVC_LIMIT_CREATES" not in ended.stderr


def test_settings_that_the_running_daemon_does_not_use_are_reported_without_their_values(fresh: Installation) -> None:
    fresh.environ |= {"SVC_LLM_BASE_URL": "http://127.0.0.1:9/v1", "SVC_LLM_MODEL": "small"}
    assert "no effect yet" not in fresh.svc("bucket", "ls").stderr
    assert "no effect yet" not in fresh.svc("daemon", "status").stderr
    fresh.environ |= {"SVC_LLM_MODEL": "other", "SVC_EMBED_API_KEY": "secret", "SVC_FETCH_ALLOW": "127.0.0.0/8"}
    for words in (("bucket", "ls"), ("daemon", "status")):
        warned = fresh.svc(*words).stderr
        assert "SVC_LLM_MODEL, SVC_EMBED_API_KEY, SVC_FETCH_ALLOW: no effect yet" in warned
        assert ("secret" in warned, "SVC_LLM_BASE_URL" in warned) == (False, False)
    assert "secret" not in fresh.files.daemon.read_text()
    assert fresh.svc("daemon", "restart").exit == 0
    assert "no effect yet" not in fresh.svc("bucket", "ls").stderr
    del fresh.environ["SVC_FETCH_ALLOW"]
    assert "SVC_FETCH_ALLOW: set for the daemon until now" in fresh.svc("daemon", "restart").stderr


def test_restart_with_settings_that_no_daemon_could_start_with_leaves_the_running_one(fresh: Installation) -> None:
    fresh.start()
    pid = fresh.svc("daemon", "status", "--json").json["pid"]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for name, value, code in (
            ("SVC_LOG_LEVEL", "shouting", (2, "svc_usage")),
            ("SVC_TLS_CERT", "/nowhere/cert.pem", (2, "svc_usage")),
            ("SVC_FETCH_ALLOW", "everything", (2, "svc_usage")),
            ("SVC_LISTEN", "7820", (2, "svc_usage")),
            ("SVC_LISTEN", f"127.0.0.1:{taken.getsockname()[1]}", (12, "svc_port_taken")),
        ):
            refused = run_with(fresh, {name: value, **({"SVC_TLS_KEY": "/nowhere/key.pem"} if "TLS" in name else {})})
            assert refused.failure == code, (name, refused.stderr)
            assert name in refused.stderr
        assert fresh.svc("daemon", "status", "--json").json["pid"] == pid


def test_restart_with_a_release_that_can_not_use_the_state_leaves_the_running_one(fresh: Installation) -> None:
    fresh.start()
    with closing(sqlite3.connect(fresh.files.state)) as state, state:
        state.execute("INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('state', 'm999', 'x')")
    refused = fresh.svc("daemon", "restart", "--json")
    assert refused.failure == (12, "svc_daemon_unreachable")
    assert "made by a newer release (it has m999)" in refused.json["error"]["message"]
    assert fresh.svc("daemon", "status").exit == 0


def test_move_to_a_slip_of_the_pen_is_refused(fresh: Installation) -> None:
    refused = fresh.operate("move", "--to", "clustr", "--json")
    assert (refused.failure, "`cluster`" in refused.json["error"]["message"]) == ((2, "svc_usage"), True)


def run_with(installation: Installation, environ: dict[str, str]) -> Finished:
    """Restart the daemon with these variables, which the next command doesn't have."""
    before = dict(installation.environ)
    installation.environ |= environ
    try:
        return installation.svc("daemon", "restart", "--json")
    finally:
        installation.environ.clear()
        installation.environ.update(before)


def test_only_an_address_that_the_running_daemon_does_not_use_is_reported(
    here: RunSvc, shared_installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = urlsplit(shared_installation.base_url).port or 0
    hosts = {"127.0.0.1": False, "localhost": False, "0.0.0.0": False, "127.0.0.2": True, "[::1]": True}
    listens = {f"{host}:{port}": is_reported for host, is_reported in hosts.items()}
    for listen, is_reported in {**listens, f"localhost:{port - 1}": True, "localhost:0": False}.items():
        monkeypatch.setenv("SVC_LISTEN", listen)
        ended = here("bucket", "ls")
        assert ended.exit == 0, listen
        assert (f"SVC_LISTEN={listen} has no effect yet" in ended.stderr) == is_reported, listen


def test_daemon_logs_prints_and_follows_the_log(shared_installation: Installation) -> None:
    assert shared_installation.svc("daemon", "logs", "-n", "0", "--json").json["lines"] == []
    shown = shared_installation.svc("daemon", "logs", "-n", "5", "--json").json
    assert shown["path"] == str(shared_installation.files.log)
    assert 1 <= len(shown["lines"]) <= 5
    following = shared_installation.spawn_svc("daemon", "logs", "--follow", "--ndjson", "-n", "1")
    assert following.stdout is not None
    assert json.loads(following.stdout.readline())["type"] == "log"
    shared_installation.svc("bucket", "ls")
    assert json.loads(following.stdout.readline())["type"] == "log"
    following.send_signal(signal.SIGINT)
    following.communicate(timeout=PATIENCE_S)
    assert following.returncode == 130


@pytest.mark.rule("log.daemon")
@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_followed_log_lines_are_complete_and_none_is_missed_on_rotation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    found = Found({"SVC_DATA_DIR": str(tmp_path)})
    log = found.files.log
    log.parent.mkdir()
    assert found.read_log(None) == ([], None)
    log.write_bytes(b"one\ntwo\nthr")
    lines, place = found.read_log(None)
    assert lines == ["one", "two"]
    seen = []

    def rotate() -> None:
        log.rename(f"{log}.1")
        log.write_bytes(b"five: ")

    def rotate_first(path: Path, after: LogPlace | None) -> tuple[list[str], LogPlace]:
        monkeypatch.undo()
        rotate()
        return read_lines(path, after)

    read_lines = process._read_lines
    for added, rotates in ((b"ee\nfo", ""), (b"ur\n", when), (b"a longer line than all before it\nsix\nse", "")):
        with log.open("ab") as file:
            file.write(added)
        if rotates == "before":
            rotate()
        if rotates == "meanwhile":
            monkeypatch.setattr(process, "_read_lines", rotate_first)
        lines, place = found.read_log(place)
        seen += lines
    assert seen == ["three", "four", "five: a longer line than all before it", "six"]


def test_new_log_is_followed_from_its_start_if_the_old_one_was_deleted(tmp_path: Path) -> None:
    found = Found({"SVC_DATA_DIR": str(tmp_path)})
    log = found.files.log
    log.parent.mkdir()
    log.write_bytes(b"one\n")
    _, place = found.read_log(None)
    other = tmp_path / "other"
    other.write_bytes(b"seven\n")
    other.replace(log)
    lines, place = found.read_log(place)
    assert lines == ["seven"]
    assert found.read_log(place)[0] == []


def test_daemon_run_is_the_daemon_process_itself(fresh: Installation) -> None:
    running = fresh.spawn_svc("daemon", "run")
    wait_until(lambda: fresh.health() is not None, "the daemon's first answer")
    assert fresh.pid == running.pid
    running.send_signal(signal.SIGTERM)
    running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 0


def test_fixed_url_needs_the_default_installation_or_an_explicit_port() -> None:
    elsewhere, listen = {"SVC_DATA_DIR": "elsewhere"}, {"SVC_LISTEN": "127.0.0.1:9000"}
    for environ, url in (
        *(({}, "http://127.0.0.1:7820"), (elsewhere, None), ({"SVC_LISTEN": "127.0.0.1:0"}, None)),
        *((listen, "http://127.0.0.1:9000"), (elsewhere | listen, "http://127.0.0.1:9000")),
    ):
        assert Found(environ).fixed_url == url, environ


def test_relative_data_dir_is_passed_to_the_daemon_as_an_absolute_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Found({"SVC_DATA_DIR": "data"}).child_environ()["SVC_DATA_DIR"] == str(tmp_path / "data")


def test_least_free_bytes_depends_on_the_disk_size_up_to_1_gb() -> None:
    gb = 1024**3
    reserves = {gb: gb // 4, 20 * gb: 20 * gb // 50, 50 * gb: gb, 4000 * gb: gb}
    assert {total_bytes: least_free_bytes(FREE_DISK_BYTES, total_bytes) for total_bytes in reserves} == reserves


def test_doctor_names_the_variables_that_are_set_and_the_reserve_of_the_disk(
    svc: RunSvc, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find(name: str) -> Json:
        checks: list[Json] = svc("doctor", "--json").json["checks"]
        return next(check for check in checks if check["check"] == name)

    monkeypatch.setenv("SVC_LISTEN", "127.0.0.1:0")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(total=2**40, free=2**20))
    settings = find("settings")["text"]
    assert "SVC_LISTEN" in settings and "SVC_DATA_DIR" in settings and settings.endswith("from the environment")
    assert find("data folder")["hint"] == "free some disk space: uploads are refused below 1.0 GB."
    monkeypatch.setenv("SVC_LIMIT_FREE_DISK_BYTES", "0")
    assert find("data folder")["state"] == "ok"


def test_doctor_passes_with_a_running_daemon_and_warns_about_a_stopped_one(
    shared_installation: Installation, fresh: Installation
) -> None:
    healthy, asleep = shared_installation.svc("doctor", "--json"), fresh.svc("doctor", "--json")
    checks = {check["check"]: check["state"] for check in healthy.json["checks"]}
    assert healthy.exit == 0
    # The tests may run in a container, or in memory.
    del checks["disk"]
    assert set(checks.values()) == {"ok"}
    assert {"program", "settings", "data folder", "daemon", "key", "service", "answers"} <= set(checks)
    states = {each["check"]: each["state"] for each in asleep.json["checks"]}
    assert asleep.exit == 0
    assert states["daemon"] == "warning"
    assert not fresh.files.daemon.exists()
