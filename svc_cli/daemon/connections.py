"""Connects a command to the configured service, with the API key for it."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from svc_cli.console import Console
from svc_cli.credentials import Credential, ServiceAddress, find_key
from svc_cli.daemon.probes import DaemonHealth, refuse_other_installation
from svc_cli.daemon.process import Installation
from svc_cli.daemon.services import reach
from svc_cli.deadlines import Deadline
from svc_cli.interrupts import shielded
from svc_cli.settings import CliSettings
from svc_daemon.wire.light.local_daemons import digest_settings

if TYPE_CHECKING:
    from svc_cli.client.api import Client

LIMIT_PREFIX = "SVC_LIMIT_"


class ServiceConnection(NamedTuple):
    """The address of a verified service, and the key to send to it."""

    destination: ServiceAddress
    health: DaemonHealth
    credential: Credential
    #: Whether this run of `svc` started the daemon, so that both have the same environment variables.
    is_new: bool = False


@contextmanager
def connected(
    settings: CliSettings,
    console: Console,
    *,
    base_url: str | None = None,
    autostart: bool = True,
    deadline: Deadline | None = None,
) -> Iterator[tuple["Client", ServiceConnection]]:
    """Yield a client for the configured service, which has to end by the deadline; it is closed when the block ends.

    Raises the errors of `reach`, and NotAuthenticated if there is no key for this installation.
    """
    with ExitStack() as stack:
        destination, health, is_new = reach(
            settings, console, base_url=base_url, autostart=autostart, deadline=deadline, stack=stack
        )
        credential = find_key(settings.environ, destination, is_node=bool(health.answer.get("engines")))
        refuse_other_installation(credential, health, destination.origin)
        console.unproven_service = None if destination.proof else destination.origin
        # Python may lose a KeyboardInterrupt that is raised during an import.
        with shielded():
            from svc_cli.client.api import Client

        client = stack.enter_context(
            Client(
                destination.base_url,
                credential.key,
                service=health.installation_id,
                certificate=destination.certificate,
                proof=destination.proof,
                connection=health.connection,
            )
        )
        client.deadline = deadline or client.deadline
        # While PostgreSQL is away, each call is repeated for a while, and fails.
        if destination.admin_key and not is_new and "postgresql" not in health.away:
            _warn_of_unused_settings(client, destination, settings, console)
        yield client, ServiceConnection(destination, health, credential, is_new)


def _warn_of_unused_settings(
    client: "Client", destination: ServiceAddress, settings: CliSettings, console: Console
) -> None:
    """Warn if the running daemon does not use the address, the models or the limits in the environment."""
    listen = settings.environ.get("SVC_LISTEN", "")
    host, _, port = listen.rpartition(":")
    # At which address the daemon can be called, if it listens at one with another name or at all of them.
    called = {"localhost": "127.0.0.1", "0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(host.lower(), host)  # noqa: S104
    if port not in {"", "0"} and not destination.base_url.endswith((f"//{listen}", f"//{called}:{port}")):
        console.warn(
            f"SVC_LISTEN={listen} has no effect yet: the daemon runs at {destination.base_url}; "
            "`svc daemon restart` applies it."
        )
    record = Installation(settings.environ).record() or {}
    if isinstance(used := record.get("settings"), dict):
        given = digest_settings(settings.environ, str(record.get("installation_id")))
        unused = [name for name, digest in given.items() if used.get(name) != digest]
        if unused:
            console.warn(
                f"{', '.join(unused)}: no effect yet, since the running daemon has other values or none; "
                "`svc daemon restart` applies them."
            )
    wanted = {name: value for name, value in settings.environ.items() if name.startswith(LIMIT_PREFIX) and value}
    if not wanted:
        return
    limits = client.limits()["limits"]
    for name, value in sorted(wanted.items()):
        limit = limits.get(name.removeprefix(LIMIT_PREFIX).lower())
        if limit is None:
            console.warn(f"{name} is not a setting of this daemon.")
        elif str(limit["value"]) != value:
            console.warn(
                f"{name}={value} has no effect yet: the running daemon uses {limit['value']}; "
                "`svc daemon restart` applies it."
            )
