"""Formats the help of a command: its own options, the common options, then examples.

Typer's own mixes the ten common options with those of the command, and folds examples into one paragraph, from which
they can't be copied. Only with rich does it group options, and loading that takes 85 ms of a processor, where the help
of `svc` takes 74 in all.
"""

import re
from collections.abc import Iterable
from typing import Any

from typer.core import TyperCommand, TyperGroup

from svc_cli.commands.parameters import Flags, convert_late

#: Context settings for every command.
HELP_FLAGS: dict[str, Any] = {"help_option_names": ["-h", "--help"]}

#: Options of every command.
COMMON = frozenset(Flags.__dataclass_fields__) | {"help"}
#: A range as Typer shows it, such as `[1<=x<=50]`.
_RANGE = re.compile(r"  \[[^\[\]]*[<>]=?[^\[\]]*\]$")


class HelpfulCommand(TyperCommand):
    """A command. Its epilog has the examples, one per line."""

    def get_params(self, ctx: Any) -> list[Any]:
        return convert_late(super().get_params(ctx))

    def get_short_help_str(self, limit: int = 0) -> str:  # noqa: ARG002 - the list of commands wraps its lines
        """Return the first sentence of the help, however long."""
        return super().get_short_help_str(limit=1000)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the arguments for the usage line, optional ones in brackets."""
        pieces = ["[OPTIONS]"]
        for each in self.get_params(ctx):
            if each.param_type_name == "argument":
                name = f"{each.metavar}{'…' if each.nargs != 1 else ''}"
                pieces.append(name if each.required else f"[{name}]")
        return pieces

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, options and common options in sections."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": [], "Common options": []}
        for parameter in self.get_params(ctx):
            if parameter.param_type_name == "argument":
                sections["Arguments"].append((str(parameter.metavar), str(getattr(parameter, "help", ""))))
            elif record := parameter.get_help_record(ctx):
                section = "Common options" if parameter.name in COMMON else "Options"
                sections[section].append((record[0], _RANGE.sub("", record[1])))
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def format_epilog(self, _ctx: Any, formatter: Any) -> None:
        write_examples(formatter, (self.epilog or "").splitlines())


class HelpfulGroup(TyperGroup):
    """A group of commands. Its epilog has the examples, one per line."""

    def get_params(self, ctx: Any) -> list[Any]:
        return convert_late(super().get_params(ctx))

    def format_epilog(self, _ctx: Any, formatter: Any) -> None:
        write_examples(formatter, (self.epilog or "").splitlines())


def write_examples(formatter: Any, lines: Iterable[str]) -> None:
    """Write each example on one line, so that it can be copied."""
    if text := "".join(f"  {line}\n" for line in lines):
        with formatter.section("Examples"):
            formatter.write(text)
