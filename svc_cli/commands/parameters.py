"""Parameters that many commands share, and parameters whose defaults settings decide.

Typer always loads pydantic: 100 ms of a processor, longer than most commands run. Strings and missing values need no
conversion.
"""

from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperArgument, TyperOption

from svc_cli.errors import UsageError
from svc_daemon.wire.light.field_errors import UNSET_VARIABLE, find_fault_of_number, is_blank

ProgressStyle = Literal["auto", "bar", "plain", "none"]

#: Options that a blank value clears, words that may be anything, and what a list goes on after, which a script may not
#: have yet. Every other blank value is an error.
MAY_BE_BLANK = frozenset({"after", "description", "instructions", "role", "surface", "words"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """The common flags, as Typer declares options."""

    json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON value.")] = False
    ndjson: Annotated[bool, typer.Option("--ndjson", help="Print each result as it arrives, as a line of JSON.")] = (
        False
    )
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only results and errors.")] = False
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", "-v", help="List every file and source in the output, instead of grouping similar ones."
        ),
    ] = False
    progress: Annotated[
        ProgressStyle | None,
        typer.Option(
            help="Show progress as a bar, as plain lines, or not at all (none). Auto means a bar on a "
            "terminal, otherwise lines.  [default: auto]  [env: SVC_PROGRESS]"
        ),
    ] = None
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Connect to the service at this URL.  [env: SVC_BASE_URL]")
    ] = None
    no_autostart: Annotated[
        bool, typer.Option("--no-autostart", help="Fail if the local daemon is not running, instead of starting it.")
    ] = False
    no_input: Annotated[bool, typer.Option("--no-input", help="Never ask a question, even on a terminal.")] = False
    debug: Annotated[bool, typer.Option("--debug", help="Show a traceback when a command fails.")] = False

    def over(self, other: "Flags | None") -> "Flags":
        """Return these flags. Flags that are not set come from `other`, the flags given before the command."""
        if other is None:
            return self
        return Flags(**{each.name: getattr(self, each.name) or getattr(other, each.name) for each in fields(Flags)})


class LateOption(TyperOption):
    def process_value(self, ctx: Any, value: Any) -> Any:
        _refuse_blank(self, self.opts[0], value)
        if not _is_converted(self, ctx, value):
            return super().process_value(ctx, value)
        return self.callback(ctx, self, value) if self.callback else value


class LateArgument(TyperArgument):
    def process_value(self, ctx: Any, value: Any) -> Any:
        _refuse_blank(self, str(self.metavar), value)
        return value if _is_converted(self, ctx, value) else super().process_value(ctx, value)


def convert_late(parameters: list[Any]) -> list[Any]:
    """Make each parameter a LateArgument or LateOption, which Typer itself can't create."""
    for each in parameters:
        each.__class__ = LateArgument if isinstance(each, TyperArgument) else LateOption
    return parameters


def _refuse_blank(parameter: TyperOption | TyperArgument, name: str, value: Any) -> None:
    """Raise UsageError if a value is blank where that means nothing."""
    if parameter.name not in MAY_BE_BLANK and is_blank(value):
        raise UsageError(f"{name} is blank.", hint=UNSET_VARIABLE)


def _is_converted(parameter: TyperOption | TyperArgument, ctx: Any, value: Any) -> bool:
    """Whether Typer would leave this value as it is. Raises BadParameter for what only Python takes for a number."""
    kind = parameter.type_descriptor
    if isinstance(value, str) and (fault := find_fault_of_number(value, kind.annotation)):
        raise typer.BadParameter(fault, ctx, parameter)
    if parameter.required and not value:
        return False
    if isinstance(value, str):
        return kind.annotation is str or value in (kind.choices or ())
    return value is None or (kind.annotation == list[str] and all(isinstance(each, str) for each in value))
