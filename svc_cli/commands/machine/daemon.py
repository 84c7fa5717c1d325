"""`svc daemon …`: starts, stops and inspects the local daemon, and installs it as a service."""

import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from svc_cli import private_files
from svc_cli.commands.daily.status import say_vectors
from svc_cli.commands.invocations import Invocation, command, new_app
from svc_cli.console import Console, clean, is_terminal
from svc_cli.daemon.connections import connected
from svc_cli.daemon.process import Daemon, Installation
from svc_cli.daemon.units import KEY_FILES, Launchd, Service, Systemd, Unit, find_keys, manager_for, services_of
from svc_cli.errors import DaemonUnreachable, SvcError, UsageError
from svc_cli.exits import Exit
from svc_cli.render import duration, fields, size
from svc_daemon import paths
from svc_daemon.wire import JsonMapping
from svc_daemon.wire.light.local_daemons import digest_settings
from svc_daemon.wire.light.parsing import parse_json

app = new_app("Start, stop and inspect the local daemon.")

ListenOption = Annotated[
    str | None,
    typer.Option("--listen", metavar="HOST:PORT", help="Listen on this address and port.  [env: SVC_LISTEN]"),
]
FOLLOW_INTERVAL_S = 0.25
_LEVEL_COLOURS = {"warning": "yellow", "error": "red", "critical": "red"}


@command(app, "run", "svc daemon run", "SVC_DATA_DIR=lab svc daemon run --faults faults.toml")
def run(
    call: Invocation,
    listen: ListenOption = None,
    faults: Annotated[
        Path | None,
        typer.Option(
            "--faults",
            metavar="FILE",
            help="Make requests fail as this file describes, to test clients. The data directory must be new, "
            "or created with this option.",
        ),
    ] = None,
) -> None:
    """Run the daemon in the foreground until Ctrl-C."""
    installation = Installation(call.settings.environ)
    call.console.out.flush()
    program, *arguments = installation.command(listen, faults)
    # The daemon replaces this process, so it receives the signals, and the caller receives its exit code.
    os.execve(program, [program, *arguments], installation.child_environ())  # noqa: S606 - our own interpreter


@command(app, "start", "svc daemon start", "svc daemon start --listen 127.0.0.1:7830")
def start(call: Invocation, listen: ListenOption = None) -> None:
    """Start the daemon in the background, unless it is already running."""
    daemon, is_new = Installation(call.settings.environ).ensure_running(call.console.message, listen)
    _show(call, daemon, "started" if is_new else "already running")


@command(app, "stop")
def stop(call: Invocation) -> None:
    """Stop the daemon; unfinished work continues at the next start."""
    pid = Installation(call.settings.environ).stop()
    value = {"running": False, "stopped": pid is not None, "pid": pid}
    call.console.show(value, lambda: f"stopped (process {pid})" if pid else "no daemon was running.")


@command(app, "restart")
def restart(call: Invocation, listen: ListenOption = None) -> None:
    """Stop the daemon, and start it again with the settings of the current environment.

    It is not stopped if it could not start with them, or if this release can't use its data.
    """
    installation = Installation({**call.settings.environ, **({"SVC_LISTEN": listen} if listen else {})})
    if running := installation.find():
        _check_start(installation)
        if installation.fixed_url and urlsplit(installation.fixed_url).port != urlsplit(running.base_url).port:
            installation.refuse_taken_port(installation.fixed_url, may_be_starting=False)
        used = running.record.get("settings") or {}
        given = digest_settings(call.settings.environ, str(running.record.get("installation_id")))
        if lost := [name for name in used if name not in given]:
            call.console.warn(f"{', '.join(lost)}: set for the daemon until now, but not in this shell.")
        installation.stop()
    daemon, _ = installation.ensure_running(call.console.message)
    _show(call, daemon, "restarted")


@command(app, "status")
def status(call: Invocation) -> Exit:
    """Show the daemon's address, process, queue, uptime and troubles, and how many passages have vectors.

    Exits with code 12 if no daemon is running.
    """
    installation = Installation(call.settings.environ)
    daemon = installation.find()
    if daemon is not None:
        service: JsonMapping = {}
        if "postgresql" not in daemon.health.away:
            # An older daemon lacks the route, and the key may be lost; what is known is shown.
            with suppress(SvcError), connected(call.settings, call.console, base_url=daemon.base_url) as (client, _):
                service = client.status()
        _show(call, daemon, service=service)
        return Exit.DONE
    root = str(installation.files.root)
    error = DaemonUnreachable(f"No daemon is running for {root}.", hint="`svc daemon start` starts it.")
    call.console.show({"running": False, "data_dir": root, **error.envelope()}, lambda: "")
    call.console.fail(error)
    return error.exit


@command(
    app, "logs", "svc daemon logs -n 100", "svc daemon logs -f", "svc daemon logs | jq 'select(.level == \"error\")'"
)
def logs(
    call: Invocation,
    lines: Annotated[
        int, typer.Option("--lines", "-n", metavar="N", min=0, help="Show the last N lines.  [default: 50]")
    ] = 50,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep running, and show new lines as they are written.")
    ] = False,
) -> None:
    """Show the daemon's log: formatted on a terminal, otherwise as lines of JSON."""
    installation = Installation(call.settings.environ)
    if follow:
        follow_lines(call, installation, lines)
        return
    last = installation.read_log(None)[0][-lines:] if lines else []
    for line in last:
        call.console.event({"type": "log", "line": _parsed(line)})
    value = {"object": "logs", "path": str(installation.files.log), "lines": [_parsed(line) for line in last]}
    call.console.show(value, lambda: "\n".join(_readable(call.console, line) for line in last))


@command(app, "install")
def install(
    call: Invocation,
    show: Annotated[bool, typer.Option("--print", help="Print the service files, without installing them.")] = False,
    backups: Annotated[
        str | None, typer.Option("--backup", metavar="DIR", help="Also back up the data to this folder every day.")
    ] = None,
) -> None:
    """Install services that start at each login: the daemon, and the watcher of folders added with `svc watch add`.

    The services run under systemd or, on macOS, launchd. They get the current environment variables that begin with
    SVC_, SSL_CERT_ or OTEL_, but no keys, tokens and passwords.
    """
    environ = call.settings.environ
    manager = manager_for(environ)
    units = _units_of(manager, services_of(environ, backups))
    if not show:
        # A running daemon keeps the data directory locked, so the new service could not use it.
        Installation(environ).stop()
        for unit in units:
            private_files.replace(unit.path, unit.text)
        try:
            manager.load(units)
        except SvcError:
            _remove(units)
            raise
    for name in find_keys(environ):
        way = f"name a file with it in {name}_FILE" if name in KEY_FILES else "give it to the service in another way"
        call.console.warn(f"{name} has a key, and is not written into the files: {way}.")
    _show_units(call, units, installed=not show, done="" if show else "installed")


@command(app, "uninstall")
def uninstall(call: Invocation) -> None:
    """Stop and remove the services that `svc daemon install` installed."""
    environ = call.settings.environ
    manager = manager_for(environ)
    units = [unit for unit in _units_of(manager, services_of(environ, backups="")) if unit.path.exists()]
    if units:
        manager.unload(units)
        _remove(units)
        manager.reload()
    _show_units(call, units, installed=False, done="removed" if units else "nothing was installed.")


def _units_of(manager: Systemd | Launchd, services: list[Service]) -> list[Unit]:
    units = [unit for service in services for unit in (manager.unit(service), manager.timer(service))]
    return [unit for unit in units if unit is not None]


def _remove(units: list[Unit]) -> None:
    for unit in units:
        unit.path.unlink(missing_ok=True)


def _show_units(call: Invocation, units: list[Unit], *, installed: bool, done: str) -> None:
    """Show what was done with each service file, or its content if `done` is empty."""
    value = {
        "installed": installed,
        "units": [{"name": unit.name, "path": str(unit.path), "text": unit.text} for unit in units],
    }
    texts = [f"{done} {unit.path}" if done else f"# {unit.path}\n{unit.text}" for unit in units] or [done]
    call.console.show(value, lambda: "\n".join(texts))


def follow_lines(call: Invocation, installation: Installation, count: int) -> None:
    """Show the last lines, then new ones, across log rotations, until interrupted."""
    lines, place = installation.read_log(None)
    lines = lines[-count:] if count else []
    while True:
        for line in lines:
            if call.console.is_text:
                call.console.print(_readable(call.console, line))
                call.console.out.flush()
            call.console.event({"type": "log", "line": _parsed(line)})
        time.sleep(FOLLOW_INTERVAL_S)
        lines, place = installation.read_log(place)


def _show(call: Invocation, daemon: Daemon, done: str = "", service: JsonMapping | None = None) -> None:
    answer, files = daemon.health.answer, Installation(call.settings.environ).files
    reported = ("status", "queue", "shortage", "engines", "embedding", "writer", "uptime_seconds", "faults")
    facts: dict[str, Any] = {
        "running": True,
        "base_url": daemon.base_url,
        "pid": daemon.pid,
        "version": daemon.health.version,
        "api": daemon.health.api,
        "installation_id": daemon.health.installation_id,
        "data_dir": str(files.root),
        "log": str(files.log),
        "certificate": daemon.record.get("certificate"),
        **{name: answer.get(name) for name in reported},
        **{name: (service or {}).get(name) for name in ("vectors", "disk", "last_trouble")},
    }
    embedding = facts["embedding"] or {}
    model = [str(each) for each in (embedding.get("state"), embedding.get("message") or embedding.get("model")) if each]
    tls = facts["certificate"]
    pairs = [
        ("daemon", done or facts["status"]),
        ("address", facts["base_url"]),
        ("certificate", f"{', '.join(tls['names'])}, until {tls['expires_at'][:10]}" if tls else None),
        ("process", facts["pid"]),
        ("version", facts["version"]),
        ("data", facts["data_dir"]),
        ("log", facts["log"]),
        ("queue", ", ".join(f"{count} {name}" for name, count in (facts["queue"] or {}).items())),
        ("short of", (facts["shortage"] or {}).get("message")),
        ("engine", [*daemon.health.away.values()]),
        ("model", ", ".join(model)),
        ("vectors", say_vectors(service or {})),
        ("disk", f"{size(facts['disk']['free_bytes'])} free" if facts["disk"] else None),
        ("faults", "the fault lab is on: responses with Svc-Fault are made up" if facts["faults"] else None),
        ("up", duration(facts["uptime_seconds"]) if facts["uptime_seconds"] is not None else None),
    ]
    call.console.show(facts, lambda: fields(call.console, pairs))


def _check_start(installation: Installation) -> None:
    """Raise an error if a daemon could not start with the settings of the environment, and with the state."""
    checked = subprocess.run(
        [*installation.command(), "--check"],
        # As at the start of the daemon, nothing is imported from the user's folder.
        cwd=Path(paths.__file__).parent.parent,
        env=installation.child_environ(),
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    message = checked.stderr.strip().removeprefix("error: ")
    if checked.returncode == Exit.USAGE:
        hint = "correct the setting, and run the command again; the daemon goes on with those that it has."
        raise UsageError(message, hint=hint)
    if checked.returncode:
        raise DaemonUnreachable(message, hint="the running daemon goes on.")


def _readable(console: Console, line: str) -> str:
    """Format a log line if stdout is a terminal; otherwise only escape its control characters."""
    parsed = _parsed(line)
    if not is_terminal(console.out) or not isinstance(parsed, dict):
        return clean(line)
    level = str(parsed.get("level", ""))
    facts = {**(parsed.get("fields") or {}), "request_id": parsed.get("request_id")}
    extra = "  ".join(f"{name}={value}" for name, value in facts.items() if value is not None)
    at = console.paint(clean(str(parsed.get("ts", ""))[:19].replace("T", " ")), "dim")
    named = clean(level.ljust(7))
    words = [at, console.paint(named, _LEVEL_COLOURS[level]) if level in _LEVEL_COLOURS else named]
    words += [clean(str(parsed.get("message", ""))), *([console.paint(clean(extra), "dim")] if extra else [])]
    trace = clean(str(parsed.get("error") or "")).splitlines()
    return "\n    ".join(["  ".join(words), *trace])


def _parsed(line: str) -> Any:
    try:
        return parse_json(line)
    except ValueError:
        return line
