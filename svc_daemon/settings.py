"""All limits and options of the daemon, as named values with units and defaults.

They are read once, from the environment of the process; no other code reads these variables. Each field of `Limits` is
set by the variable `SVC_LIMIT_` plus the field's name in upper case.
"""

import re
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from ipaddress import AddressValueError, IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

from svc_daemon import paths

#: The well-known address of the default installation.
DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 7820
LOG_LEVELS = ("debug", "info", "warning", "error")
#: The upper bound of every limit; clocks, the kernel and SQLite accept no larger numbers.
LARGEST = 10**15
#: The maximum of a duration, a hundred years; the resulting times must stay storable.
LONGEST_S = 36_500 * 86_400
_LISTEN = re.compile(r"(?:\[(?P<v6>[^\[\]]+)\]|(?P<host>[^\[\]:]+)):(?P<port>[0-9]{1,5})")

_SERVER_URL = re.compile(
    r"https?://(?:\[[0-9a-f:.]+\]|[^\s/?#@\\:\[\]]+)(?::(?P<port>[0-9]{1,5}))?(?:/[^\s?#@\\]*)?", re.IGNORECASE
)


class SettingError(ValueError):
    """A variable has an invalid value; the message names the variable and what it accepts."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one caller, file, document or request may take; at least 1 unless `least` allows 0."""

    #: Largest file. 25 MB is 26,214,400 bytes (specification, Limits).
    file_bytes: int = field(default=26_214_400, metadata={"unit": "bytes"})
    #: Creates a second and team, a token bucket of as many (specification, Limits). 0 is off.
    creates_per_second: int = field(default=5, metadata={"unit": "creates per second", "least": 0})
    #: Bytes a team may upload in 60 seconds. 0 is off.
    bytes_per_minute: int = field(default=4 * 1024**3, metadata={"unit": "bytes", "least": 0})
    #: Metadata of one source as UTF-8 JSON (specification, Limits).
    metadata_bytes: int = field(default=8192, metadata={"unit": "bytes"})
    #: Files of one batch (specification, Limits).
    batch_files: int = field(default=100, metadata={"unit": "files"})
    #: Bytes of a batch that can be sent as one pack; the files of a larger one are sent one by one. 0 is off.
    pack_bytes: int = field(default=256 * 1024**2, metadata={"unit": "bytes", "least": 0})
    #: Buckets that one create may name.
    destination_buckets: int = field(default=100, metadata={"unit": "buckets"})
    #: How long an upload session lives after its last accepted chunk.
    session_idle_seconds: int = field(default=3600, metadata={"unit": "seconds", "most": LONGEST_S})
    #: How long an upload session or a batch lives at most.
    session_seconds: int = field(default=86_400, metadata={"unit": "seconds", "most": LONGEST_S})
    #: A finalize of a batch takes on no more files after this long; what is left is reported as pending.
    finalize_seconds: int = field(default=20, metadata={"unit": "seconds"})
    #: Tags of one source (specification, Limits).
    tags: int = field(default=20, metadata={"unit": "tags", "least": 0})
    #: Characters of one tag.
    tag_characters: int = field(default=64, metadata={"unit": "characters"})
    #: Characters of a title.
    title_characters: int = field(default=1024, metadata={"unit": "characters"})
    #: Characters of an idempotency key; Stripe's number.
    idempotency_key_characters: int = field(default=255, metadata={"unit": "characters"})
    #: How long a key and its answer are kept.
    idempotency_days: int = field(default=7, metadata={"unit": "days", "most": 36_500})
    #: How long ended tasks, sessions and batches can be asked for, and calls of deleted sources.
    history_days: int = field(default=30, metadata={"unit": "days", "most": 36_500})
    #: How long stored files are kept that were moved aside because nothing in the state names them.
    set_aside_days: int = field(default=30, metadata={"unit": "days", "most": 36_500})
    #: A JSON body.
    json_bytes: int = field(default=1024 * 1024, metadata={"unit": "bytes"})
    #: Rows of one page of a list.
    page_rows: int = field(default=1000, metadata={"unit": "rows"})
    #: Attempts at one task before it is given up.
    task_attempts: int = field(default=3, metadata={"unit": "attempts"})
    #: How long a claimed task may go without a heartbeat.
    lease_seconds: int = field(default=30, metadata={"unit": "seconds"})
    #: Characters of a search query.
    query_characters: int = field(default=10_000, metadata={"unit": "characters"})
    #: Results of one search.
    search_results: int = field(default=50, metadata={"unit": "results"})
    #: Sources that one search may name (a provider's filter can't grow without end).
    search_sources: int = field(default=200, metadata={"unit": "sources"})
    #: How long a search may take before it is interrupted.
    search_seconds: int = field(default=10, metadata={"unit": "seconds"})
    #: Memory that searches by meaning may keep: some 80 bytes a passage of the buckets searched last.
    vector_memory_bytes: int = field(default=128 * 1024**2, metadata={"unit": "bytes"})
    #: Answers and searches of a team in a calendar month of UTC. 0 is off.
    answers_per_month: int = field(default=0, metadata={"unit": "answers per month", "least": 0})
    #: Agents of a team besides the default one. 0 is off.
    agents: int = field(default=100, metadata={"unit": "agents", "least": 0})
    #: How long connecting to the model's server may take.
    llm_connect_seconds: int = field(default=5, metadata={"unit": "seconds"})
    #: How long a model may read before its first word; a small machine takes most of it for a full prompt.
    llm_first_word_seconds: int = field(default=60, metadata={"unit": "seconds"})
    #: How long a model may be silent between two words.
    llm_silent_seconds: int = field(default=30, metadata={"unit": "seconds"})
    #: How long a model may write in all; below the ten minutes that OpenAI's clients wait.
    llm_seconds: int = field(default=300, metadata={"unit": "seconds"})
    #: Characters of an answer that a model writes.
    llm_answer_characters: int = field(default=50_000, metadata={"unit": "characters"})
    #: Memory of the child that reads one document.
    extract_memory_bytes: int = field(default=1024**3, metadata={"unit": "bytes"})
    #: Processor time of the child that reads one document.
    extract_cpu_seconds: int = field(default=30, metadata={"unit": "seconds"})
    #: Wall time of the child that reads one document.
    extract_wall_seconds: int = field(default=60, metadata={"unit": "seconds"})
    #: Texts that a model of this machine embeds at the same time, each on a core; 0 is one for each core.
    embed_threads: int = field(default=0, metadata={"unit": "threads", "least": 0})
    #: Whole time of one call to an embedding server, its retries included.
    embed_seconds: int = field(default=60, metadata={"unit": "seconds"})
    #: Documents read at the same time.
    extract_children: int = field(default=2, metadata={"unit": "documents"})
    #: Whole time of fetching a URL, redirects included.
    fetch_seconds: int = field(default=30, metadata={"unit": "seconds"})
    #: Redirects followed from one URL. 0 is none.
    redirects: int = field(default=5, metadata={"unit": "redirects", "least": 0})
    #: Whole time of one call of a webhook; Standard Webhooks recommends 15 to 30.
    webhook_seconds: int = field(default=15, metadata={"unit": "seconds"})
    #: How long after a failed call of a webhook the one retry follows.
    webhook_retry_seconds: int = field(default=5, metadata={"unit": "seconds"})
    #: How long the old secret stays valid when webhooks get a new one.
    webhook_rotation_hours: int = field(default=24, metadata={"unit": "hours", "most": 876_000})
    #: Headers must have arrived after this long.
    header_seconds: int = field(default=10, metadata={"unit": "seconds"})
    #: A body must keep this pace after its first ten seconds.
    body_bytes_per_second: int = field(default=4096, metadata={"unit": "bytes per second"})
    #: A body must have arrived after this long, whatever its pace.
    body_seconds: int = field(default=600, metadata={"unit": "seconds"})
    #: Work in flight is finished or parked within this time when the daemon has to stop.
    stop_seconds: int = field(default=10, metadata={"unit": "seconds"})
    #: Bytes are refused, and nothing more is indexed, below this much free disk, so that deletes still work; 2 % of it,
    #: 1 GB at most, if more.
    free_disk_bytes: int = field(default=256 * 1024**2, metadata={"unit": "bytes", "least": 0})

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> "Limits":
        """Read the limits from `SVC_LIMIT_…` variables. Raises SettingError if a value is not a number in range."""
        given = {limit.name: _whole_number(environ, limit) for limit in fields(cls)}
        return cls(**{name: value for name, value in given.items() if value is not None})


def variable(limit_name: str) -> str:
    """Return the name of the environment variable that sets a limit."""
    return f"SVC_LIMIT_{limit_name.upper()}"


class ServerVariables(NamedTuple):
    """The names of the variables that configure an external model server."""

    base_url: str
    model: str
    api_key: str
    api_key_file: str


@dataclass(frozen=True, kw_only=True)
class ModelServer:
    """An external model server with an OpenAI-compatible API."""

    VARIABLES: ClassVar[ServerVariables]

    #: For example `http://127.0.0.1:11434/v1`, without a trailing slash.
    base_url: str
    #: The model's name on that server.
    model: str
    #: Sent as a bearer token; empty if the server does not need one.
    api_key: str = field(default="", repr=False)

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> "Self | None":
        """Read the server from the environment; None if it is not configured. Raises SettingError."""
        names = cls.VARIABLES
        base_url = environ.get(names.base_url, "").rstrip("/")
        if not base_url:
            return None
        match = _SERVER_URL.fullmatch(base_url)
        if match is None or int(match["port"] or 0) > 65535:
            # The message omits the value, because an invalid URL may contain a password.
            raise SettingError(
                f"{names.base_url} must be an address such as http://127.0.0.1:11434/v1, without user, query or "
                f"fragment; a key goes into {names.api_key}."
            )
        model = environ.get(names.model, "")
        if not model:
            raise SettingError(f"{names.model} must name a model, since {names.base_url} is set.")
        return cls(base_url=base_url, model=model, api_key=_api_key(environ, names))


class LlmSettings(ModelServer):
    """The model server that writes the answers."""

    VARIABLES = ServerVariables("SVC_LLM_BASE_URL", "SVC_LLM_MODEL", "SVC_LLM_API_KEY", "SVC_LLM_API_KEY_FILE")


class EmbedSettings(ModelServer):
    """The model server that computes embeddings."""

    VARIABLES = ServerVariables("SVC_EMBED_BASE_URL", "SVC_EMBED_MODEL", "SVC_EMBED_API_KEY", "SVC_EMBED_API_KEY_FILE")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The configuration of the daemon."""

    #: Directory of the state, blobs, index and log.
    data_dir: Path
    #: Address to listen on; port 0 selects any free port.
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    #: Additional names accepted in the Host header, besides the loopback names.
    allowed_hosts: tuple[str, ...] = ()
    #: Origins of web pages that may send requests to this daemon; none by default.
    allowed_origins: tuple[str, ...] = ()
    #: Networks exempt from the fetch policy, in the syntax of `core.access.addresses`.
    fetch_allow: str = ""
    #: The server that computes embeddings; None to use the installed model.
    embedding: EmbedSettings | None = None
    #: Minimum level of log messages.
    log_level: str = "info"
    #: The server that writes the answers; if None, answers quote the sources.
    llm: LlmSettings | None = None
    limits: Limits = field(default_factory=Limits)

    @classmethod
    def from_environ(cls, environ: Mapping[str, str], listen: str | None = None) -> "Settings":
        """Read the settings; `listen`, from the command line, overrides `SVC_LISTEN`. Raises SettingError."""
        host, port = _address(environ, listen or environ.get("SVC_LISTEN") or "")
        return cls(
            data_dir=paths.data_dir(environ),
            host=host,
            port=port,
            allowed_hosts=_names(environ, "SVC_ALLOWED_HOSTS"),
            allowed_origins=_names(environ, "SVC_ALLOWED_ORIGINS"),
            fetch_allow=environ.get("SVC_FETCH_ALLOW", ""),
            embedding=EmbedSettings.from_environ(environ),
            log_level=_log_level(environ),
            llm=LlmSettings.from_environ(environ),
            limits=Limits.from_environ(environ),
        )

    @property
    def is_loopback(self) -> bool:
        return self.host == "localhost" or ip_address(self.host).is_loopback


def _address(environ: Mapping[str, str], listen: str) -> tuple[str, int]:
    if not listen:
        # Only the default installation uses the well-known port, so that others can run on the same machine.
        return DEFAULT_HOST, DEFAULT_PORT if paths.is_default_data_dir(environ) else 0
    match = _LISTEN.fullmatch(listen)
    if match is None or int(match["port"]) > 65535 or not (host := _host(match["v6"], match["host"])):
        raise SettingError(
            f"SVC_LISTEN must be an address and a port such as 127.0.0.1:7820 or [::1]:7820, not {listen!r}."
        )
    return host, int(match["port"])


def _host(v6: str | None, host: str | None) -> str | None:
    """Normalize an address for the socket. Returns None if it is invalid."""
    if host is not None and host.lower() == "localhost":
        return "localhost"
    try:
        return str(IPv6Address(v6) if v6 is not None else IPv4Address(host or ""))
    except AddressValueError:
        return None


def _api_key(environ: Mapping[str, str], names: ServerVariables) -> str:
    """Read the API key, from a file if one is configured. Error messages never contain the key."""
    path = environ.get(names.api_key_file)
    if not path:
        return _header_text(environ.get(names.api_key, ""), names.api_key)
    try:
        return _header_text(Path(path).expanduser().read_text("utf-8").strip(), names.api_key_file)
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"{names.api_key_file} names {path}, which can't be read ({error}).") from error


def _names(environ: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(part.strip().lower() for part in environ.get(name, "").split(",") if part.strip())


def _header_text(value: str, name: str) -> str:
    """Check that a value can be sent in a header. The error message does not show it."""
    if not (value.isascii() and value.isprintable()):
        raise SettingError(f"{name} must be visible ASCII characters.")
    return value.strip()


def _log_level(environ: Mapping[str, str]) -> str:
    level = environ.get("SVC_LOG_LEVEL", "").lower() or "info"
    if level not in LOG_LEVELS:
        raise SettingError(f"SVC_LOG_LEVEL must be one of {', '.join(LOG_LEVELS)}, not {level!r}.")
    return level


def _whole_number(environ: Mapping[str, str], limit: Field[Any]) -> int | None:
    name = variable(limit.name)
    text = environ.get(name)
    if not text:
        return None
    least, most = limit.metadata.get("least", 1), limit.metadata.get("most", LARGEST)
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(LARGEST))
    if not is_number or not least <= int(text) <= most:
        raise SettingError(f"{name} must be a whole number from {least} to {most}, not {text!r}.")
    return int(text)
