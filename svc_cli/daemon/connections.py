"""Finds the configured service, verifies that it is the right one, and selects the API key for it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from svc_cli.console import Console
from svc_cli.credentials import Credential, ServiceAddress, find_key, origin_of
from svc_cli.daemon.probes import DaemonHealth, check_api, get_health, refuse_other_installation
from svc_cli.daemon.process import Daemon, Installation
from svc_cli.deadlines import Deadline
from svc_cli.interrupts import shielded
from svc_cli.settings import CliSettings
from svc_daemon.wire.versions import VERSION

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


def reach(
    settings: CliSettings,
    console: Console,
    *,
    base_url: str | None = None,
    autostart: bool = True,
    deadline: Deadline | None = None,
) -> tuple[ServiceAddress, DaemonHealth, bool]:
    """Find the service at the configured address. Without an address, find the local daemon, and start it if necessary.

    The last value is True if this call started the daemon. Raises DaemonUnreachable if no verified service answers,
    Incompatible if there is no common API version, and WaitTimedOut.
    """
    found = settings.find("base_url", base_url)
    installation = Installation(settings.environ)
    if found.value is None:
        daemon, is_new = _local(installation, settings, console, autostart, deadline)
        destination, health = daemon.address, daemon.health
    else:
        health, is_new = get_health(str(found.value), installation.secret()), False
        is_ours = _is_ours(installation, str(found.value), health)
        destination = installation.address(str(found.value), health) if is_ours else ServiceAddress(str(found.value))
    check_api(health, destination.origin)
    if health.answer.get("status") == "read_only":
        console.warn(
            "the daemon is read-only after a disk error; look at `svc daemon logs`, then `svc daemon restart`."
        )
    if health.answer.get("faults"):
        console.note("the daemon's fault lab is on, so errors may be made up.")
    _note_version(health.version, console, is_ours=destination.admin_key is not None)
    return destination, health, is_new


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
    destination, health, is_new = reach(settings, console, base_url=base_url, autostart=autostart, deadline=deadline)
    credential = find_key(settings.environ, destination)
    refuse_other_installation(credential, health, destination.origin)
    console.unproven_service = None if destination.proof else destination.origin
    # Python may lose a KeyboardInterrupt that is raised during an import.
    with shielded():
        from svc_cli.client.api import Client

    with Client(
        destination.base_url,
        credential.key,
        service=health.installation_id,
        certificate=destination.certificate,
        proof=destination.proof,
    ) as client:
        client.deadline = deadline or client.deadline
        if destination.admin_key and not is_new:
            _warn_of_unused_settings(client, destination, settings, console)
        yield client, ServiceConnection(destination, health, credential, is_new)


def _local(
    installation: Installation, settings: CliSettings, console: Console, autostart: bool, deadline: Deadline | None
) -> tuple[Daemon, bool]:
    if autostart and not settings.is_on("SVC_NO_AUTOSTART"):
        return installation.ensure_running(console.message, deadline=deadline)
    return installation.get(), False


def _note_version(running: str, console: Console, *, is_ours: bool) -> None:
    """Print a note if the service has another version than this `svc`. `is_ours` means that it is the local daemon."""
    if running == VERSION:
        return
    installed, served = (tuple(map(int, re.findall(r"\d+", version))) for version in (VERSION, running))
    if is_ours and installed > served:
        console.note(
            f"version {VERSION} is installed, and the daemon still runs {running};"
            " `svc daemon restart` changes to the new one, and loses nothing."
        )
    else:
        console.note(f"the service is version {running}, this svc is {VERSION}.")


def _is_ours(installation: Installation, base_url: str, health: DaemonHealth) -> bool:
    """Whether the service is the local daemon. Raises DaemonUnreachable if it claims to be, but hasn't proved it."""
    record = installation.record()
    if (
        record is None
        or record.get("installation_id") != health.installation_id
        or origin_of(str(record["base_url"])) != origin_of(base_url)
    ):
        return False
    if not health.is_proven:
        raise installation.unproven(base_url, int(record["pid"]))
    return True


def _warn_of_unused_settings(
    client: "Client", destination: ServiceAddress, settings: CliSettings, console: Console
) -> None:
    """Warn if the running daemon does not use the address or the limits in the environment."""
    listen = settings.environ.get("SVC_LISTEN", "")
    host, _, port = listen.rpartition(":")
    # At which address the daemon can be called, if it listens at one with another name or at all of them.
    called = {"localhost": "127.0.0.1", "0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(host.lower(), host)  # noqa: S104
    if port not in {"", "0"} and not destination.base_url.endswith((f"//{listen}", f"//{called}:{port}")):
        console.warn(
            f"SVC_LISTEN={listen} has no effect yet: the daemon runs at {destination.base_url}; "
            "`svc daemon restart` applies it."
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
