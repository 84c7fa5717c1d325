"""`svc help`: shows the help of a command."""

from difflib import get_close_matches
from typing import Annotated

import typer

from svc_cli.commands.help_pages import HELP_FLAGS, write_common_options
from svc_cli.commands.invocations import Invocation, command, new_app
from svc_cli.errors import UsageError

app = new_app()


@command(app, "help", "svc help", "svc help source get", "svc help options")
def help_command(
    call: Invocation,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="COMMAND",
            help="The command, such as `source get`; or `options`, for those of every command.",
        ),
    ] = None,
) -> None:
    """Show the help of svc or of one of its commands, as `--help` does."""
    path, found = "svc", call.root
    context = found.context_class(found, info_name=path, **HELP_FLAGS)
    if words == ["options"]:
        formatter = context.make_formatter()
        formatter.write_text("Options that every command takes, before or after its name.")
        write_common_options(context, formatter)
        text = formatter.getvalue().rstrip("\n")
        call.console.show({"command": "svc options", "help": text}, lambda: text)
        return
    for word in words or []:
        names = found.list_commands(context) if hasattr(found, "list_commands") else []
        if word not in names:
            close = get_close_matches(word, names, n=1)
            hint = f"did you mean `{path} {close[0]}`?" if close else f"`svc help{path[3:]}` shows what there is."
            raise UsageError(f"There is no command `{path} {word}`.", hint=hint)
        found, path = found.get_command(context, word), f"{path} {word}"
        context = found.context_class(found, info_name=word, parent=context)
    text = found.get_help(context)
    call.console.show({"command": path, "help": text}, lambda: text)
