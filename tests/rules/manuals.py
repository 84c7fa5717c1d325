"""The manual pages, made from the help of each command.

`python -m tests.rules.manuals` writes them to `man/`, from where they get into the wheel.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer

from svc_cli.app import build
from svc_cli.commands.help_pages import HELP_FLAGS, MORE, HelpfulGroup, write_common_options
from svc_daemon.command.main import app
from svc_daemon.wire.light.versions import VERSION
from tests.rules.modules import ROOT

COMMON = "Common options"
#: A row of the table of exit codes in the docs.
_EXIT = re.compile(r"^\| (\d+) \| ([^|]*) \|$", re.MULTILINE)


class Roff:
    """Takes what a command writes for its help, and keeps it as man(7) text."""

    #: Typer shortens texts to the width; the reader's program breaks the lines of a manual page.
    width = 100_000

    def __init__(self) -> None:
        self.lines: list[str] = []
        #: The options that every command has, which a page shows once.
        self.common: list[str] = []

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        self.lines += [".PP", rf"\fB{_escaped(prog)}\fR {_escaped(args)}"]

    def write_paragraph(self) -> None:
        self.lines.append(".PP")

    def write_text(self, text: str) -> None:
        if text == MORE:  # the page has these options itself
            self.lines.pop()
            return
        for paragraph in text.split("\n\n"):
            self.lines += [".PP", _escaped(" ".join(paragraph.split()))]

    def write(self, text: str) -> None:
        """Text whose lines must stay as they are, such as examples."""
        self.lines += [".nf", *(_escaped(line) for line in text.splitlines()), ".fi"]

    def write_heading(self, heading: str) -> None:
        self.lines += [".PP", rf"\fI{_escaped(heading)}\fR"]

    def write_dl(self, rows: Sequence[tuple[str, str]]) -> None:
        for term, explanation in rows:
            self.lines += [".TP", rf"\fB{_escaped(term)}\fR", _escaped(" ".join(explanation.split()))]

    @contextmanager
    def section(self, name: str) -> Iterator[None]:
        if name != COMMON:
            self.write_heading(f"{name}:")
            yield
            return
        lines, self.lines = self.lines, []
        yield
        self.lines, self.common = lines, self.lines

    @contextmanager
    def indentation(self) -> Iterator[None]:
        yield


def manual(program: str, command: Any, summary: str, exits: Sequence[tuple[str, str]], other: str) -> str:
    """The page of one program with all its commands, its exit codes, and the name of the other page."""
    roff = Roff()
    roff.lines += [f'.TH {program.upper()} 1 "" "svc {VERSION}" "svc manual"', ".SH NAME"]
    roff.lines += [rf"{_escaped(program)} \- {_escaped(summary)}", ".SH COMMANDS"]
    for path, each in _commands(program, command):
        roff.lines.append(f".SS {_escaped(path)}")
        each.format_help(each.context_class(each, info_name=path, **HELP_FLAGS), roff)
    if isinstance(command, HelpfulGroup):
        write_common_options(command.context_class(command, info_name=program, **HELP_FLAGS), roff)
    if roff.common:
        roff.lines += [f".SH {COMMON.upper()}", *roff.common]
    roff.lines.append(".SH EXIT STATUS")
    roff.write_dl(exits)
    roff.lines += [".SH SEE ALSO", _escaped(other)]
    return "\n".join(roff.lines) + "\n"


def _commands(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    """A command and all below it, with their paths."""
    yield path, command
    for name in command.list_commands(None) if hasattr(command, "list_commands") else []:
        inner = command.get_command(None, name)
        if not inner.hidden:
            yield from _commands(f"{path} {name}", inner)


def _escaped(text: str) -> str:
    escaped = text.replace("\\", "\\e").replace("-", r"\-").replace("`", r"\(ga").replace("…", "...")
    return rf"\&{escaped}" if escaped.startswith((".", "'")) else escaped


def manuals() -> dict[str, str]:
    """Each page by the name of its file."""
    exits = _EXIT.findall((ROOT / "docs/reference/errors.md").read_text(encoding="utf-8"))
    daemon = typer.main.get_command(app)
    return {
        "svc.1": manual(
            "svc", build(), "put files into buckets, and know when they are searchable", exits, "svc-daemon(1)"
        ),
        "svc-daemon.1": manual("svc-daemon", daemon, "run and administer the service of svc", exits, "svc(1)"),
    }


if __name__ == "__main__":
    for name, page in manuals().items():
        (ROOT / "man" / name).write_text(page, encoding="utf-8")
