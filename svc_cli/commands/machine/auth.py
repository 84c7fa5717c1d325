"""`svc auth …`: stores, removes and shows the API key."""

import getpass
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from svc_cli.client.api import Client
from svc_cli.commands.invocations import Invocation, command, new_app
from svc_cli.credentials import CredentialFile, ServiceAddress, check_key, find_key, origin_of, read_key
from svc_cli.daemon.probes import DaemonHealth, refuse_other_installation
from svc_cli.daemon.services import reach
from svc_cli.errors import ApiError, Declined, SvcError, UsageError
from svc_cli.exits import Exit
from svc_cli.render import fields

app = new_app("Log in and out with an API key, and show which key is in use.")


@command(app, "login", "svc auth login", "svc auth login --key-file - < key.txt")
def login(
    call: Invocation,
    key_file: Annotated[
        str | None,
        typer.Option("--key-file", metavar="PATH", help="Read the key from this file, or from standard input with -."),
    ] = None,
) -> None:
    """Check that the service accepts an API key, and store the key."""
    destination, health = _reach(call)
    if key_file == "-":
        key = check_key(sys.stdin.readline(), "standard input")
    elif key_file:
        key = read_key(Path(key_file).expanduser())
    elif call.may_ask():
        try:
            key = check_key(getpass.getpass(f"API key for {destination.origin}: "), "the answer")
        except EOFError:  # the user pressed Ctrl-D
            raise Declined("Nothing was stored.") from None
    else:
        hint = "give --key-file PATH, or --key-file - for standard input."
        raise UsageError("There is no terminal to ask for the key.", hint=hint)
    with Client(destination.base_url, key, certificate=destination.certificate, proof=destination.proof) as client:
        team = find_team(client)
    stored = CredentialFile(call.settings.environ)
    stored.store(destination.origin, key, health.installation_id, is_local=destination.proof is not None)
    value = {"origin": destination.origin, "team_id": team, "stored_in": str(stored.path)}
    call.console.show(value, lambda: f"stored a key for {destination.origin} (team {team})")


def find_team(client: Client) -> str | None:
    """Return the id of the key's team. Raises ApiError if the service does not accept the key."""
    try:
        return client.buckets(members=False).get("team_id")
    except ApiError as error:
        if error.code != "forbidden_project_key":
            raise
        # A key that may only ask questions, for example, is accepted too.
        return client.limits().get("team_id")


@command(app, "logout")
def logout(call: Invocation) -> Exit:
    """Delete the stored API key for the service in use."""
    url = call.settings.get("base_url", call.flags.base_url) or _reach(call)[0].base_url
    origin = origin_of(url)
    removed = CredentialFile(call.settings.environ).forget(origin)
    said = f"forgot the key for {origin}" if removed else f"no key was stored for {origin}"
    call.console.show({"origin": origin, "removed": removed}, lambda: said)
    return Exit.DONE


@command(app, "status")
def status(call: Invocation) -> Exit:
    """Show which service and API key are in use, and whether the service accepts the key."""
    with call.connected() as (client, connection):
        facts: dict[str, Any] = {
            "base_url": connection.destination.base_url,
            "installation_id": connection.health.installation_id,
            "key": connection.credential.masked,
            "key_source": connection.credential.source,
        }
        try:
            facts |= {"accepted": True, "team_id": find_team(client)}
        except SvcError as error:
            facts |= {"accepted": False, **error.envelope()}
            call.console.show(facts, lambda: _text(call, facts))
            call.console.fail(error)
            return error.exit
    call.console.show(facts, lambda: _text(call, facts))
    return Exit.DONE


def _text(call: Invocation, facts: dict[str, Any]) -> str:
    return fields(
        call.console,
        [
            ("service", facts["base_url"]),
            ("key", f"{facts['key']} from {facts['key_source']}"),
            ("accepted", facts["accepted"]),
            ("team", facts.get("team_id")),
        ],
    )


@command(app, "token", 'curl -H "Authorization: Bearer $(svc auth token)" http://127.0.0.1:7820/v1/buckets')
def token(call: Invocation) -> None:
    """Print the API key in use, for scripts."""
    destination, health = _reach(call)
    credential = find_key(call.settings.environ, destination)
    refuse_other_installation(credential, health, destination.origin)
    value = {"token": credential.key, "source": credential.source, "base_url": destination.base_url}
    call.console.show(value, lambda: credential.key)


def _reach(call: Invocation) -> tuple[ServiceAddress, DaemonHealth]:
    """Find the service in use, whether or not it accepts the key."""
    autostart = not call.flags.no_autostart
    destination, health, _ = reach(call.settings, call.console, base_url=call.flags.base_url, autostart=autostart)
    return destination, health
