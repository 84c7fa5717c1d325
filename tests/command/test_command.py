"""`svc-daemon` on the command line: settings, exit codes, and errors of one line."""

import socket
import subprocess
import sys
from pathlib import Path

from svc_daemon.wire.light.versions import API_RANGE, VERSION
from tests.acceptance.installations import Finished, Installation
from tests.cli.terminals import HIDDEN

#: The name of a stored blob that has no source.
STRAY = f"src_{'0' * 26}"
FAILED, USAGE, NOT_FOUND, ADDRESS, LOCKED = 1, 2, 5, 12, 14


def run(root: Path, *arguments: str, **variables: str) -> Finished:
    """Run a `svc-daemon` command that ends by itself, and return its result."""
    return Installation(root, **variables).operate(*arguments)


def test_version_is_printed_by_the_command_the_flag_and_json(tmp_path: Path) -> None:
    for words, printed in ((("version",), f"{VERSION}\n"), (("--version",), f"svc-daemon {VERSION}\n")):
        command = [sys.executable, "-m", "svc_daemon", *words]
        ended = subprocess.run(command, env=Installation(tmp_path).environ, capture_output=True, text=True, check=True)
        assert (ended.stdout, ended.stderr) == (printed, "")
    assert run(tmp_path, "version", "--json").json == {"version": VERSION, "api": API_RANGE}


def test_invalid_option_value_is_reported_in_plain_words(tmp_path: Path) -> None:
    refused = run(tmp_path, "serve", "--role", "nonsense")
    assert (refused.exit, "'nonsense' is not one of 'all'" in refused.stderr) == (USAGE, True)
    assert "Value error" not in refused.stderr
    refused = run(tmp_path, "backup", "--keep", "0_1", str(tmp_path / "backups"))
    assert (refused.exit, "must be a whole number" in refused.stderr) == (USAGE, True)


def test_invalid_setting_fails_with_one_line_that_names_it(tmp_path: Path) -> None:
    for name, value in (
        *(("SVC_LISTEN", "7820"), ("SVC_LISTEN", "example.org:80"), ("SVC_LISTEN", "127.0.0.1:99999")),
        *(("SVC_LIMIT_TAGS", "0_1"), ("SVC_LIMIT_TAGS", " 1"), ("SVC_LISTEN", "127.0.0.1:78_20")),
        *(("SVC_LIMIT_TAGS", "many"), ("SVC_LIMIT_TAGS", "-1"), ("SVC_LOG_LEVEL", "loud")),
        ("SVC_DATA_DIR", "~nobody-of-this-name/data"),
    ):
        ended = run(tmp_path, "serve", **{name: value})
        assert (ended.exit, ended.stdout, ended.stderr.count("\n")) == (USAGE, "", 1), (name, value)
        assert ended.stderr.startswith("error: ")
        assert name in ended.stderr
    assert not (tmp_path / "data").exists()


def test_installation_that_never_started_is_backed_up_whole(tmp_path: Path) -> None:
    assert run(tmp_path, "team", "create", "blue").exit == 0
    made = run(tmp_path, "backup", str(tmp_path / "backups"), "--json")
    assert (made.exit, made.json["problems"]) == (0, [])


def test_check_warns_of_a_misspelled_setting(tmp_path: Path) -> None:
    ended = run(tmp_path, "serve", "--check", SVC_ALLOWED_HOST="svc.example.com")
    warning = "warning: SVC_ALLOWED_HOST has no effect: SVC_ALLOWED_HOSTS is probably meant.\n"
    assert (ended.exit, ended.stderr) == (0, warning)


def test_address_in_use_has_its_own_exit_code(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        ended = run(tmp_path, "serve", "--listen", address)
    assert (ended.exit, ended.stderr.count("\n")) == (ADDRESS, 1)
    assert (address in ended.stderr, "SVC_LISTEN" in ended.stderr) == (True, True)


def test_data_directory_that_is_a_file_fails_without_a_traceback_or_as_one_json_value(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.write_text("a file in place of the folder")
    ended = run(tmp_path, "serve", "--listen", "127.0.0.1:0")
    assert (ended.exit, "Traceback" in ended.stderr, str(folder) in ended.stderr) == (FAILED, False, True)
    ended = run(tmp_path, "team", "create", "blue", "--json")
    error = ended.json["error"]
    assert (ended.exit, ended.json["exit_code"], error["code"]) == (FAILED, FAILED, "storage_full")
    # As in the table of error codes.
    assert (error["retryable"], str(folder) in error["message"]) == (True, True)
    assert ended.stderr.count("\n") == 1


def test_output_escapes_control_and_bidirectional_characters(tmp_path: Path) -> None:
    odd = "/".join(HIDDEN)  # the name of a folder is short
    for words in (("verify",), ("verify", "--json")):
        ended = run(tmp_path, *words, SVC_DATA_DIR=str(tmp_path / odd))
        assert (ended.exit, set(HIDDEN) & set(ended.stdout + ended.stderr)) == (NOT_FOUND, set()), words
    assert odd in ended.json["error"]["message"]


def test_verify_prints_one_line_per_problem_until_it_is_repaired(installation: Installation) -> None:
    installation.stop()
    whole = installation.verify()
    assert (whole.exit, whole.stderr) == (0, "")
    assert whole.stdout == f"{installation.files.root} is whole (0 sources, 0 blobs, 0 parts, 0 documents)\n"
    assert installation.verify("--json", "--read-data").json["whole"] is True
    (installation.files.blobs / STRAY).touch()
    problem = f"blob {STRAY} has no source, and no search index knows its bucket"
    ended = installation.verify()
    line, summary = ended.stdout.splitlines()[:2]
    assert (ended.exit, line, "1 problems in" in summary) == (FAILED, f"I4: {problem}", True)
    (found,) = installation.verify("--json").json["problems"]
    assert found == {"invariant": "I4", "message": problem, "repair": "set_aside", "blob": STRAY}
    repaired = installation.verify("--repair")
    assert (repaired.exit, repaired.stdout.splitlines()[0]) == (0, f"repaired I4: {problem}")
    assert installation.verify().exit == 0


def test_verify_of_a_data_directory_in_use_exits_as_locked(installation: Installation) -> None:
    ended = installation.verify("--json", "--repair")
    assert (ended.exit, ended.json["exit_code"], ended.json["error"]["code"]) == (LOCKED, LOCKED, "svc_data_dir_locked")
    assert ended.stderr.startswith("error: Another process is using ")
    assert ended.stderr.count("\n") == 1
    assert installation.health() is not None
