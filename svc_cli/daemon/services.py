"""Finds the configured service, and verifies that it is the right one."""

import re
from contextlib import ExitStack

from svc_cli.console import Console
from svc_cli.credentials import ServiceAddress, origin_of
from svc_cli.daemon.probes import DaemonHealth, check_api, get_health
from svc_cli.daemon.process import Daemon, Installation
from svc_cli.deadlines import Deadline
from svc_cli.settings import CliSettings
from svc_daemon.wire.light.versions import VERSION


def reach(
    settings: CliSettings,
    console: Console,
    *,
    base_url: str | None = None,
    autostart: bool = True,
    deadline: Deadline | None = None,
    stack: ExitStack | None = None,
) -> tuple[ServiceAddress, DaemonHealth, bool]:
    """Find the service at the configured address. Without an address, find the local daemon, and start it if necessary.

    The last value is True if this call started the daemon. With `stack`, the health has a connection to the service,
    which is open until the stack is closed. Raises DaemonUnreachable if no verified service answers, Incompatible if
    there is no common API version, and WaitTimedOut.
    """
    found = settings.find("base_url", base_url)
    keep_open, is_new = stack is not None, False
    installation = Installation(settings.environ, keep_open=keep_open)
    if found.value is None:
        daemon, is_new = _local(installation, settings, console, autostart, deadline)
        destination, health = daemon.address, daemon.health
    else:
        health = get_health(str(found.value), installation.secret(), keep_open=keep_open)
    if stack is not None:
        stack.callback(health.close)
    if found.value is not None:
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
