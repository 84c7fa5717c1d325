"""Formats the help of a command: its own options, a line about the common options, then examples.

Typer's own mixes the ten common options with those of the command, and folds examples into one paragraph, from which
they can't be copied. Only with rich does it group options, and loading that takes 85 ms of a processor, where the help
of `svc` takes 74 in all.
"""

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

from typer.core import TyperCommand, TyperGroup

from svc_cli.commands.parameters import Flags, convert_late
from svc_cli.errors import UsageError

#: Context settings for every command.
HELP_FLAGS: dict[str, Any] = {"help_option_names": ["-h", "--help"]}

#: Options of every command.
COMMON = frozenset(Flags.__dataclass_fields__) | {"help"}
#: Where the common options are explained.
MORE = "Every command also takes --json, -q, -v and others: svc help options"
#: Words of other programs for the commands of a group.
SYNONYMS = {
    "list": ("ls",),
    **dict.fromkeys(("delete", "remove", "del", "rm", "revoke"), ("rm", "revoke")),
    **dict.fromkeys(("update", "edit", "change", "rename", "mv", "tag"), ("set",)),
    **dict.fromkeys(("add", "new", "mkdir", "make"), ("create", "add")),
    **dict.fromkeys(("get", "info", "view", "describe", "show"), ("show", "list", "status")),
    **dict.fromkeys(("open", "download", "cp"), ("get",)),
    **dict.fromkeys(("cat", "read"), ("text", "show")),
    **dict.fromkeys(("log", "tail"), ("logs", "log")),
}
#: Options with which other programs take folders.
_WHOLE_FOLDERS = ("-r", "-R", "--recursive", "-a", "--archive")
#: Options of other programs, each with those that may be meant; the first that a command has is suggested.
_MEANT_OPTIONS = {
    "-n": ("-k", "--limit", "--lines", "--dry-run", "--names"),
    **dict.fromkeys(("--limit", "--top", "--top-k", "--count", "--max", "-l"), ("-k", "--limit", "--lines")),
    **dict.fromkeys(("-f", "-y", "--yes", "--overwrite"), ("--force", "--replace", "--follow")),
    **dict.fromkeys(("--delete", "--remove"), ("--prune", "--force")),
    **dict.fromkeys(("--format", "--output-format"), ("--json",)),
    **dict.fromkeys(("-o", "--out", "--file"), ("--output",)),
    **dict.fromkeys(_WHOLE_FOLDERS, ()),
}
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
        """Write arguments and options in sections, and where the common options are explained."""
        _write_parameters(self.get_params(ctx), ctx, formatter)

    def format_epilog(self, _ctx: Any, formatter: Any) -> None:
        write_examples(formatter, (self.epilog or "").splitlines())


class HelpfulGroup(TyperGroup):
    """A group of commands. Its epilog has the examples, one per line."""

    def get_params(self, ctx: Any) -> list[Any]:
        return convert_late(super().get_params(ctx))

    def collect_usage_pieces(self, _ctx: Any) -> list[str]:
        return ["[OPTIONS]", "COMMAND", "[ARGS]…"]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the arguments name. Raises UsageError if there is none, and suggests one."""
        names = self.list_commands(ctx)
        if args and args[0] not in names and not args[0].startswith("-"):
            meant = [name for name in SYNONYMS.get(args[0], ()) if name in names][:1]
            meant = meant or get_close_matches(args[0], names, n=1)
            hint = meant_by([f"{ctx.command_path} {name}" for name in meant])
            raise UsageError(
                f"There is no command {args[0]!r} in `{ctx.command_path}`.",
                hint=hint or f"`{ctx.command_path} --help` shows what there is.",
            )
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _write_parameters(self.get_params(ctx), ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_epilog(self, _ctx: Any, formatter: Any) -> None:
        write_examples(formatter, (self.epilog or "").splitlines())


def write_examples(formatter: Any, lines: Iterable[str]) -> None:
    """Write each example on one line, so that it can be copied."""
    if text := "".join(f"  {line}\n" for line in lines):
        with formatter.section("Examples"):
            formatter.write(text)


def write_common_options(ctx: Any, formatter: Any) -> None:
    """Write the options that every command takes. `ctx` is that of a command."""
    records = [each.get_help_record(ctx) for each in ctx.command.get_params(ctx) if each.name in COMMON]
    with formatter.section("Common options"):
        formatter.write_dl([record for record in records if record])


def meant_by(commands: Sequence[str]) -> str | None:
    """Return a hint that names the commands or options that may be meant; None if there are none."""
    return f"did you mean {' or '.join(f'`{each}`' for each in commands)}?" if commands else None


def meant_options(error: Exception, ctx: Any) -> list[str]:
    """Return the option that may be meant by one that a command doesn't have, with the command."""
    wanted = _MEANT_OPTIONS.get(getattr(error, "option_name", None) or "", getattr(error, "possibilities", None) or ())
    known = {name for each in ctx.command.get_params(ctx) for name in each.opts} if ctx and wanted else set[str]()
    return [f"{ctx.command_path} {name}" for name in wanted if name in known][:1]


def hint_of_words(error: Exception, ctx: Any) -> str | None:
    """Return how to ask for a word that begins with a dash, or that a command needs no option to take folders."""
    name = getattr(error, "option_name", None)
    if name in _WHOLE_FOLDERS and ctx is not None and ctx.info_name in ("upload", "sync", "diff", "run", "add"):
        return f"leave {name} out: a folder is taken with everything in it."
    takes_words = ctx is not None and any(each.name == "words" for each in ctx.command.get_params(ctx))
    return (
        f"if {name} is one of the words, put `--` before them: `{ctx.command_path} -- …`."
        if name and takes_words
        else None
    )


def _write_parameters(parameters: Iterable[Any], ctx: Any, formatter: Any) -> None:
    sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
    has_common = False
    for parameter in parameters:
        if parameter.param_type_name == "argument":
            sections["Arguments"].append((str(parameter.metavar), str(getattr(parameter, "help", ""))))
        elif parameter.name in COMMON:
            has_common = has_common or parameter.name != "help"
        elif record := parameter.get_help_record(ctx):
            sections["Options"].append((record[0], _RANGE.sub("", record[1])))
    for title, records in sections.items():
        if records:
            with formatter.section(title):
                formatter.write_dl(records)
    if has_common:
        formatter.write_paragraph()
        formatter.write_text(MORE)
