"""Every page of help can be found, reads as sentences, and shows commands that can be typed."""

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

from svc_cli.app import build
from svc_daemon.command import app as daemon_app
from tests.cli.consoles import RunSvc

DAILY = (
    "upload",
    "import",
    "sync",
    "diff",
    "watch",
    "status",
    "wait",
    "search",
    "ask",
    "bucket",
    "source",
    "watch run",
)


def _commands(command: Any, path: str, parent: Any = None) -> Iterator[tuple[str, Any, Any]]:
    """Each command and group below this one, with its context."""
    settings = {} if parent else {"help_option_names": ["-h", "--help"]}
    context = command.context_class(command, info_name=path.rsplit(maxsplit=1)[-1], parent=parent, **settings)
    yield path, command, context
    for name in command.list_commands(context) if hasattr(command, "list_commands") else []:
        yield from _commands(command.get_command(context, name), f"{path} {name}", context)


EVERY = [*_commands(build(), "svc"), *_commands(get_command(daemon_app), "svc-daemon")]
OF_SVC = [path for path, _, _ in EVERY if path.split()[0] == "svc"]


@pytest.mark.parametrize("path", OF_SVC)
def test_h_and_help_show_the_same_page(svc: RunSvc, path: str) -> None:
    words = path.split()[1:]
    pages = [svc(*words, "-h"), svc(*words, "--help"), svc("help", *words)]
    assert {page.exit for page in pages} == {0}
    assert len({page.stdout for page in pages}) == 1
    assert svc("help", *words, "--json").json == {"command": path, "help": pages[0].stdout.rstrip("\n")}


def test_help_of_a_misspelled_command_suggests_one(svc: RunSvc) -> None:
    for words, close in ((("serch",), "svc search"), (("source", "gett"), "svc source get")):
        refused = svc("help", *words, "--json")
        assert (refused.exit, f"`{close}`" in refused.json["error"]["hint"]) == (2, True)
    assert svc("help", "upload", "more").exit == 2


def _texts(path: str, command: Any) -> Iterator[tuple[str, str]]:
    """What a command and each of its parameters says of itself."""
    yield path, command.help or ""
    for parameter in command.params:
        if not getattr(parameter, "hidden", False):
            yield f"{path} {parameter.name}", parameter.help or ""


@pytest.mark.parametrize(("place", "text"), [pair for path, each, _ in EVERY for pair in _texts(path, each)])
def test_help_is_written_in_sentences(place: str, text: str) -> None:
    first = " ".join(text.split("\n\n", maxsplit=1)[0].split()).split("  [")[0]
    assert re.fullmatch(r"[A-Z].+[.]( .+)?", first), place
    assert len(first.split()) >= 3, place


@pytest.mark.parametrize("path", DAILY)
def test_daily_commands_show_examples(path: str) -> None:
    (command,) = [command for each, command, _ in EVERY if each == f"svc {path}"]
    assert len((command.epilog or "").splitlines()) >= 2


def _examples() -> Iterator[str]:
    for _, command, _ in EVERY:
        for line in (getattr(command, "epilog", None) or "").splitlines():
            yield from (part.strip() for part in re.split(r" \| | && | > | < |\"\$\(|\)\"", line) if "svc " in part)


@pytest.mark.parametrize("example", [each for each in _examples() if each.startswith("svc ")])
def test_an_example_can_be_typed(example: str) -> None:
    _, *words = shlex.split(example)
    root = build()
    context = root.make_context("svc", list(words), resilient_parsing=False)
    command, rest = root, words
    while hasattr(command, "list_commands"):
        name, command, rest = command.resolve_command(context, rest)
        assert command is not None, name
    assert command.make_context(name, list(rest), parent=context).params is not None


def test_words_of_a_search_and_a_question_need_no_quotes(svc: RunSvc) -> None:
    root = build()
    for name in ("search", "ask"):
        command = root.get_command(None, name)
        for words in (
            ["what", "is", "-b", "handbook", "exit", "code"],
            ["-b", "handbook", "what", "is", "exit", "code"],
            ["what", "is", "exit", "code", "--bucket", "handbook"],
        ):
            given = command.make_context(name, list(words)).params
            assert (" ".join(given["words"]), list(given["bucket"])) == ("what is exit code", ["handbook"])
        assert list(command.make_context(name, ["--", "-b", "x"]).params["words"]) == ["-b", "x"]
