"""What scripts rely on: one JSON value per command, exit codes, and the handling of unwritable streams."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from svc_cli.errors import ApiError, SvcError
from svc_cli.exits import Exit, exit_for_answer
from svc_cli.main import BUCKET_NAMES
from svc_daemon.wire.light.versions import VERSION
from tests.acceptance.installations import Installation, environment
from tests.cli.odd_servers import OddServer
from tests.cli.terminals import RunSvc

#: Commands that fail without a daemon, by their exit code and error code.
FAILURES = {
    (2, "svc_usage"): (
        *("no-such-command", "uplaod x", "bucket", "bucket no-such-verb", "bucket ls extra", "wait", "batch show"),
        *("upload", "upload x.md", "upload x.md --wait never", "upload x.md -j many", "upload x.md --no-such-flag"),
        *("upload x.md -b b --mode fast", "import http://host/x", "webhook resend", "--base-url nonsense bucket ls"),
        *("search", "search --", "search ' '", "search x --mode psychic", "search x -k 0", "search x -k 51"),
        *("config get no.such", "config set upload.jobs four", "config set bucket \udcff"),
    ),
    (5, "svc_path_not_found"): ("upload missing.md -b b",),
    (12, "svc_daemon_unreachable"): (
        *("import http://host/x -b b", "batch show bat_x", "webhook deliveries", "source refresh src_x", "status"),
        *("search words", "bucket ls", "daemon status", "bucket ls --base-url http://127.0.0.1:1"),
        "bucket ls --base-url http://a..b",
    ),
}


def test_failure_prints_one_json_value_or_an_error_line_and_exits_with_its_code(svc: RunSvc) -> None:
    for (exit_code, code), commands in FAILURES.items():
        for command in commands:
            finished, shown = svc("--json", *shlex.split(command)), svc(*shlex.split(command))
            assert (*finished.failure, finished.json["exit_code"]) == (exit_code, code, exit_code), command
            assert set(finished.json) >= {"error", "request_id", "exit_code"}, command
            assert set(finished.json["error"]) == {"code", "message", "retryable", "details", "hint"}, command
            assert shown.exit == exit_code, command
            assert shown.stdout == "", command
            assert shown.stderr[:7] == "error: ", command
            assert "Traceback" not in finished.stderr + shown.stderr, command


@pytest.mark.parametrize(
    ("command", "hint"),
    (
        ("ls -b b", "`svc source ls -b BUCKET` or `svc bucket ls`"),
        ("rm a.md -b b --force", "`svc source rm SOURCE` or `svc bucket rm BUCKET`"),
        ("delete b", "`svc source rm SOURCE` or `svc bucket rm BUCKET`"),
        ("open a.md", "`svc console` or `svc source get SOURCE -o FILE`"),
        ("start", "`svc daemon start`"),
        ("stop", "`svc daemon stop`"),
        ("logs --tail 3", "`svc daemon logs`"),
        ("bucket list", "`svc bucket ls`"),
        ("source delete a.md -b b", "`svc source rm`"),
        ("key delete k", "`svc key revoke`"),
        ("key rm k", "`svc key revoke`"),
        ("config show", "`svc config list`"),
        ("uplaod", "`svc upload`"),
        ("buckets", "`svc bucket`"),
        ("restore x", "`svc-daemon restore`"),
        ("upload x --buckets b", "`svc upload --bucket`"),
        ("agent sett a", "`svc agent set`"),
        ("search -n 5 x", "`svc search -k`"),
        ("search x --limit 5", "`svc search -k`"),
        ("source ls -b b -n 5", "`svc source ls --limit`"),
        ("sync docs -b b -n", "`svc sync --dry-run`"),
        ("source rm a.md -b b -y", "`svc source rm --force`"),
    ),
)
def test_a_command_or_option_of_other_programs_is_a_usage_error_whose_hint_names_ours(
    command: str, hint: str, svc: RunSvc
) -> None:
    refused = svc(*command.split(), "--json")
    assert refused.failure == (2, "svc_usage"), refused.stdout
    assert refused.json["error"]["hint"] == f"did you mean {hint}?"
    assert "Possible options" not in refused.json["error"]["message"]
    assert refused.json["error"]["message"][-1] == "."


@pytest.mark.parametrize("command", ("upload -r docs -b b", "sync docs --recursive -b b", "watch add -R docs -b b"))
def test_an_option_with_which_other_programs_take_folders_is_said_to_be_needless(command: str, svc: RunSvc) -> None:
    refused = svc(*command.split(), "--json")
    assert refused.failure == (2, "svc_usage"), refused.stdout
    assert refused.json["error"]["hint"].endswith("out: a folder is taken with everything in it.")


@pytest.mark.parametrize("command", ("watch add a.md -b b", "ignore list a.md"))
def test_a_file_in_place_of_a_folder_is_said_to_be_one(command: str, svc: RunSvc) -> None:
    Path("a.md").write_text("moss")
    refused = svc(*command.split(), "--json")
    assert refused.failure == (5, "svc_path_not_found"), refused.stdout
    assert "a.md is a file, not a folder." in refused.json["error"]["message"]


@pytest.mark.parametrize(("name", "option"), (("search", "--exclude-vcs"), ("ask", "-z")))
def test_an_option_among_the_words_of_a_question_gets_the_hint_to_put_dashes_before_them(
    name: str, option: str, svc: RunSvc
) -> None:
    hint = svc(name, "tar", option, "gnu", "--json").json["error"]["hint"]
    assert hint == f"if {option} is one of the words, put `--` before them: `svc {name} -- …`."
    assert "`--` before" not in svc("upload", "--exclude-vcs", "--json").json["error"]["hint"]


@pytest.mark.parametrize(
    ("command", "message"),
    (
        ("completion", "Missing argument 'SHELL'. Choose from: bash, zsh, fish, powershell."),
        ("source ls -b b --status redy", "'redy' is not one of 'ready', 'all', "),
        ("upload x --wait redy", "'redy' is not one of 'ready', 'accepted'."),
        ("upload x -j many", "must be a whole number."),
        ("upload x -j 1.5", "must be a whole number."),
        ("search x -k 1_0", "must be a whole number."),
        ("search x -k ٣", "must be a whole number."),
        ("daemon logs -n +5", "must be a whole number."),
        ("eval x --min-recall 0_1", "must be a number."),
        ("wait x --timeout 1_0m", "takes a time such as 90s"),
        ("config set upload.jobs 1_0", "takes a whole number"),
        ("config set upload.jobs ²", "takes a whole number"),
        ("search x -k 0", "must be greater than or equal to 1."),
        ("search x -k 51", "must be less than or equal to 50."),
    ),
)
def test_a_usage_error_is_in_plain_words(command: str, message: str, svc: RunSvc) -> None:
    shown = svc(*command.split()).stderr
    assert message in shown
    assert not any(odd in shown for odd in ("Value error", "Input should", "unable to parse"))


def test_failure_in_ndjson_is_one_line(svc: RunSvc) -> None:
    finished = svc("upload", "missing.md", "-b", "b", "--ndjson")
    assert [json.loads(line)["exit_code"] for line in finished.stdout.splitlines()] == [5]


def test_bug_shows_a_traceback_only_with_debug(svc: RunSvc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("svc_cli.app.build", lambda: 1 // 0)
    finished = svc("bucket", "ls", "--json")
    assert finished.failure == (1, "svc_bug")
    assert "Traceback" not in finished.stderr
    assert "Traceback" in svc("bucket", "ls", "--debug").stderr


def test_config_folder_that_cannot_be_written_is_named_in_the_error(
    svc: RunSvc, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("SVC_CONFIG_DIR", str(tmp_path / "file" / "config"))
    finished = svc("config", "set", "bucket", "b", "--json")
    assert finished.failure == (2, "svc_file_refused")
    assert str(tmp_path / "file") in finished.json["error"]["message"]


@pytest.mark.parametrize(
    ("words", "shown"), {"--version": VERSION, "-V": VERSION, "--version --json": VERSION, "": "upload"}.items()
)
def test_version_flags_show_the_version_and_no_arguments_the_commands(words: str, shown: str, svc: RunSvc) -> None:
    finished = svc(*words.split())
    assert finished.exit == 0
    assert finished.stderr == ""
    assert shown in finished.stdout


def test_a_prompt_without_a_terminal_is_a_usage_error_that_names_the_flag(at_odd: RunSvc) -> None:
    finished = at_odd("auth", "login")
    assert finished.exit == 2
    assert "--key-file" in finished.stderr


def test_config_commands_set_get_list_and_unset_settings(svc: RunSvc) -> None:
    assert svc("config", "set", "bucket", "handbook", "--dry-run").exit == 0
    assert svc("config", "get", "bucket").stdout == ""
    assert [svc("config", "set", *each).exit for each in (("bucket", "handbook"), ("upload.jobs", "8"))] == [0, 0]
    assert svc("config", "get", "bucket").stdout == "handbook\n"
    (jobs,) = [each for each in svc("config", "list", "--json").json["settings"] if each["name"] == "upload.jobs"]
    assert jobs["value"] == 8
    assert Path(jobs["source"]).name == "config.toml"
    assert svc("config", "set", "bucket", "--unset").exit == 0
    assert svc("config", "get", "bucket", "--json").json["source"] == "default"


def test_quick_commands_do_not_import_heavy_modules(tmp_path: Path, odd: OddServer) -> None:
    odd.answer_health()
    odd.answers["GET /v1/buckets"] = (200, {"buckets": []}, {})
    odd.answers["POST /v1/search"] = (200, {"data": [], "warnings": []}, {})
    environ = environment(tmp_path, {"SVC_BASE_URL": odd.url, "SVC_API_KEY": "sk-test"})
    libraries = {"pydantic", "httpx", "httpcore", "rich", "asyncio", "sqlite3", "yaml", "watchdog"}
    for words, heavy in (
        ("--version", {"typer", "json", "http"}),
        ("--help", libraries | {"http", "ssl", "svc_cli.daemon.connections"}),
        ("config list", libraries),
        ("status --json", libraries | {"collector-off"}),
        ("status -b handbook --json --progress none", libraries),
        (" ".join(BUCKET_NAMES), libraries | {"typer", "svc_cli.app"}),
        ("search parental leave --mode keyword --json", libraries),
    ):
        script = (
            f"import gc, sys\nfrom svc_cli.main import main\nsys.argv = ['svc', *{words.split()}]\n"
            "try:\n    main()\nexcept SystemExit:\n    pass\n"
            "sys.stderr.write(' '.join([*sys.modules, *(['collector-off'] if not gc.isenabled() else [])]))\n"
        )
        command = [sys.executable, "-c", script]
        ended = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=True)
        assert heavy & set(ended.stderr.split()) == set(), words


def _run(installation: Installation, words: str, out: int, err: int = subprocess.PIPE) -> tuple[int, str]:
    """Run `svc`; return its exit code and its standard error, which is empty if `err` redirects it."""
    command = [sys.executable, "-m", "svc_cli", *words.split()]
    ended = subprocess.run(command, env=installation.environ, stdout=out, stderr=err, timeout=60, check=False)
    return ended.returncode, (ended.stderr or b"").decode()


def test_output_to_a_full_disk_exits_with_7_and_one_error_line(shared_installation: Installation) -> None:
    with Path("/dev/full").open("wb") as full:
        for words in ("--version", "--version --json", "--help", "config list", *("bucket ls", "bucket ls --ndjson")):
            code, err = _run(shared_installation, words, full.fileno())
            assert code == 7, words
            assert [line.partition(":")[0] for line in err.splitlines()] == ["error", "hint"], words
            assert "No space left on device" in err, words


def test_output_to_a_closed_pipe_exits_with_141_without_a_message(shared_installation: Installation) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    for words in ("--version", "--help", "config list", "completion bash"):
        assert _run(shared_installation, words, writer) == (141, ""), words
    os.close(writer)


def test_unwritable_stderr_does_not_change_the_exit_code(shared_installation: Installation) -> None:
    with Path("/dev/full").open("wb") as full:
        for words, code in (("config list", 0), ("no-such-command", 2)):
            assert _run(shared_installation, words, subprocess.DEVNULL, full.fileno())[0] == code


def test_closed_standard_stream_is_not_reported_as_a_bug(shared_installation: Installation) -> None:
    shared_installation.svc("bucket", "create", "kept")
    for closed, words, code in (
        *((">&-", "config path", 0), ("2>&-", "config path", 0), (">&- 2>&-", "config path", 0)),
        *(("<&-", "bucket rm kept", 2), ("<&-", "upload - --title a.md -b kept", 3), ("<&-", "auth login", 2)),
    ):
        command, environ = f"exec {sys.executable} -m svc_cli {words} {closed}", shared_installation.environ
        ended = subprocess.run(["sh", "-c", command], env=environ, capture_output=True, timeout=60, check=False)
        assert ended.returncode == code, (words, closed)
        assert b"--debug" not in ended.stderr, (words, closed)
        assert code or ended.stderr == b"", (words, closed)


#: HTTP statuses and error codes by exit code; RETRYABLE has those that are retryable.
ANSWERS = {
    Exit.FAILED: "400 empty_file, 413 file_too_large, 422 url_is_file, 402 agent_limit_reached, 405 method_not_allowed",
    Exit.DENIED: "401 invalid_project_key, 403 forbidden_project_key",
    Exit.MISSING: "404 bucket_not_found, 404 source_not_found",
    Exit.CONFLICT: "409 idempotency_key_conflict, 409 delete_blocked, 400 force_required, 409 bucket_slug_exists,"
    " 409 website_url_exists",
    Exit.TEMPORARY: "429 rag_quota_exceeded, 500 internal_error",
}
RETRYABLE = (
    "409 bucket_store_indexing_pending, 429 upload_rate_limited, 503 storage_full, 504 search_timeout,"
    " 408 request_timeout"
)


def test_error_answers_map_to_their_exit_codes() -> None:
    rows = [*((*each, False) for each in ANSWERS.items()), (Exit.TEMPORARY, RETRYABLE, True)]
    for expected, answers, retryable in rows:
        for status, code in map(str.split, answers.split(",")):
            error = ApiError(int(status), {"code": code, "message": "m", "retryable": retryable}, "req_1")
            found = (exit_for_answer(int(status), code, retryable), error.exit, error.envelope()["exit_code"])
            assert found == (expected, expected, int(expected)), code


def test_error_codes_of_the_client_start_with_svc() -> None:
    kinds: list[type[SvcError]] = [SvcError, *SvcError.__subclasses__()]
    assert [kind.code for kind in kinds if kind is not ApiError and not kind.code.startswith("svc_")] == []
    assert ApiError(502, {}).code == "svc_bad_answer"


def test_error_message_names_the_flag_instead_of_the_api_parameter() -> None:
    refused = ApiError(409, {"code": "delete_blocked", "message": "It is in use. force=true deletes it anyway."})
    assert refused.message == "It is in use. --force deletes it anyway."
