"""Help pages: each can be shown, is written in sentences, and has examples that can be parsed."""

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

from svc_cli.app import build
from svc_cli.client.source_lookups import LEAST_LENGTH, is_id, is_whole_id
from svc_cli.commands.help_pages import MORE
from svc_cli.commands.parameters import Flags
from svc_daemon.command.main import app as daemon_app
from tests.cli.terminals import RunSvc

_ONE_WORD = "upload import sync diff watch status wait search ask bucket source"
DAILY = ["watch run", *_ONE_WORD.split()]


def _commands(command: Any, path: str, parent: Any = None) -> Iterator[tuple[str, Any]]:
    """Yield this command and each command and group below it, with its path."""
    settings = {} if parent else {"help_option_names": ["-h", "--help"]}
    context = command.context_class(command, info_name=path.rsplit(maxsplit=1)[-1], parent=parent, **settings)
    yield path, command
    for name in command.list_commands(context) if hasattr(command, "list_commands") else []:
        yield from _commands(command.get_command(context, name), f"{path} {name}", context)


EVERY = dict([*_commands(build(), "svc"), *_commands(get_command(daemon_app), "svc-daemon")])


def test_h_and_help_show_the_same_page(svc: RunSvc) -> None:
    for number, path in enumerate(path for path in EVERY if path.split()[0] == "svc"):
        words = path.split()[1:]
        # Every other page by each of the two.
        page = svc(*words, "-h" if number % 2 else "--help")
        assert page.exit == 0, path
        assert "...\n" not in page.stdout.split("Commands:")[-1], f"{path}: a sentence is cut off"
        assert svc("help", *words, "--json").json == {"command": path, "help": page.stdout.rstrip("\n")}
    assert svc("help", *words).stdout == svc(*words, "-h").stdout == svc(*words, "--help").stdout == page.stdout


def test_help_shows_the_own_options_and_one_line_about_the_common_ones(svc: RunSvc) -> None:
    pages = {name: svc("help", *name.split()).stdout for name in ("upload", "source get", "watch run", "daemon status")}
    for name, page in pages.items():
        assert [line for line in page.splitlines() if "--json" in line] == [MORE], name
        assert not re.search(r"--no-autostart|--debug|Common options", page), name
    common = svc("help", "options").stdout
    flags = [f"--{each.replace('_', '-')}" for each in Flags.__dataclass_fields__]
    assert [flag for flag in flags if flag not in common] == []
    assert svc("help", "options", "--json").json == {"command": "svc options", "help": common.rstrip("\n")}


def test_help_lists_the_commands_of_every_day_first(svc: RunSvc) -> None:
    page = svc("--help").stdout
    places = [page.index(f"\n{title}:\n") for title in ("Every day", "Manage", "More")]
    assert places == sorted(places)
    assert places[0] < page.index("\n  upload ") < page.index("\n  search ") < places[1] < page.index("\n  bucket ")
    assert page.index("\n  agent ") < places[2] < page.index("\n  daemon ")


def test_help_of_a_misspelled_command_suggests_one(svc: RunSvc) -> None:
    for words, close in ((("serch",), "svc search"), (("source", "gett"), "svc source get")):
        refused = svc("help", *words, "--json")
        assert refused.exit == 2
        assert f"`{close}`" in refused.json["error"]["hint"]
    assert svc("help", "upload", "more").exit == 2


def test_help_is_written_in_sentences() -> None:
    for path, command in EVERY.items():
        options = {option for parameter in command.params for option in parameter.opts}
        assert hasattr(command, "commands") or path.startswith("svc-daemon") or "--json" in options, path
        shown = [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]
        for name, text in [("", command.help), *((parameter.name, parameter.help) for parameter in shown)]:
            first = " ".join((text or "").split("\n\n", maxsplit=1)[0].split()).split("  [")[0]
            assert re.fullmatch(r"[A-Z].+[.]( .+)?", first), (path, name)
            assert len(first.split()) >= 3, (path, name)


def test_daily_commands_show_examples() -> None:
    assert [path for path in DAILY if len((EVERY[f"svc {path}"].epilog or "").splitlines()) < 2] == []


def test_examples_can_be_parsed() -> None:
    lines = [line for each in EVERY.values() for line in (getattr(each, "epilog", None) or "").splitlines()]
    parts = [part.strip() for line in lines for part in re.split(r" \| | && | > | < |\"\$\(|\)\"", line)]
    examples = [part for part in parts if part.startswith("svc ")]
    assert len(examples) > 2 * len(DAILY)
    for example in examples:
        command, rest = build(), shlex.split(example)[1:]
        context = command.make_context("svc", list(rest), resilient_parsing=False)
        while hasattr(command, "list_commands"):
            name, command, rest = command.resolve_command(context, rest)
            assert command is not None, (example, name)
        assert command.make_context(name, list(rest), parent=context).params is not None, example


def test_ids_in_examples_are_of_a_length_that_names_one_object() -> None:
    lines = [line for each in EVERY.values() for line in (getattr(each, "epilog", None) or "").splitlines()]
    words = [word for line in lines for word in line.split() if is_id(word, "(?:src|bat|key|evt)_")]
    assert any(word.startswith("bat_") for word in words)
    for word in words:
        assert len(word) >= len("src_") + LEAST_LENGTH, word
        # The service lists no batches, so that their ids can't be completed.
        assert not word.startswith("bat_") or is_whole_id(word, "bat_"), word


@pytest.mark.parametrize("name", ("search", "ask"))
def test_search_and_ask_accept_a_query_without_quotes(name: str) -> None:
    lines = ("what is -b handbook exit code", "-b handbook what is exit code", "what is exit code --bucket handbook")
    command = build().get_command(None, name)
    for line in lines:
        given = command.make_context(name, line.split()).params
        assert " ".join(given["words"]) == "what is exit code", line
        assert list(given["bucket"]) == ["handbook"], line
    assert list(command.make_context(name, ["--", "-b", "x"]).params["words"]) == ["-b", "x"]


def test_command_list_of_svc_daemon_shows_complete_sentences() -> None:
    groups = [command for path, command in EVERY.items() if path.startswith("svc-daemon") and command.callback is None]
    for group in [get_command(daemon_app), *groups]:
        for width in (60, 80, 120):
            context = group.make_context("svc-daemon", [], resilient_parsing=True, terminal_width=width)
            page = group.get_help(context)
            assert max(map(len, page.splitlines())) <= width
            for command in group.commands.values():
                assert " ".join(command.help.split("\n\n")[0].split()) in " ".join(page.split()), (width, command.name)
