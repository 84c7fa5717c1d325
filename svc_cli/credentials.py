"""API keys, each bound to the origin it was stored for, and the choice of the one to send.

A key comes from the environment, a file, `auth login`'s own file (0600), or the local installation's admin key. It is
never the value of a flag, and an address that a project's file names never gets a key that was meant for another.
"""

import ipaddress
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from svc_cli.errors import NotAuthenticated, UsageError
from svc_daemon import paths

#: The hint if the local installation's own key is lost.
ADMIN_HINT = "`svc-daemon key create --team default --preset admin --save` makes another key for this installation."
LOGIN_HINT = "`svc auth login` stores a key; SVC_API_KEY or SVC_API_KEY_FILE give one for this run."


@dataclass(frozen=True, slots=True)
class Credential:
    """A key and where it was found."""

    key: str
    source: str
    #: The installation it was stored for, if known.
    installation_id: str | None = None

    @property
    def masked(self) -> str:
        return f"{self.key[:7]}…{self.key[-4:]}" if len(self.key) > 16 else "…"


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """The facts about an address that decide which key is sent there."""

    base_url: str
    #: The address was named by a project's file, which somebody else may have written.
    from_project: bool = False
    #: The file of the admin key, if the service has proved to be the local installation.
    admin_key: Path | None = None

    @property
    def origin(self) -> str:
        return origin_of(self.base_url)


def origin_of(base_url: str) -> str:
    """Scheme, host and port in canonical form. Raises UsageError if it is no http or https address."""
    try:
        parts = urlsplit(base_url)
        port = parts.port
    except ValueError as error:
        raise UsageError(f"{base_url!r} is not an address: {error}") from error
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError(f"{base_url!r} is not an http address.", hint="it looks like http://127.0.0.1:7820.")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}:{port or (443 if parts.scheme == 'https' else 80)}"


def find_key(environ: Mapping[str, str], to: ServiceAddress) -> Credential:
    """The key to send there: environment, key file, stored for this origin, the local installation's own.

    Raises NotAuthenticated where there is none, or where a key of the environment would go to an address that only a
    project's file names.
    """
    given, path = None, environ.get("SVC_API_KEY_FILE")
    if environ.get("SVC_API_KEY"):
        given = Credential(check_key(environ["SVC_API_KEY"], "SVC_API_KEY"), "environment SVC_API_KEY")
    elif path:
        given = Credential(_read_key(Path(path).expanduser()), f"SVC_API_KEY_FILE {path}")
    if given:
        if to.from_project and not is_loopback(to.base_url):
            raise NotAuthenticated(
                f"{to.origin} is named by a project's file; the key of {given.source} is not sent there.",
                hint=f"if you trust it: SVC_BASE_URL={to.base_url}, or `svc auth login --base-url {to.base_url}`.",
            )
        return given
    stored = CredentialFile(environ).get(to.origin)
    if stored:
        return stored
    if to.admin_key:
        try:
            return Credential(_read_key(to.admin_key), str(to.admin_key))
        except UsageError as error:
            raise NotAuthenticated(f"The key of this installation is lost: {error.message}", hint=ADMIN_HINT) from error
    raise NotAuthenticated(f"No API key is known for {to.origin}.", hint=LOGIN_HINT)


def is_loopback(base_url: str) -> bool:
    host = urlsplit(base_url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class CredentialFile:
    """The keys that `auth login` stored: JSON `{origin: {key, installation_id}}`, readable by this user alone."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.path = paths.config_dir(environ) / "credentials.json"

    def get(self, origin: str) -> Credential | None:
        row = self._read().get(origin)
        return Credential(row["key"], str(self.path), row.get("installation_id")) if row else None

    def origins(self) -> list[str]:
        return sorted(self._read())

    def store(self, origin: str, key: str, installation_id: str) -> None:
        self._write({**self._read(), origin: {"key": key, "installation_id": installation_id}})

    def forget(self, origin: str) -> bool:
        """Remove a key; False if there was none."""
        keys = self._read()
        if keys.pop(origin, None) is None:
            return False
        self._write(keys)
        return True

    def _read(self) -> dict[str, dict[str, str]]:
        try:
            found = json.loads(self.path.read_text("utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise UsageError(f"{self.path} can't be read: {error}", hint="repair or delete it.") from error
        rows = found.items() if isinstance(found, dict) else ()
        return {origin: row for origin, row in rows if isinstance(row, dict) and "key" in row}

    def _write(self, keys: dict[str, dict[str, str]]) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self.path.with_suffix(f".{os.getpid()}.new")
        # Created 0600 from the first byte: a chmod afterwards would leave a moment for others to read.
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(keys, file, indent=2)
        draft.replace(self.path)


def check_key(text: str, source: str) -> str:
    """A key that can be sent in a header. Raises UsageError."""
    key = text.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise UsageError(f"{source} holds no API key.", hint="a key is one line that starts with sk-.")
    return key


def _read_key(path: Path) -> str:
    try:
        return check_key(path.read_text("utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The key file {path} can't be read: {error}") from error
