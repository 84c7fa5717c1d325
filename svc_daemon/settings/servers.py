"""Reads the addresses of servers and the daemon's certificate from the environment.

Error messages never contain an address, because it may contain a password.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, NamedTuple, Self
from urllib.parse import parse_qs, urlsplit

from svc_daemon.settings.limits import SettingError

_SERVER_URL = re.compile(
    r"https?://(?:\[[0-9a-f:.]+\]|[^\s/?#@\\:\[\]]+)(?::(?P<port>[0-9]{1,5}))?(?:/[^\s?#@\\]*)?", re.IGNORECASE
)

#: Maps each variable with an address of a cluster to the pattern of the address and to an example.
ENGINE_VARIABLES = {
    "SVC_STATE_URL": (
        re.compile(r"postgres(?:ql)?://[^\s#]+"),
        "postgresql://svc@db.example.com/svc, with @, : and / in its password escaped",
    ),
    "SVC_BLOBS_URL": (
        re.compile(r"s3://[a-z0-9][a-z0-9.\-]{1,61}[a-z0-9](?:/[A-Za-z0-9!_.*'()/\-]*)?"),
        "s3://bucket/prefix; credentials and endpoint go into the AWS variables",
    ),
    "SVC_INDEX_URL": (
        re.compile(r"https?://(?:\[[0-9a-f:.]+\]|[^\s/?#@\\:\[\]]+)(?::[0-9]{1,5})?/?", re.IGNORECASE),
        "https://milvus.example.com:19530, without user or path; a token goes into SVC_INDEX_TOKEN",
    ),
}


class ServerVariables(NamedTuple):
    """The names of the environment variables that configure a model server."""

    base_url: str
    model: str
    api_key: str
    api_key_file: str


@dataclass(frozen=True, kw_only=True)
class ModelServer:
    """A model server with an OpenAI-compatible API."""

    VARIABLES: ClassVar[ServerVariables]

    #: Address of the API, such as `http://127.0.0.1:11434/v1`.
    base_url: str
    #: The model's name on that server.
    model: str
    #: API key, sent as a bearer token; may be empty.
    api_key: str = field(default="", repr=False)

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> "Self | None":
        """Read the server's settings from the environment; None if no server is configured. Raises SettingError."""
        names = cls.VARIABLES
        base_url = environ.get(names.base_url, "").rstrip("/")
        if not base_url:
            return None
        match = _SERVER_URL.fullmatch(base_url)
        if match is None or int(match["port"] or 0) > 65535:
            # An invalid URL may contain a password, so the message omits it.
            raise SettingError(
                f"{names.base_url} must be an address such as http://127.0.0.1:11434/v1, without user, query or "
                f"fragment; a key goes into {names.api_key}."
            )
        model = environ.get(names.model, "")
        if not model:
            raise SettingError(f"{names.model} must name a model, since {names.base_url} is set.")
        return cls(base_url=base_url, model=model, api_key=_api_key(environ, names))


class LlmSettings(ModelServer):
    """The server that writes the answers."""

    VARIABLES = ServerVariables("SVC_LLM_BASE_URL", "SVC_LLM_MODEL", "SVC_LLM_API_KEY", "SVC_LLM_API_KEY_FILE")


class EmbedSettings(ModelServer):
    """The server that computes embeddings."""

    VARIABLES = ServerVariables("SVC_EMBED_BASE_URL", "SVC_EMBED_MODEL", "SVC_EMBED_API_KEY", "SVC_EMBED_API_KEY_FILE")


@dataclass(frozen=True, kw_only=True)
class ClusterSettings:
    """The database, object store and search index that several machines share."""

    #: `postgresql://…`, perhaps with a password.
    state_url: str = field(repr=False)
    #: `s3://bucket/prefix`. Credentials and endpoint are in the usual AWS variables.
    blobs_url: str
    #: The `http(s)://…` address of a Milvus server.
    index_url: str
    #: Token or `user:password` for Milvus, or empty.
    index_token: str = field(default="", repr=False)

    @property
    def name(self) -> str:
        """The name of the cluster in messages: host and name of its database, without user and password."""
        parts = urlsplit(self.state_url)
        host = (parse_qs(parts.query).get("host") or [parts.netloc.rpartition("@")[2]])[0]
        return f"the cluster at {host or 'localhost'}{parts.path}"

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> "ClusterSettings | None":
        """Read the addresses; None if the embedded stores are used. Raises SettingError."""
        urls = {name: environ.get(name, "").strip() for name in ENGINE_VARIABLES}
        token = environ.get("SVC_INDEX_TOKEN", "")
        if not any(urls.values()) and not token:
            return None
        if missing := [name for name, url in urls.items() if not url]:
            raise SettingError(
                f"{', '.join(ENGINE_VARIABLES)} are set together or not at all; {' and '.join(missing)} "
                f"{'is' if len(missing) == 1 else 'are'} missing."
            )
        for name, (pattern, example) in ENGINE_VARIABLES.items():
            if not pattern.fullmatch(urls[name]):
                raise SettingError(f"{name} must be an address such as {example}.")
        state_url, blobs_url, index_url = urls.values()
        token = _header_text(token, "SVC_INDEX_TOKEN")
        return cls(state_url=state_url, blobs_url=blobs_url, index_url=index_url.rstrip("/"), index_token=token)


@dataclass(frozen=True, kw_only=True)
class TlsFiles:
    """The PEM files for HTTPS."""

    #: The certificate, followed by the intermediate certificates.
    certificate: Path
    #: The private key, without a passphrase.
    key: Path

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> "TlsFiles | None":
        """Read the paths of the files from the environment; None if HTTPS is not configured. Raises SettingError."""
        given = {name: environ.get(name, "") for name in ("SVC_TLS_CERT", "SVC_TLS_KEY")}
        if not any(given.values()):
            return None
        for name, path in given.items():
            if not path:
                raise SettingError(f"{name} must name a PEM file too: SVC_TLS_CERT and SVC_TLS_KEY go together.")
            if not Path(path).is_absolute():
                # The daemon may have a different working directory from the command that starts it.
                raise SettingError(f"{name} must be an absolute path, not {path!r}.")
        certificate, key = given.values()
        return cls(certificate=Path(certificate), key=Path(key))


def _api_key(environ: Mapping[str, str], names: ServerVariables) -> str:
    """Read the API key, from a file if configured. Error messages never contain the key."""
    path = environ.get(names.api_key_file)
    if not path:
        return _header_text(environ.get(names.api_key, ""), names.api_key)
    try:
        return _header_text(Path(path).expanduser().read_text("utf-8").strip(), names.api_key_file)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise SettingError(f"{names.api_key_file} names {path}, which can't be read: {reason}.") from error


def _header_text(value: str, name: str) -> str:
    """Check that a secret can be sent in an HTTP header. The error message never contains the secret."""
    if not (value.isascii() and value.isprintable()):
        raise SettingError(f"{name} must be visible ASCII characters.")
    return value.strip()
