"""`svc-daemon` as a user starts it: settings, exit codes, one line for each error."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from svc_daemon.wire.versions import API_RANGE, VERSION
from tests.acceptance.installations import Installation, environment

#: The name of stored bytes that nothing in the state has.
STRAY = f"src_{'0' * 26}"
FAILED, USAGE, NOT_FOUND, ADDRESS, LOCKED = 1, 2, 5, 12, 14


def run(root: Path, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run `svc-daemon` to its end: only for what ends by itself."""
    return subprocess.run(
        command_line(*arguments),
        env=environment(root, variables),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def command_line(*arguments: str) -> list[str]:
    """`svc-daemon` as it is started."""
    return [sys.executable, "-m", "svc_daemon", *arguments]


def test_the_release_is_printed(tmp_path: Path) -> None:
    ended = run(tmp_path, "version")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"{VERSION}\n", "")


def test_the_release_is_told_in_every_form(tmp_path: Path) -> None:
    assert json.loads(run(tmp_path, "version", "--json").stdout) == {"version": VERSION, "api": API_RANGE}
    flag = run(tmp_path, "--version")
    assert (flag.returncode, flag.stdout, flag.stderr) == (0, f"svc-daemon {VERSION}\n", "")


@pytest.mark.parametrize("words", [(), ("team", "create")])
def test_help_has_a_short_flag(tmp_path: Path, words: tuple[str, ...]) -> None:
    short, long = (run(tmp_path, *words, flag) for flag in ("-h", "--help"))
    assert short.returncode == 0
    assert short.stdout == long.stdout


WRONG = [
    ({"SVC_LISTEN": "7820"}, "SVC_LISTEN"),
    ({"SVC_LISTEN": "example.org:80"}, "SVC_LISTEN"),
    ({"SVC_LISTEN": "127.0.0.1:99999"}, "SVC_LISTEN"),
    ({"SVC_LIMIT_TAGS": "many"}, "SVC_LIMIT_TAGS"),
    ({"SVC_LIMIT_TAGS": "-1"}, "SVC_LIMIT_TAGS"),
    ({"SVC_LOG_LEVEL": "loud"}, "SVC_LOG_LEVEL"),
]


@pytest.mark.parametrize(("variables", "named"), WRONG)
def test_a_wrong_setting_is_one_line_that_names_it(tmp_path: Path, variables: dict[str, str], named: str) -> None:
    ended = run(tmp_path, "serve", **variables)
    assert (ended.returncode, ended.stdout) == (USAGE, "")
    assert ended.stderr.startswith("error: ")
    assert ended.stderr.count("\n") == 1
    assert named in ended.stderr
    assert not (tmp_path / "data").exists()


def test_an_address_that_is_taken_has_its_own_exit_code(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        ended = run(tmp_path, "serve", "--listen", address)
    assert ended.returncode == ADDRESS
    assert address in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_a_state_that_is_no_database_is_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    (folder / "state.db").write_bytes(os.urandom(8192))
    ended = run(tmp_path, "serve", "--listen", "127.0.0.1:0")
    assert ended.returncode == FAILED
    assert "Traceback" not in ended.stderr
    assert ended.stderr.splitlines()[-1].startswith("error: ")


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file stands where the folder should be")
    ended = run(tmp_path, "serve", "--listen", "127.0.0.1:0")
    assert ended.returncode == FAILED
    assert "Traceback" not in ended.stderr
    assert str(tmp_path / "data") in ended.stderr


def test_an_unknown_command_is_a_usage_error(tmp_path: Path) -> None:
    assert run(tmp_path, "fly").returncode == USAGE


def test_the_operators_verbs_name_what_is_missing(tmp_path: Path) -> None:
    for words in (("team", "create"), ("key", "create", "--preset", "read"), ("team", "ls", "blue")):
        assert run(tmp_path, *words).returncode == USAGE
    assert not (tmp_path / "data").exists()


def test_a_data_directory_that_is_a_file_is_one_json_value(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file stands where the folder should be")
    ended = run(tmp_path, "team", "create", "blue", "--json")
    told = json.loads(ended.stdout)
    assert (ended.returncode, told["exit_code"], told["error"]["code"]) == (FAILED, FAILED, "storage_full")
    assert str(tmp_path / "data") in told["error"]["message"]
    # As the table of codes has it.
    assert told["error"]["retryable"] is True
    assert ended.stderr.count("\n") == 1


def test_a_whole_directory_is_verified_with_exit_0(installation: Installation) -> None:
    installation.stop()
    ended = installation.verify()
    assert (ended.exit, ended.stderr) == (0, "")
    assert ended.stdout == f"{installation.files.root} is whole (0 sources, 0 blobs, 0 parts, 0 documents)\n"
    assert installation.verify("--json", "--read-data").json["whole"] is True


def test_problems_are_a_line_each_and_exit_1_until_they_are_mended(installation: Installation) -> None:
    installation.stop()
    (installation.files.blobs / STRAY).touch()
    ended = installation.verify()
    assert (ended.exit, ended.stdout.splitlines()[0]) == (
        1,
        f"I4: blob {STRAY} has no source, and no search index knows its bucket",
    )
    assert "1 problems in" in ended.stdout.splitlines()[1]
    (told,) = installation.verify("--json").json["problems"]
    assert told == {
        "invariant": "I4",
        "message": f"blob {STRAY} has no source, and no search index knows its bucket",
        "mend": "set_aside",
        "blob": STRAY,
    }
    mended = installation.verify("--repair")
    assert (mended.exit, mended.stdout.splitlines()[0]) == (
        0,
        f"mended I4: blob {STRAY} has no source, and no search index knows its bucket",
    )
    assert installation.verify().exit == 0


def test_a_directory_in_use_is_left_alone_with_exit_11(installation: Installation) -> None:
    ended = installation.verify("--json", "--repair")
    assert ended.exit == LOCKED
    assert (ended.json["error"]["code"], ended.json["exit_code"]) == ("svc_data_dir_locked", LOCKED)
    assert ended.stderr.startswith("error: Another process owns ")
    assert ended.stderr.count("\n") == 1
    assert installation.health() is not None


def test_a_directory_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    ended = run(tmp_path, "verify")
    assert (ended.returncode, ended.stdout) == (NOT_FOUND, "")
    assert str(tmp_path / "data") in ended.stderr
    error = json.loads(run(tmp_path, "verify", "--json").stdout)["error"]
    assert ended.stderr == f"error: {error['message']} {error['hint']}\n"
    assert "SVC_DATA_DIR" in error["hint"]
    assert not (tmp_path / "data").exists()
