"""Completion scripts: the committed ones are current and work in the installed shells."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from svc_cli.app import build
from svc_cli.commands.machine.completion import FILES, SCRIPTS, grammar_of
from svc_cli.main import BUCKET_NAMES
from tests.acceptance.installations import Installation, environment
from tests.cli.odd_servers import OddServer
from tests.cli.terminals import RunSvc, write
from tests.rules.modules import ROOT

#: Prints the completions that bash offers for the given words.
_ASK_BASH = """
source completions/svc.bash
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_svc
printf '%s\\n' "${COMPREPLY[@]}"
"""
#: The same for zsh, whose completion builtins are replaced by functions that print their arguments.
_ASK_ZSH = """
compdef() { }
compadd() { shift; print -l -- "$@" }
_files() { print -- FILES }
_describe() { [[ $1 == -o ]] && shift; print -l -- ${(P)2%%:*} }
source completions/_svc
words=("$@")
CURRENT=$#
_svc
"""


def test_committed_scripts_are_current_and_svc_completion_prints_them(svc: RunSvc) -> None:
    grammar = grammar_of(build())
    for shell, script in SCRIPTS.items():
        committed = (ROOT / "completions" / FILES[shell]).read_text(encoding="utf-8")
        assert committed == script(grammar), f"svc completion {shell} > completions/{FILES[shell]}"
        assert f"svc {' '.join(BUCKET_NAMES)} " in committed
        printed = svc("completion", shell)
        assert printed.exit == 0
        assert printed.stdout == committed


@pytest.mark.parametrize(
    ("answer", "code", "shown"),
    (
        ((200, {"buckets": [{"slug": "handbook"}, {"slug": "notes"}]}, {}), 0, ("handbook\nnotes\n", "")),
        ((200, {"buckets": []}, {}), 0, ("", "")),
        (
            (401, {"error": {"code": "unauthenticated", "message": "No such key."}}, {}),
            4,
            ("", "error: No such key.\n"),
        ),
    ),
)
def test_fast_path_for_bucket_names_behaves_like_the_full_command(
    answer: tuple[int, dict[str, object]], code: int, shown: tuple[str, ...], tmp_path: Path, odd: OddServer
) -> None:
    environ = environment(tmp_path, {"SVC_BASE_URL": odd.url, "SVC_API_KEY": "sk-test"})
    odd.answer_health()
    odd.answers["GET /v1/buckets"] = answer
    for words in (BUCKET_NAMES, [*BUCKET_NAMES, "--quiet"]):
        command = [sys.executable, "-m", "svc_cli", *words]
        ended = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)
        assert ended.returncode == code, words
        assert (ended.stdout, ended.stderr) == shown, words


#: Incomplete command lines, and the completions that every shell offers for them.
OFFERED = {"up": "upload", "bucket ar": "archive", "upload --wait ": "ready accepted", "upload --no-cr": "--no-create"}
VERBS = "ls create set show archive export import rm"
#: By shell, the words that ask it for the completions of a line, and the lines with what it offers.
SHELLS: dict[str, tuple[Callable[[str], list[str]], dict[str, str]]] = {
    "bash": (
        lambda line: ["-c", _ASK_BASH, "bash", "svc", *line.split(" ")],
        OFFERED
        | {"bucket ": VERBS, "--progress p": "plain", "--json sea": "search", "completion z": "zsh"}
        | {"help opt": "options", "help bucket ": VERBS, "help bucket exp": "export"}
        | {"upload --title ": "", "upload ": ""},
    ),
    "fish": (
        lambda line: ["--no-config", "-c", f"source completions/svc.fish; complete --do-complete 'svc {line}'"],
        OFFERED,
    ),
    "zsh": (
        lambda line: ["-f", "-c", _ASK_ZSH, "zsh", "svc", *line.split(" ")],
        {"bucket ": VERBS, "upload --wait ": "ready accepted", "bucket rm -": "--force --wait"}
        | {"upload ": "FILES", "upload --title ": "FILES"},
    ),
}


@pytest.mark.parametrize(("shell", "line"), [(shell, line) for shell in SHELLS for line in SHELLS[shell][1]])
def test_shell_completes_commands_options_and_values(shell: str, line: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    ask, offers = SHELLS[shell]
    ended = subprocess.run([shell, *ask(line)], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    printed, offered = [each.split("\t")[0] for each in ended.stdout.splitlines()], offers[line].split(" ")
    # Options that every command has follow those of the command in zsh, and fish sorts its own way.
    assert sorted(printed[: len(offered)]) == sorted(offered)
    assert shell == "zsh" or len(printed) == len(offered)


def test_tab_completes_names_of_every_kind_and_never_what_a_shell_would_run(
    shared_installation: Installation, tmp_path: Path
) -> None:
    evil = "$(touch gone).md"
    for name in ("docs/leave.md", evil):
        write(tmp_path, name)
    svc, bucket = shared_installation.svc, "completed"
    assert svc("upload", ".", "-b", bucket, cwd=tmp_path).exit == 0
    assert svc("agent", "create", "tab-agent", "-b", bucket).exit == 0
    assert svc("watch", "add", str(tmp_path / "docs"), "-b", bucket, "--name", "tab-folder").exit == 0
    shared_installation.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    title, ids = f"{tmp_path.name}/docs/leave.md", svc("source", "ls", "-b", bucket, "--json").json["sources"]
    hidden = next(source["id"] for source in ids if evil in source["title"])
    key = svc("key", "ls", "--json").json["keys"][0]["id"]
    cells = {
        f"source show -b {bucket} ": {title, hidden},
        f"source rm -b {bucket} {tmp_path.name}": {title},
        f"search x -b {bucket} --agent tab": {"tab-agent"},
        "agent rm tab": {"tab-agent"},
        "key revoke key_": {key},
        "watch log tab": {"tab-folder"},
        "config get upload.j": {"upload.jobs"},
    }
    shells = {"bash": ("-c", _ASK_BASH, "bash"), "zsh": ("-f", "-c", _ASK_ZSH, "zsh")}
    for shell, words in shells.items():
        if shutil.which(shell) is None:
            continue
        for line, offered in cells.items():
            ended = shared_installation.run(shell, *words, "svc", *line.split(" "), cwd=ROOT)
            assert offered <= set(ended.stdout.splitlines()), (shell, line, ended)
            assert evil not in ended.stdout, (shell, line)
    assert svc("watch", "rm", "tab-folder").exit == 0
    gone = shared_installation.run(sys.executable, "-m", "svc_cli", "completion", "names", "source", "-b", "none")
    assert (gone.exit, gone.stdout, gone.stderr) == (0, "", "")


def test_svc_daemon_completes_its_commands_and_shows_their_help(shared_installation: Installation) -> None:
    shared_installation.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ask = """eval "$(svc-daemon completion bash)"; COMP_WORDS=(svc-daemon team cr); COMP_CWORD=2
    _svc_daemon_completion svc-daemon; printf '%s\\n' "${COMPREPLY[@]}" """
    ended = shared_installation.run("bash", "-c", ask)
    assert (ended.stdout, ended.stderr) == ("create\n", "")
    pages = [shared_installation.run("svc-daemon", *words) for words in (("help", "team"), ("team", "--help"))]
    assert pages[0].stdout == pages[1].stdout
    assert shared_installation.run("svc-daemon", "help", "none").exit == 2
