"""The settings of the daemon, read from environment variables when it starts."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from enum import StrEnum
from ipaddress import AddressValueError, IPv4Address, IPv6Address, ip_address
from pathlib import Path

from svc_daemon import paths
from svc_daemon.settings.limits import Limits, SettingError, variable
from svc_daemon.settings.servers import ENGINE_VARIABLES, ClusterSettings, EmbedSettings, LlmSettings, TlsFiles
from svc_daemon.wire.light.local_daemons import SETTINGS

#: The address on which the daemon listens by default.
DEFAULT_HOST = "127.0.0.1"
#: The port of the daemon for the default data directory.
DEFAULT_PORT = 7820
LOG_LEVELS = ("debug", "info", "warning", "error")
_LISTEN = re.compile(r"(?:\[(?P<v6>[^\[\]]+)\]|(?P<host>[^\[\]:]+)):(?P<port>[0-9]{1,5})")
#: What a `Host` header may say: a name or an address, with a port or without, and never a pattern; and an example.
_HOST_NAMES = re.compile(r"(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?"), "host names such as svc.example.com"
#: What a browser sends as `Origin`.
_ORIGINS = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/*]+"), "origins such as https://app.example.com:8443"
#: Variables of the daemon's folders and address, and those of the command line.
_OTHERS = (
    *("DATA_DIR", "LISTEN", "CONFIG_DIR", "STATE_DIR", "BASE_URL", "API_KEY", "API_KEY_FILE", "WEBHOOK_SECRET"),
    *("BUCKET", "PROGRESS", "NO_AUTOSTART", "NO_INPUT", "TRUST_PROJECT"),
)
_FUNCTION = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)


class Role(StrEnum):
    """Which part of the work a daemon does."""

    ALL = "all"
    #: Answers requests; other daemons do background work.
    API = "api"
    #: Does background work. It should get no requests except for `/healthz`.
    WORKER = "worker"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The configuration of the daemon."""

    #: The folder for the state database, the stored files, the search index and the log.
    data_dir: Path
    #: The address and port on which the daemon listens. Port 0 selects any free port.
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    #: The certificate for HTTPS; None for plain HTTP.
    tls: TlsFiles | None = None
    #: Names that the Host header may have, besides those of this machine.
    allowed_hosts: tuple[str, ...] = ()
    #: Origins of web pages that may send requests.
    allowed_origins: tuple[str, ...] = ()
    #: Private networks from which URLs may be fetched (see `core.access.urls`).
    fetch_allow: str = ""
    #: The server for embeddings; None uses an installed model.
    embedding: EmbedSettings | None = None
    #: Minimum level of log messages.
    log_level: str = "info"
    #: The server that writes answers; without one, answers quote the sources.
    llm: LlmSettings | None = None
    #: The addresses of a cluster's database, object store and search index; None uses the embedded stores.
    cluster: ClusterSettings | None = None
    role: Role = Role.ALL
    #: Whether traces are exported. OpenTelemetry's own environment variables set the address for the export.
    has_traces: bool = False
    #: Whether sources that an older version has read are read again in the background.
    rereads: bool = True
    #: Whether the console for browsers is served.
    has_console: bool = True
    #: `auto`, `off`, or the function that recognises text in pictures, as `module:name`.
    ocr: str = "auto"
    #: The file with the rules of the fault lab, which makes requests fail on purpose.
    faults: Path | None = None
    limits: Limits = field(default_factory=Limits)

    @classmethod
    def from_environ(
        cls,
        environ: Mapping[str, str],
        listen: str | None = None,
        role: Role = Role.ALL,
        faults: Path | None = None,
    ) -> "Settings":
        """Read the settings. `listen` overrides `SVC_LISTEN`. Raises SettingError."""
        cluster = ClusterSettings.from_environ(environ)
        if cluster is None and role is not Role.ALL:
            raise SettingError(
                f"The role {role} needs a cluster ({', '.join(ENGINE_VARIABLES)}): "
                "without one, a single daemon does all the work of a data directory."
            )
        if (ocr := environ.get("SVC_OCR") or "auto") not in ("auto", "off") and not _FUNCTION.fullmatch(ocr):
            raise SettingError(f"SVC_OCR must be auto, off or a function such as package.module:name, not {ocr!r}.")
        host, port = _address(environ, listen or environ.get("SVC_LISTEN") or "")
        settings = cls(
            data_dir=paths.data_dir(environ),
            host=host,
            port=port,
            tls=TlsFiles.from_environ(environ),
            allowed_hosts=_names(environ, "SVC_ALLOWED_HOSTS", _HOST_NAMES),
            allowed_origins=_names(environ, "SVC_ALLOWED_ORIGINS", _ORIGINS),
            fetch_allow=environ.get("SVC_FETCH_ALLOW", ""),
            embedding=EmbedSettings.from_environ(environ),
            log_level=_log_level(environ),
            llm=LlmSettings.from_environ(environ),
            cluster=cluster,
            role=role,
            has_traces=_is_on(environ, "SVC_TRACES"),
            rereads=_is_on(environ, "SVC_REREAD", default="1"),
            has_console=_is_on(environ, "SVC_CONSOLE", default="1"),
            ocr=ocr,
            faults=faults,
            limits=Limits.from_environ(environ),
        )
        if faults is not None and (cluster is not None or not settings.is_loopback):
            raise SettingError("--faults is for a daemon on this machine alone: on loopback, and not in a cluster.")
        return settings

    @property
    def is_loopback(self) -> bool:
        return self.host == "localhost" or ip_address(self.host).is_loopback


def find_misspelled(environ: Mapping[str, str]) -> dict[str, str | None]:
    """Map each variable that looks like a setting, but is none, to the one that is probably meant.

    Others that begin with `SVC_` may be somebody else's: Kubernetes sets some for a service that is called `svc`.
    """
    known = {*SETTINGS, *(f"SVC_{name}" for name in _OTHERS), *(variable(limit.name) for limit in fields(Limits))}
    unknown = sorted(name for name in environ.keys() - known if name.startswith("SVC_"))
    meant = {name: next(iter(get_close_matches(name, known, 1, 0.85)), None) for name in unknown}
    return {name: near for name, near in meant.items() if near or name.startswith(variable(""))}


def _address(environ: Mapping[str, str], listen: str) -> tuple[str, int]:
    if not listen:
        # Without the default data directory, use any free port, so that several daemons can run.
        return DEFAULT_HOST, DEFAULT_PORT if paths.is_default_data_dir(environ) else 0
    match = _LISTEN.fullmatch(listen)
    if match is None or int(match["port"]) > 65535 or not (host := _host(match["v6"], match["host"])):
        raise SettingError(
            f"SVC_LISTEN must be an address and a port such as 127.0.0.1:7820 or [::1]:7820, not {listen!r}."
        )
    return host, int(match["port"])


def _host(v6: str | None, host: str | None) -> str | None:
    """Return the address in the form that sockets accept, or None if the address is invalid."""
    if host is not None and host.lower() == "localhost":
        return "localhost"
    try:
        return str(IPv6Address(v6) if v6 is not None else IPv4Address(host or ""))
    except AddressValueError:
        return None


def _is_on(environ: Mapping[str, str], name: str, default: str = "0") -> bool:
    if (text := environ.get(name) or default) not in ("0", "1", "off", "on"):
        raise SettingError(f"{name} must be on or off (1 or 0), not {text!r}.")
    return text in ("1", "on")


def _names(environ: Mapping[str, str], name: str, form: tuple[re.Pattern[str], str]) -> tuple[str, ...]:
    pattern, example = form
    names = tuple(part.strip().lower() for part in environ.get(name, "").split(",") if part.strip())
    if odd := [each for each in names if not pattern.fullmatch(each)]:
        # What is in another form would match nothing, and nobody would know why.
        raise SettingError(f"{name} must list {example}, separated by commas, not {odd[0]!r}.")
    return names


def _log_level(environ: Mapping[str, str]) -> str:
    level = environ.get("SVC_LOG_LEVEL", "").lower() or "info"
    if level not in LOG_LEVELS:
        raise SettingError(f"SVC_LOG_LEVEL must be one of {', '.join(LOG_LEVELS)}, not {level!r}.")
    return level
