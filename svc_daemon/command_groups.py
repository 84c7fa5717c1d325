"""Groups of `svc-daemon` commands, whose help shows a whole sentence for each command."""

from typing import Any

import typer
from typer.core import TyperGroup

from svc_daemon.wire.field_errors import plain


class CommandGroup(TyperGroup):
    """A group of commands whose help shows a whole sentence for each command."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; an invalid option is reported without the Python terms of Typer's message."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = plain(error.message)
            raise

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands with their sentences, wrapped to the width; Click would truncate the sentences."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, each.get_short_help_str(limit=1000)) for name, each in commands if each])


def new_group(name: str, help_text: str) -> typer.Typer:
    """Create a Typer app with plain-text help and without Typer's own completion options."""
    return typer.Typer(
        name=name,
        help=help_text,
        cls=CommandGroup,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
