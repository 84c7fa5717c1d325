"""Installs the daemon, the watcher and a daily backup as services of the user, with systemd or launchd."""

import hashlib
import os
import plistlib
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from svc_cli.errors import UsageError
from svc_daemon import paths

#: Prefixes of the environment variables that are written to unit files.
CARRIED = ("SVC_", "SSL_CERT_", "OTEL_")
#: Variables that the services don't need: keys of the command line, and what is meant for a single command or build.
LEFT_OUT = frozenset(
    {
        *("SVC_API_KEY", "SVC_WEBHOOK_SECRET", "SVC_NO_AUTOSTART", "SVC_NO_INPUT", "SVC_PROGRESS", "SVC_BUCKET"),
        "SVC_TRUST_PROJECT",
    }
)
#: Variables with keys that the daemon needs, which are not written to unit files either.
KEYS = ("SVC_LLM_API_KEY", "SVC_EMBED_API_KEY", "SVC_INDEX_TOKEN")
#: The variables of these that can name a file with the key instead.
KEY_FILES = ("SVC_LLM_API_KEY", "SVC_EMBED_API_KEY")
#: Seconds after which a service that has failed is restarted.
RESTART_S = 2
#: Seconds that a service gets to stop; the daemon needs up to 10.
STOP_S = 15
#: The last lines of the systemd unit of a program that always runs.
_ALWAYS = (
    *("Restart=on-failure", f"RestartSec={RESTART_S}", f"TimeoutStopSec={STOP_S}"),
    *("", "[Install]", "WantedBy=default.target"),
)
#: The last lines of the systemd unit of a program that runs once a day.
_IDLE = ("Nice=10", "IOSchedulingClass=idle")
#: Unit lines of a program that reports its state to systemd. Its start has no timeout: an upgrade may take long.
_WATCHED = ("TimeoutStartSec=infinity", "WatchdogSec=60")
#: Unit lines that take privileges from the program. Hiding folders is left out: it fails without user namespaces.
_CONFINED = (
    "NoNewPrivileges=yes",
    "UMask=0077",
    "LockPersonality=yes",
    "RestrictNamespaces=yes",
    "RestrictRealtime=yes",
    "RestrictSUIDSGID=yes",
    "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",
    "SystemCallArchitectures=native",
    "SystemCallFilter=@system-service",
    "SystemCallErrorNumber=EPERM",
)
#: Keys in the property list of a launchd agent that always runs.
_AGENT = {
    "RunAtLoad": True,
    "KeepAlive": {"SuccessfulExit": False},
    "ThrottleInterval": RESTART_S,
    "ExitTimeOut": STOP_S,
}
#: Keys in the property list of a launchd agent that runs once a day.
_DAILY_AGENT = {"StartCalendarInterval": {"Hour": 3, "Minute": 0}, "LowPriorityIO": True, "Nice": 10}


@dataclass(frozen=True, slots=True)
class Service:
    """A program to run as a service of the current user."""

    name: str
    description: str
    command: tuple[str, ...]
    environ: Mapping[str, str]
    #: The service to start before this one.
    needs: str | None = None
    #: Whether the program runs once a day instead of all the time.
    is_daily: bool = False
    #: Whether the program reports to the service manager that it is ready and alive.
    is_watched: bool = False


@dataclass(frozen=True, slots=True)
class Unit:
    """The file that defines a service for the service manager."""

    name: str
    path: Path
    text: str
    #: Whether the program starts at each login; otherwise a timer starts it.
    is_enabled: bool = True


def find_keys(environ: Mapping[str, str]) -> list[str]:
    """List the variables with keys, tokens and passwords that the daemon gets from this environment."""
    return sorted(
        name
        for name, value in environ.items()
        if value
        and (
            name in KEYS
            # Headers for an exporter of traces have its credentials.
            or (name.startswith("OTEL_") and name.endswith("_HEADERS"))
            or (name == "SVC_STATE_URL" and "@" in value and ":" in value.partition("://")[2].rpartition("@")[0])
        )
    )


def services_of(environ: Mapping[str, str], backups: str | None = None) -> list[Service]:
    """Return the services for this environment: the daemon, the watcher, and backups to a folder if one is given."""
    name = "svc"
    if environ.get("SVC_DATA_DIR"):
        # Each data directory has its own services.
        name = f"svc-{hashlib.sha256(os.fsencode(paths.data_dir(environ))).hexdigest()[:8]}"
    left_out = LEFT_OUT.union(find_keys(environ))
    carried = {name: value for name, value in environ.items() if name.startswith(CARRIED) and name not in left_out}
    for variable, value in carried.items():
        # A service runs in another folder, where relative paths would be wrong.
        if variable.endswith(("_DIR", "_FILE")):
            carried[variable] = str(Path(value).absolute())
    python = (sys.executable, "-P", "-m")
    services = [
        Service(
            name, "svc, the knowledge ingestion service", (*python, "svc_daemon", "serve"), carried, is_watched=True
        ),
        Service(
            f"{name}-watch",
            "svc watch, which keeps buckets up to date with their folders",
            (*python, "svc_cli", "watch", "run", "--stay", "--no-autostart", "--no-input"),
            carried,
            needs=name,
        ),
    ]
    if backups is not None:
        command = (*python, "svc_daemon", "backup", str(Path(backups).absolute()))
        services.append(Service(f"{name}-backup", "a backup of svc", command, carried, is_daily=True))
    return services


class Systemd:
    """The service manager on Linux: the user's systemd."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        config = environ.get("XDG_CONFIG_HOME") or str(Path(environ.get("HOME", "~")).expanduser() / ".config")
        self._folder = Path(config) / "systemd" / "user"

    def unit(self, service: Service) -> Unit:
        """Return the unit file of a service. Raises UsageError if a value can't be written in a unit file."""
        file_name, kind = f"{service.name}.service", "notify" if service.is_watched else "exec"
        needs = [f"Wants={service.needs}.service", f"After={service.needs}.service"] if service.needs else []
        lines = [
            "[Unit]",
            f"Description={service.description}",
            *needs,
            *([] if service.is_daily else ["StartLimitIntervalSec=0"]),
            "",
            "[Service]",
            f"Type={'oneshot' if service.is_daily else kind}",
            f"ExecStart={' '.join(_quoted(word).replace('$', '$$') for word in service.command)}",
            *[f"Environment={_quoted(f'{name}={value}')}" for name, value in sorted(service.environ.items())],
            *_CONFINED,
            *(_WATCHED if service.is_watched else ()),
            *(_IDLE if service.is_daily else _ALWAYS),
        ]
        text = "\n".join(lines) + "\n"
        return Unit(file_name, self._folder / file_name, text, is_enabled=not service.is_daily)

    def timer(self, service: Service) -> Unit | None:
        """Return the timer of a daily service; None for others."""
        if not service.is_daily:
            return None
        lines = ["[Unit]", f"Description=Daily {service.description}", "", "[Timer]", "OnCalendar=daily"]
        lines += ["RandomizedDelaySec=15min", "Persistent=true", "", "[Install]", "WantedBy=timers.target"]
        name = f"{service.name}.timer"
        return Unit(name, self._folder / name, "\n".join(lines) + "\n")

    def load(self, units: Sequence[Unit]) -> None:
        """Start the services, now and at each login."""
        _call("systemctl", "--user", "daemon-reload")
        _call("systemctl", "--user", "enable", "--now", *(unit.name for unit in units if unit.is_enabled))

    def unload(self, units: Sequence[Unit]) -> None:
        """Stop the services."""
        _call("systemctl", "--user", "disable", "--now", *(unit.name for unit in units if unit.is_enabled))

    def reload(self) -> None:
        """Make systemd read its unit files again."""
        _call("systemctl", "--user", "daemon-reload")


class Launchd:
    """The service manager on macOS: launchd."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._folder = Path(environ.get("HOME", "~")).expanduser() / "Library" / "LaunchAgents"

    def unit(self, service: Service) -> Unit:
        """Return the property list of a service."""
        label = f"local.{service.name}"
        agent = {
            "Label": label,
            "ProgramArguments": list(service.command),
            "EnvironmentVariables": dict(sorted(service.environ.items())),
            **(_DAILY_AGENT if service.is_daily else _AGENT),
        }
        return Unit(label, self._folder / f"{label}.plist", plistlib.dumps(agent).decode())

    def timer(self, _service: Service) -> Unit | None:
        """Return None: the property list contains the time of a daily start."""
        return None

    def load(self, units: Sequence[Unit]) -> None:
        """Start the services, now and at each login."""
        for unit in units:
            _call("launchctl", "bootstrap", f"gui/{os.getuid()}", str(unit.path))

    def unload(self, units: Sequence[Unit]) -> None:
        """Stop the services."""
        for unit in units:
            _call("launchctl", "bootout", f"gui/{os.getuid()}/{unit.name}")

    def reload(self) -> None:
        """Do nothing: launchd needs no reload."""


def manager_for(environ: Mapping[str, str], platform: str = sys.platform) -> Systemd | Launchd:
    """Return the service manager for this platform. Raises UsageError if it has none of these."""
    if platform == "win32":
        hint = "let the task scheduler run `svc watch run`; the local daemon runs in WSL."
        raise UsageError("Services are installed with systemd or launchd, which Windows lacks.", hint=hint)
    return Launchd(environ) if platform == "darwin" else Systemd(environ)


def _quoted(word: str) -> str:
    """Quote a word for a systemd unit."""
    if any(ord(character) < 32 for character in word):
        raise UsageError(f"{word!r} can't be written in a systemd unit.", hint="unset or change that variable.")
    text = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return text if text and not set(text) & set(" \"'\\;") else f'"{text}"'


def _call(program: str, *arguments: str) -> None:
    """Run a program. Raises UsageError if it is not installed or fails."""
    found = shutil.which(program)
    if found is None:
        raise UsageError(
            f"{program} is not installed, so no service can be installed.",
            hint="`--print` shows what would be written.",
        )
    ended = subprocess.run([found, *arguments], capture_output=True, text=True, check=False)
    if ended.returncode:
        output = ended.stderr.strip() or ended.stdout.strip() or f"exit {ended.returncode}"
        raise UsageError(
            f"{program} {' '.join(arguments)}: {output}", code="svc_service_refused", hint="is a user session running?"
        )
