"""`svc console`: opens the console of the service in the browser, with a key of its own."""

from html import escape
from typing import Annotated

import typer

from svc_cli import private_files
from svc_cli.commands.invocations import Invocation, command, new_app
from svc_cli.errors import refused_by_system
from svc_daemon import paths

app = new_app()

#: Leads the browser to the console. The code is in this file, which only the user can read, and not in the arguments
#: of the browser's process, which every user of the machine can read.
PAGE = """<!doctype html>
<meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>svc console</title>
<meta http-equiv="refresh" content="0;url={url}">
<p>If the console does not open, run <code>svc console --print</code>.</p>
"""


@command(app, "console", "svc console", "svc console --print")
def console(
    call: Invocation,
    only_print: Annotated[
        bool, typer.Option("--print", help="Print the address instead of opening it; it works once, within a minute.")
    ] = False,
) -> None:
    """Open the console in the browser.

    The browser gets a key of its own, which may do what your key may do, for 12 hours or until your key is revoked.
    `svc key ls` shows it as `console`, and `svc key revoke` ends it.
    """
    with call.connected() as (client, connection):
        session = client.create_console_session()
        base_url = connection.destination.base_url
    url = f"{base_url.rstrip('/')}/console/#code={session['code']}"
    if only_print or not call.console.is_text:
        call.console.show({"url": url, "expires_at": session["expires_at"]}, lambda: url)
        return
    import webbrowser

    page = paths.state_dir(call.settings.environ) / "console.html"
    try:
        private_files.replace(page, PAGE.format(url=escape(url)))
    except OSError as error:
        raise refused_by_system(error, hint="`svc console --print` prints the address without a file") from error
    if not webbrowser.open(page.as_uri()):
        call.console.warn("no browser could be opened. `svc console --print` prints the address for one.")
        return
    call.console.message(f"opened {base_url.rstrip('/')}/console/; if nothing appears, try `svc console --print`")
