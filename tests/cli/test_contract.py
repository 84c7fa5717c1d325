"""The promises to scripts: one JSON value whatever happens, and the exit codes, without a daemon."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from svc_daemon.wire.versions import VERSION
from tests.acceptance.installations import Finished, environment, wait_until
from tests.cli.consoles import RunSvc
from tests.cli.odd_servers import OddServer

FAILURES = [
    (("no-such-command",), 2, "svc_usage"),
    (("uplaod", "x"), 2, "svc_usage"),
    (("bucket",), 2, "svc_usage"),
    (("bucket", "no-such-verb"), 2, "svc_usage"),
    (("upload",), 2, "svc_usage"),
    (("upload", "x.md", "--wait", "never"), 2, "svc_usage"),
    (("upload", "x.md"), 2, "svc_usage"),
    (("upload", "missing.md", "-b", "b"), 5, "svc_path_not_found"),
    (("upload", "x.md", "-b", "b", "--mode", "fast"), 2, "svc_usage"),
    (("import", "http://host/x"), 2, "svc_usage"),
    (("import", "http://host/x", "-b", "b"), 12, "svc_daemon_unreachable"),
    (("batch", "show"), 2, "svc_usage"),
    (("batch", "show", "bat_x"), 12, "svc_daemon_unreachable"),
    (("webhook", "resend"), 2, "svc_usage"),
    (("webhook", "deliveries"), 12, "svc_daemon_unreachable"),
    (("source", "refresh", "src_x"), 12, "svc_daemon_unreachable"),
    (("search", " "), 2, "svc_usage"),
    (("search", "words"), 12, "svc_daemon_unreachable"),
    (("bucket", "ls"), 12, "svc_daemon_unreachable"),
    (("status",), 12, "svc_daemon_unreachable"),
    (("daemon", "status"), 12, "svc_daemon_unreachable"),
    (("config", "get", "no.such"), 2, "svc_usage"),
    (("config", "set", "upload.jobs", "four"), 2, "svc_usage"),
    (("config", "set", "bucket", "\udcff"), 2, "svc_usage"),
    (("--base-url", "nonsense", "bucket", "ls"), 2, "svc_usage"),
    (("bucket", "ls", "--base-url", "http://127.0.0.1:1"), 12, "svc_daemon_unreachable"),
]


@pytest.mark.parametrize(("words", "exit", "code"), FAILURES)
def test_every_failure_is_one_json_value_with_its_exit_code(
    svc: RunSvc, words: tuple[str, ...], exit: int, code: str
) -> None:
    finished = svc(*words, "--json")
    assert finished.exit == exit
    assert (finished.json["error"]["code"], finished.json["exit_code"]) == (code, exit)
    assert set(finished.json["error"]) == {"code", "message", "retryable", "details", "hint"}
    assert "Traceback" not in finished.stderr


@pytest.mark.parametrize(("words", "exit", "code"), FAILURES)
def test_for_people_a_failure_is_an_error_line_and_an_empty_stdout(
    svc: RunSvc, words: tuple[str, ...], exit: int, code: str
) -> None:
    finished = svc(*words)
    assert finished.exit == exit
    assert finished.stdout == ""
    assert finished.stderr.startswith("error: ")


def test_svc_alone_shows_its_commands(svc: RunSvc) -> None:
    finished = svc()
    assert (finished.exit, finished.stderr) == (0, "")
    assert "upload" in finished.stdout


def test_ndjson_fails_with_one_line_too(svc: RunSvc) -> None:
    finished = svc("upload", "missing.md", "-b", "b", "--ndjson")
    assert [json.loads(line)["exit_code"] for line in finished.stdout.splitlines()] == [5]


def test_a_misspelled_command_gets_a_suggestion(svc: RunSvc) -> None:
    assert "Did you mean 'upload'?" in svc("uplaod").stderr


def test_a_bug_is_one_line_and_a_traceback_only_on_demand(svc: RunSvc, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr("svc_cli.app.build", broken)
    finished = svc("bucket", "ls", "--json")
    assert (finished.exit, finished.json["error"]["code"]) == (1, "svc_bug")
    assert "Traceback" not in finished.stderr
    assert "Traceback" in svc("bucket", "ls", "--debug").stderr


def test_a_folder_that_refuses_a_file_is_named(svc: RunSvc, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("SVC_CONFIG_DIR", str(tmp_path / "file" / "config"))
    finished = svc("config", "set", "bucket", "b", "--json")
    assert (finished.exit, finished.json["error"]["code"]) == (2, "svc_file_refused")
    assert str(tmp_path / "file") in finished.json["error"]["message"]


@pytest.mark.parametrize("words", [("--version",), ("-V",), ("--version", "--json")])
def test_the_version_is_told(svc: RunSvc, words: tuple[str, ...]) -> None:
    finished = svc(*words)
    assert finished.exit == 0
    assert VERSION in finished.stdout


def test_a_prompt_where_nobody_sits_is_a_usage_error_that_names_the_flag(svc: RunSvc, odd: OddServer) -> None:
    odd.answer_health()
    finished = svc("auth", "login", "--base-url", odd.url)
    assert finished.exit == 2
    assert "--key-file" in finished.stderr


def test_a_wrong_project_file_stops_every_command_and_is_named(svc: RunSvc) -> None:
    Path("svc.toml").write_text('buckett = "x"')
    finished = svc("bucket", "ls", "--json")
    assert (finished.exit, finished.json["error"]["code"]) == (2, "svc_usage")
    assert "buckett" in finished.json["error"]["message"]


def test_config_is_written_read_and_explained(svc: RunSvc) -> None:
    assert svc("config", "set", "bucket", "handbook", "--dry-run").exit == 0
    assert svc("config", "get", "bucket").stdout == ""
    assert svc("config", "set", "bucket", "handbook").exit == 0
    assert svc("config", "set", "upload.jobs", "8").exit == 0
    assert svc("config", "get", "bucket").stdout == "handbook\n"
    listed = {each["name"]: each for each in svc("config", "list", "--json").json["settings"]}
    assert listed["upload.jobs"]["value"] == 8
    assert listed["upload.jobs"]["source"].endswith("config.toml")
    assert svc("config", "set", "bucket", "--unset").exit == 0
    assert svc("config", "get", "bucket", "--json").json["source"] == "default"


def test_help_and_version_load_nothing_heavy(tmp_path: Path) -> None:
    for words, heavy in ((["--help"], ("httpx", "pydantic", "rich")), (["--version"], ("typer", "json", "httpx"))):
        script = (
            "import sys\nfrom svc_cli.main import main\n"
            f"sys.argv = ['svc', *{words}]\n"
            "try:\n    main()\nexcept SystemExit:\n    pass\n"
            "sys.stderr.write(' '.join(sorted(sys.modules)))\n"
        )
        ended = _python(tmp_path, "-c", script)
        assert ended.exit == 0
        assert set(heavy) & set(ended.stderr.split()) == set()


def test_a_closed_pipe_is_quiet(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    process = subprocess.Popen(
        [sys.executable, "-m", "svc_cli", "completion", "bash"],
        env=environment(tmp_path, {}),
        stdout=writer,
        stderr=subprocess.PIPE,
    )
    os.close(writer)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (141, b"")


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_stream_that_was_never_open_is_no_bug(tmp_path: Path, closed: str) -> None:
    ended = subprocess.run(
        ["sh", "-c", f"exec {sys.executable} -m svc_cli config path {closed}"],
        env=environment(tmp_path, {}),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_ctrl_c_ends_with_130_and_one_json_value(tmp_path: Path, odd: OddServer) -> None:
    odd.answer_health()
    odd.answers["GET /v1/buckets"] = (
        503,
        {"error": {"code": "x", "message": "m", "retryable": True}},
        {"Retry-After": "20"},
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "svc_cli", "bucket", "ls", "--json"],
        env=environment(tmp_path, {"SVC_BASE_URL": odd.url, "SVC_API_KEY": "sk-test"}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    wait_until(lambda: any(path == "/v1/buckets" for _, path, _ in odd.requests), "the first request")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert json.loads(out)["error"]["code"] == "svc_interrupted"
    assert b"Traceback" not in err


def _python(tmp_path: Path, *arguments: str) -> Finished:
    ended = subprocess.run(
        [sys.executable, *arguments],
        env=environment(tmp_path, {}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Finished(ended.returncode, ended.stdout, ended.stderr)
