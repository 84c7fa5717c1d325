"""Commands of `svc-daemon`, and groups whose help shows a whole sentence for each command."""

from typing import Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from svc_daemon.wire.light.field_errors import UNSET_VARIABLE, find_fault_of_number, is_blank, plain


class Argument(TyperArgument):
    def process_value(self, ctx: Any, value: Any) -> Any:
        _refuse_blank(self, ctx, value)
        return super().process_value(ctx, value)


class Option(TyperOption):
    def process_value(self, ctx: Any, value: Any) -> Any:
        _refuse_blank(self, ctx, value)
        if fault := find_fault_of_number(value, self.type_descriptor.annotation):
            raise typer.BadParameter(fault, ctx, self)
        return super().process_value(ctx, value)


def _refuse_blank(parameter: TyperOption | TyperArgument, ctx: Any, value: Any) -> None:
    if is_blank(value):
        raise typer.BadParameter(f"is blank; {UNSET_VARIABLE}", ctx, parameter)


class Command(TyperCommand):
    """A command of `svc-daemon`."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters. Typer itself can't create those of another class."""
        parameters: list[Any] = super().get_params(ctx)
        for each in parameters:
            each.__class__ = Option if isinstance(each, TyperOption) else Argument
        return parameters

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the arguments for the usage line, optional ones in brackets. Typer would add braces."""
        arguments = [each for each in self.get_params(ctx) if each.param_type_name == "argument"]
        return ["[OPTIONS]", *(str(each.metavar) if each.required else f"[{each.metavar}]" for each in arguments)]


class CommandGroup(TyperGroup):
    """A group of commands whose help shows a whole sentence for each command."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command. Errors about options are reported without Python terms."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            # The error for a missing argument contains no message.
            error.message = error.message and plain(error.message)
            raise

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands with whole sentences, which Click would truncate."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, each.get_short_help_str(limit=1000)) for name, each in commands if each])


class CommandTyper(typer.Typer):
    """A Typer app whose commands are of the class `Command`."""

    def command(self, *args: Any, **options: Any) -> Any:
        return super().command(*args, **{"cls": Command, **options})


def new_group(name: str, help_text: str) -> typer.Typer:
    """Create a Typer app with plain-text help and without Typer's own completion options."""
    return CommandTyper(
        name=name,
        help=help_text,
        cls=CommandGroup,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
