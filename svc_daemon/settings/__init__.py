"""All limits and options of the daemon, as named values with units and defaults.

They are read once, from the environment of the process; no other code reads these variables. The variable for a field
of `Limits` is `SVC_LIMIT_` plus the field's name in upper case.
"""

import re
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from enum import StrEnum
from ipaddress import AddressValueError, IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any

from svc_daemon import paths
from svc_daemon.settings.servers import (
    ENGINE_VARIABLES,
    ClusterSettings,
    EmbedSettings,
    LlmSettings,
    SettingError,
    TlsFiles,
)

__all__ = ["ClusterSettings", "EmbedSettings", "Limits", "LlmSettings", "Role", "SettingError", "Settings", "TlsFiles"]

#: The address on which the daemon listens by default.
DEFAULT_HOST = "127.0.0.1"
#: The port of the daemon for the default data directory.
DEFAULT_PORT = 7820
LOG_LEVELS = ("debug", "info", "warning", "error")
#: Maximum value of every limit, because clocks, the kernel and SQLite can't handle larger numbers.
LARGEST = 10**15
#: Maximum of long durations, in seconds (a hundred years), so that dates computed from them are valid.
LONGEST_S = 36_500 * 86_400
_LISTEN = re.compile(r"(?:\[(?P<v6>[^\[\]]+)\]|(?P<host>[^\[\]:]+)):(?P<port>[0-9]{1,5})")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits on callers, files, documents and requests.

    Each is at least 1, unless the field's metadata has another `least`.
    """

    #: Maximum size of a file. The specification (Limits) defines 25 MB as 26,214,400 bytes.
    file_bytes: int = field(default=26_214_400, metadata={"unit": "bytes"})
    #: Maximum number of create requests per second and team. The same number is allowed in a burst (specification,
    #: Limits). 0 disables the limit.
    creates_per_second: int = field(default=5, metadata={"unit": "creates per second", "least": 0})
    #: Maximum number of bytes that a team may upload within 60 seconds. 0 disables the limit.
    bytes_per_minute: int = field(default=4 * 1024**3, metadata={"unit": "bytes", "least": 0})
    #: Maximum size of a source's metadata, as JSON in UTF-8 (specification, Limits).
    metadata_bytes: int = field(default=8192, metadata={"unit": "bytes"})
    #: Maximum number of files in a batch (specification, Limits).
    batch_files: int = field(default=100, metadata={"unit": "files"})
    #: Maximum size of a batch whose files can be sent in a single request (a pack); the files of a larger batch are
    #: sent one by one. 0 disables packs.
    pack_bytes: int = field(default=256 * 1024**2, metadata={"unit": "bytes", "least": 0})
    #: Maximum number of buckets that a create request may name.
    destination_buckets: int = field(default=100, metadata={"unit": "buckets"})
    #: Time from the last accepted chunk of an upload session until the session expires.
    session_idle_seconds: int = field(default=3600, metadata={"unit": "seconds", "most": LONGEST_S})
    #: Maximum lifetime of an upload session or a batch.
    session_seconds: int = field(default=86_400, metadata={"unit": "seconds", "most": LONGEST_S})
    #: Maximum time for finalizing a batch in one request; files that remain are reported as pending.
    finalize_seconds: int = field(default=20, metadata={"unit": "seconds"})
    #: Maximum number of tags of a source (specification, Limits).
    tags: int = field(default=20, metadata={"unit": "tags", "least": 0})
    #: Maximum length of a tag.
    tag_characters: int = field(default=64, metadata={"unit": "characters"})
    #: Maximum length of a title.
    title_characters: int = field(default=1024, metadata={"unit": "characters"})
    #: Maximum length of an idempotency key; the same as Stripe's.
    idempotency_key_characters: int = field(default=255, metadata={"unit": "characters"})
    #: Time for which an idempotency key and its response are kept.
    idempotency_days: int = field(default=7, metadata={"unit": "days", "most": 36_500})
    #: Time for which finished tasks, sessions and batches are kept, and webhook deliveries of deleted sources.
    history_days: int = field(default=30, metadata={"unit": "days", "most": 36_500})
    #: Time for which events are kept.
    event_days: int = field(default=7, metadata={"unit": "days", "most": 36_500})
    #: Maximum number of sources that one request may look up by their ids.
    lookup_sources: int = field(default=200, metadata={"unit": "sources"})
    #: Time for which a stored file is kept after it was moved aside because it has no row in the state database.
    set_aside_days: int = field(default=30, metadata={"unit": "days", "most": 36_500})
    #: Maximum size of a JSON request body.
    json_bytes: int = field(default=1024 * 1024, metadata={"unit": "bytes"})
    #: Maximum number of rows in one page of a list.
    page_rows: int = field(default=1000, metadata={"unit": "rows"})
    #: Maximum number of attempts of a task, after which it fails.
    task_attempts: int = field(default=3, metadata={"unit": "attempts"})
    #: Time without a heartbeat after which the lease of a claimed task expires.
    lease_seconds: int = field(default=30, metadata={"unit": "seconds"})
    #: Maximum length of a search query.
    query_characters: int = field(default=10_000, metadata={"unit": "characters"})
    #: Maximum number of results of a search.
    search_results: int = field(default=50, metadata={"unit": "results"})
    #: Maximum number of sources that a search may name, because search providers limit the size of a filter.
    search_sources: int = field(default=200, metadata={"unit": "sources"})
    #: Time after which a search is interrupted.
    search_seconds: int = field(default=10, metadata={"unit": "seconds"})
    #: Maximum memory for the cache of semantic search, which needs about 80 bytes for each passage in recently searched
    #: buckets.
    vector_memory_bytes: int = field(default=128 * 1024**2, metadata={"unit": "bytes"})
    #: Maximum number of vectors that imports offered to a team and that are stored until they are used. 0 stores none.
    offered_vectors: int = field(default=50_000, metadata={"unit": "vectors", "least": 0})
    #: Maximum number of answers and searches of a team in a calendar month (UTC). 0 disables the limit.
    answers_per_month: int = field(default=0, metadata={"unit": "answers per month", "least": 0})
    #: Maximum number of agents of a team besides the default one. 0 disables the limit.
    agents: int = field(default=100, metadata={"unit": "agents", "least": 0})
    #: Timeout for connecting to the server of the language model.
    llm_connect_seconds: int = field(default=5, metadata={"unit": "seconds"})
    #: Timeout for the first word of a model's answer. A small machine needs most of this time to process a long prompt.
    llm_first_word_seconds: int = field(default=60, metadata={"unit": "seconds"})
    #: Maximum pause between two words of a model's answer.
    llm_silent_seconds: int = field(default=30, metadata={"unit": "seconds"})
    #: Timeout for the whole answer of a model. It is less than ten minutes, the timeout of OpenAI's clients.
    llm_seconds: int = field(default=300, metadata={"unit": "seconds"})
    #: Maximum length of an answer written by a model.
    llm_answer_characters: int = field(default=50_000, metadata={"unit": "characters"})
    #: Maximum memory of the child process that extracts one document.
    extract_memory_bytes: int = field(default=1024**3, metadata={"unit": "bytes"})
    #: Maximum processor time of the child process that extracts one document.
    extract_cpu_seconds: int = field(default=30, metadata={"unit": "seconds"})
    #: Maximum wall time of the child process that extracts one document.
    extract_wall_seconds: int = field(default=60, metadata={"unit": "seconds"})
    #: Number of texts that an installed model embeds at once, each on one processor core; 0 uses all cores.
    embed_threads: int = field(default=0, metadata={"unit": "threads", "least": 0})
    #: Timeout for a call to an embedding server, including its retries.
    embed_seconds: int = field(default=60, metadata={"unit": "seconds"})
    #: Maximum number of child processes that extract documents of one kind (large or small) at the same time. All kinds
    #: together may have one more than this.
    extract_children: int = field(default=2, metadata={"unit": "processes"})
    #: Timeout for fetching a URL, including redirects.
    fetch_seconds: int = field(default=30, metadata={"unit": "seconds"})
    #: Maximum number of redirects to follow from a URL. 0 follows none.
    redirects: int = field(default=5, metadata={"unit": "redirects", "least": 0})
    #: Timeout for a webhook call; Standard Webhooks recommends 15 to 30 seconds.
    webhook_seconds: int = field(default=15, metadata={"unit": "seconds"})
    #: Time after a failed webhook call until its only retry.
    webhook_retry_seconds: int = field(default=5, metadata={"unit": "seconds"})
    #: Time for which the old webhook secret stays valid after a rotation.
    webhook_rotation_hours: int = field(default=24, metadata={"unit": "hours", "most": 876_000})
    #: Timeout for receiving the headers of a request.
    header_seconds: int = field(default=10, metadata={"unit": "seconds"})
    #: Minimum average speed of a request body, checked after its first ten seconds.
    body_bytes_per_second: int = field(default=4096, metadata={"unit": "bytes per second"})
    #: Timeout for receiving a request body, whatever its speed.
    body_seconds: int = field(default=600, metadata={"unit": "seconds"})
    #: Maximum time that a stopping daemon takes to finish work in progress, or to queue it again.
    stop_seconds: int = field(default=10, metadata={"unit": "seconds"})
    #: Minimum free disk space. If 2 % of the disk (at most 1 GB) is more, that is used instead. With less free space,
    #: uploads are refused and nothing is indexed, so that deletions still work. 0 disables the check.
    free_disk_bytes: int = field(default=256 * 1024**2, metadata={"unit": "bytes", "least": 0})

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> "Limits":
        """Read the limits from `SVC_LIMIT_…` variables.

        Raises SettingError if a value is not a number in the allowed range.
        """
        given = {limit.name: _whole_number(environ, limit) for limit in fields(cls)}
        return cls(**{name: value for name, value in given.items() if value is not None})


def variable(limit_name: str) -> str:
    """Return the name of the environment variable that sets a limit."""
    return f"SVC_LIMIT_{limit_name.upper()}"


class Role(StrEnum):
    """Which part of an installation's work a daemon does."""

    ALL = "all"
    #: Answers requests, and leaves background work to other daemons.
    API = "api"
    #: Does background work. It would answer requests too, but should get none except for `/healthz`.
    WORKER = "worker"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The configuration of the daemon."""

    #: Directory of the state database, blobs, index and log.
    data_dir: Path
    #: Address to listen on; port 0 selects any free port.
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    #: The certificate for HTTPS; None for plain HTTP.
    tls: TlsFiles | None = None
    #: Names that the Host header of a request may have, in addition to those of the local machine.
    allowed_hosts: tuple[str, ...] = ()
    #: Origins of web pages that may send requests to this daemon; none by default.
    allowed_origins: tuple[str, ...] = ()
    #: Private networks from which URLs may be fetched, in the syntax of `core.access.addresses`.
    fetch_allow: str = ""
    #: The server that computes embeddings; None to use a model that is installed locally.
    embedding: EmbedSettings | None = None
    #: Minimum level of log messages.
    log_level: str = "info"
    #: The server that writes the answers; if None, answers quote the sources.
    llm: LlmSettings | None = None
    #: The addresses of PostgreSQL, S3 and Milvus; None to use the embedded stores in the data directory.
    cluster: ClusterSettings | None = None
    role: Role = Role.ALL
    #: Whether traces are exported, to the address in OpenTelemetry's own variables.
    has_traces: bool = False
    #: The file with the rules of the fault lab, which makes errors happen for tests; None turns the lab off. This file
    #: can only be set on the command line, not by a variable.
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
        """Read the settings; `listen`, from the command line, overrides `SVC_LISTEN`. Raises SettingError."""
        cluster = ClusterSettings.from_environ(environ)
        if cluster is None and role is not Role.ALL:
            raise SettingError(
                f"The role {role} needs a cluster ({', '.join(ENGINE_VARIABLES)}): "
                "without one, a single daemon does all the work of a data directory."
            )
        host, port = _address(environ, listen or environ.get("SVC_LISTEN") or "")
        settings = cls(
            data_dir=paths.data_dir(environ),
            host=host,
            port=port,
            tls=TlsFiles.from_environ(environ),
            allowed_hosts=_names(environ, "SVC_ALLOWED_HOSTS"),
            allowed_origins=_names(environ, "SVC_ALLOWED_ORIGINS"),
            fetch_allow=environ.get("SVC_FETCH_ALLOW", ""),
            embedding=EmbedSettings.from_environ(environ),
            log_level=_log_level(environ),
            llm=LlmSettings.from_environ(environ),
            cluster=cluster,
            role=role,
            has_traces=_is_on(environ, "SVC_TRACES"),
            faults=faults,
            limits=Limits.from_environ(environ),
        )
        if faults is not None and (cluster is not None or not settings.is_loopback):
            raise SettingError("--faults is for a daemon on this machine alone: on loopback, and not in a cluster.")
        return settings

    @property
    def is_loopback(self) -> bool:
        return self.host == "localhost" or ip_address(self.host).is_loopback


def _address(environ: Mapping[str, str], listen: str) -> tuple[str, int]:
    if not listen:
        # Only the default installation uses the default port, so that others can run on the same machine.
        return DEFAULT_HOST, DEFAULT_PORT if paths.is_default_data_dir(environ) else 0
    match = _LISTEN.fullmatch(listen)
    if match is None or int(match["port"]) > 65535 or not (host := _host(match["v6"], match["host"])):
        raise SettingError(
            f"SVC_LISTEN must be an address and a port such as 127.0.0.1:7820 or [::1]:7820, not {listen!r}."
        )
    return host, int(match["port"])


def _host(v6: str | None, host: str | None) -> str | None:
    """Convert an address to the form that a socket needs. Returns None if it is invalid."""
    if host is not None and host.lower() == "localhost":
        return "localhost"
    try:
        return str(IPv6Address(v6) if v6 is not None else IPv4Address(host or ""))
    except AddressValueError:
        return None


def _is_on(environ: Mapping[str, str], name: str) -> bool:
    if (text := environ.get(name, "")) not in ("", "0", "1"):
        raise SettingError(f"{name} must be 0 or 1, not {text!r}.")
    return text == "1"


def _names(environ: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(part.strip().lower() for part in environ.get(name, "").split(",") if part.strip())


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
