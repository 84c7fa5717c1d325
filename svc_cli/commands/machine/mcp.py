"""`svc mcp`: an MCP server on standard input and output."""

import asyncio
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from svc_cli import interrupts
from svc_cli.commands.invocations import Invocation, command, new_app
from svc_cli.console import is_terminal
from svc_cli.errors import UsageError
from svc_daemon.wire.light.extras import install_command

app = new_app()


@command(app, "mcp", "svc mcp", "svc mcp --allow ~/Documents")
def mcp(
    call: Invocation,
    allow: Annotated[
        list[Path] | None,
        typer.Option("--allow", metavar="DIR", help="Allow the upload tools to read files in this folder; repeatable."),
    ] = None,
) -> None:
    """Serve the tools of svc over MCP (Model Context Protocol), on standard input and output.

    An MCP client, such as an AI assistant, starts this command. The tools use your API key to upload files, check
    whether they are ready, list buckets, search and ask. Without --allow, they can't read local files.
    """
    if not call.console.is_text:
        raise UsageError("`svc mcp` needs standard output for MCP.", hint="leave out --json.")
    # Raise the error about an untrusted address now, and not at each call of a tool.
    call.settings.find("base_url", call.flags.base_url)
    try:
        from svc_daemon.tools import servers
    except ModuleNotFoundError as error:
        raise UsageError(
            "svc was installed without its extra for MCP.",
            code="svc_extra_not_installed",
            hint=f"Run {install_command('mcp')} in the environment in which svc is installed.",
            details={"extra": "mcp"},
        ) from error
    from svc_cli.mcp.api_calls import run_tool
    from svc_cli.mcp.folders import Folders

    folders = Folders(allow or [])
    if is_terminal(sys.stdin):
        call.console.note("programs that speak MCP start this command, as in docs/how-to/agents.md. Ctrl-D ends it.")
    # The reading thread can't be interrupted, so let Ctrl-C end the process at once.
    interrupts.catch(signal.SIG_DFL)
    listed = servers.list_tools(takes_paths=bool(folders))
    try:
        asyncio.run(servers.serve_stdio(servers.build_server(listed, partial(run_tool, call.client, folders))))
    except ExceptionGroup as failed:
        if failed.subgroup(BrokenPipeError):
            raise BrokenPipeError from failed
        raise
