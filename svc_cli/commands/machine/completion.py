"""`svc completion`: prints a shell's completion script."""

from typing import Annotated, Literal

import typer

from svc_cli.commands.invocations import Invocation, command, new_app
from svc_cli.commands.machine.completion_scripts import SCRIPTS, grammar_of

app = new_app()


@command(
    app, "completion", 'eval "$(svc completion bash)"', "svc completion fish > ~/.config/fish/completions/svc.fish"
)
def completion(
    call: Invocation,
    shell: Annotated[
        Literal["bash", "zsh", "fish", "powershell"],
        typer.Argument(metavar="SHELL", help="The shell: bash, zsh, fish or powershell."),
    ],
) -> None:
    """Print the script that completes svc commands in a shell.

    bash: add this line to ~/.bashrc: eval "$(svc completion bash)"

    zsh: add this line to ~/.zshrc, after compinit: eval "$(svc completion zsh)"

    fish: run svc completion fish > ~/.config/fish/completions/svc.fish

    PowerShell: add this line to $PROFILE: svc completion powershell | Out-String | Invoke-Expression
    """
    script = SCRIPTS[shell](grammar_of(call.root))
    call.console.show({"shell": shell, "script": script}, lambda: script.rstrip("\n"))
