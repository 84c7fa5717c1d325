"""Completion scripts: current, and right in the shells that are here."""

import shutil
import subprocess
from pathlib import Path

import pytest

from svc_cli.app import build
from svc_cli.commands.completion_scripts import FILES, SCRIPTS
from svc_cli.commands.completion_words import grammar_of
from tests.cli.consoles import RunSvc
from tests.rules.modules import ROOT

#: Prints what bash would offer behind the words it is given.
_ASK_BASH = """
source completions/svc.bash
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_svc
printf '%s\\n' "${COMPREPLY[@]}"
"""
#: The same for zsh, with its completion builtins printing what they are given.
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
_ASK_FISH = "source completions/svc.fish; complete --do-complete 'svc {}'"


def _shell(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name} here")
    return found


def _run(*command: str) -> list[str]:
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    return ended.stdout.splitlines()


@pytest.mark.parametrize("shell", SCRIPTS)
def test_the_committed_script_is_current(shell: str) -> None:
    committed = (ROOT / "completions" / FILES[shell]).read_text(encoding="utf-8")
    assert committed == SCRIPTS[shell](grammar_of(build())), f"svc completion {shell} > completions/{FILES[shell]}"


@pytest.mark.parametrize("shell", SCRIPTS)
def test_the_command_prints_it(svc: RunSvc, shell: str) -> None:
    printed = svc("completion", shell)
    assert (printed.exit, printed.stdout) == (0, (ROOT / "completions" / FILES[shell]).read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("shell", "check"), [("bash", ("bash", "-n")), ("zsh", ("zsh", "-n")), ("fish", ("fish", "--no-execute"))]
)
def test_the_shell_itself_can_read_it(shell: str, check: tuple[str, str]) -> None:
    _run(_shell(check[0]), check[1], str(Path("completions", FILES[shell])))


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("svc", "up"), ["upload"]),
        (("svc", "bucket", ""), ["ls", "create", "set", "show", "archive", "rm"]),
        (("svc", "bucket", "ar"), ["archive"]),
        (("svc", "upload", "--wait", ""), ["ready", "accepted"]),
        (("svc", "upload", "--no-cr"), ["--no-create"]),
        (("svc", "--progress", "p"), ["plain"]),
        (("svc", "--json", "sea"), ["search"]),
        (("svc", "completion", "z"), ["zsh"]),
        (("svc", "upload", "--title", ""), [""]),
        (("svc", "upload", ""), [""]),
    ],
)
def test_bash_offers_what_may_stand_there(words: tuple[str, ...], offered: list[str]) -> None:
    assert _run(_shell("bash"), "-c", _ASK_BASH, "bash", *words) == offered


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("up", ["upload"]),
        ("bucket ar", ["archive"]),
        ("upload --wait ", ["accepted", "ready"]),
        ("upload --no-cr", ["--no-create"]),
    ],
)
def test_fish_offers_what_may_stand_there(line: str, offered: list[str]) -> None:
    printed = _run(_shell("fish"), "--no-config", "-c", _ASK_FISH.format(line))
    assert sorted(each.split("\t")[0] for each in printed) == offered


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("svc", "bucket", ""), ["ls", "create", "set", "show", "archive", "rm"]),
        (("svc", "upload", "--wait", ""), ["ready", "accepted"]),
        (("svc", "upload", ""), ["FILES"]),
        (("svc", "upload", "--title", ""), ["FILES"]),
        (("svc", "bucket", "rm", "-"), ["--force", "--wait"]),
    ],
)
def test_zsh_offers_what_may_stand_there(words: tuple[str, ...], offered: list[str]) -> None:
    assert _run(_shell("zsh"), "-f", "-c", _ASK_ZSH, "zsh", *words)[: len(offered)] == offered


def test_every_place_of_the_command_line_is_known() -> None:
    places = {place.path: place for place in grammar_of(build())}
    assert {"svc", "svc upload", "svc bucket", "svc bucket ls", "svc daemon logs"} <= set(places)
    assert all(flag.help for place in places.values() for flag in place.flags)
