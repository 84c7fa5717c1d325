"""Standard output that takes nothing, and standard error that does not: one line, and no traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from svc_cli.errors import ApiError
from tests.acceptance.installations import Installation, environment
from tests.cli.consoles import RunSvc

VERSION = ("--version",)


def _run(environ: dict[str, str], *words: str, out: int, err: int = subprocess.PIPE) -> tuple[int, str]:
    ended = subprocess.run(
        [sys.executable, "-m", "svc_cli", *words], env=environ, stdout=out, stderr=err, timeout=60, check=False
    )
    return ended.returncode, (ended.stderr or b"").decode()


@pytest.mark.parametrize(
    "words", [VERSION, ("--version", "--json"), ("--help",), ("config", "list"), ("config", "path")]
)
def test_a_full_disk_behind_standard_output_is_one_line(tmp_path: Path, words: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        code, err = _run(environment(tmp_path, {}), *words, out=full.fileno())
    assert code == 2
    assert [line.partition(":")[0] for line in err.splitlines()] == ["error", "hint"], err
    assert "No space left on device" in err


@pytest.mark.parametrize("form", [(), ("--json",), ("--ndjson",)])
def test_a_list_that_cannot_be_written_is_one_line(shared_installation: Installation, form: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        code, err = _run(shared_installation.environ, "bucket", "ls", *form, out=full.fileno())
    assert (code, len(err.splitlines())) == (2, 2), err


@pytest.mark.parametrize("words", [VERSION, ("--help",), ("config", "list")])
def test_nobody_who_reads_is_quiet(tmp_path: Path, words: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        assert _run(environment(tmp_path, {}), *words, out=writer) == (141, "")
    finally:
        os.close(writer)


def test_talk_that_cannot_be_written_fails_nothing(tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        environ = environment(tmp_path, {})
        assert _run(environ, "config", "list", out=subprocess.DEVNULL, err=full.fileno())[0] == 0
        assert _run(environ, "no-such-command", out=subprocess.DEVNULL, err=full.fileno())[0] == 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("source", "ls", "-b", "b", "--status", "redy"), "'redy' is not one of 'ready', 'all', "),
        (("upload", "x", "--wait", "redy"), "'redy' is not one of 'ready', 'accepted'."),
        (("upload", "x", "-j", "many"), "must be a whole number."),
        (("search", "x", "-k", "0"), "must be greater than or equal to 1."),
        (("search", "x", "-k", "1000"), "must be less than or equal to 50."),
    ],
)
def test_a_usage_error_is_in_plain_words(svc: RunSvc, words: tuple[str, ...], told: str) -> None:
    ended = svc(*words)
    assert ended.exit == 2
    assert told in ended.stderr
    for odd in ("Value error", "Input should", "unable to parse"):
        assert odd not in ended.stderr


def test_a_refusal_names_the_flag_and_not_the_parameter() -> None:
    refused = ApiError(409, {"code": "delete_blocked", "message": "It is in use. force=true deletes it all the same."})
    assert refused.message == "It is in use. --force deletes it all the same."


@pytest.mark.parametrize(
    ("words", "code"),
    [(("bucket", "rm", "kept"), 2), (("upload", "-", "--title", "a.md", "-b", "kept"), 3), (("auth", "login"), 2)],
)
def test_a_closed_standard_input_is_an_empty_one(
    shared_installation: Installation, words: tuple[str, ...], code: int
) -> None:
    shared_installation.svc("bucket", "create", "kept")
    closed = ["bash", "-c", 'exec "$@" <&-', "bash", sys.executable, "-m", "svc_cli", *words]
    ended = subprocess.run(
        closed, env=shared_installation.environ, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, "--debug" in ended.stderr) == (code, False), ended.stderr
