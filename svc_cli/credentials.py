"""Stores API keys by origin (scheme, host and port of a URL), and selects the key to send to a service.

A stored key is sent only to its origin. A key from the environment is sent to the address that the user gave, or to the
local daemon. The settings never return an address that only a stranger's `svc.toml` names.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from svc_cli.errors import NotAuthenticated, UsageError
from svc_cli.given_files import KEY_BYTES, read_given
from svc_cli.private_files import read_rows, replace
from svc_daemon import paths

if TYPE_CHECKING:
    from http.client import HTTPConnection

#: The hint if the local admin key can't be read.
ADMIN_HINT = "`svc-daemon key create --team default --preset admin --save` makes another key for this installation."
LOGIN_HINT = "`svc auth login` stores a key; SVC_API_KEY or SVC_API_KEY_FILE give one for this run."


class Credential(NamedTuple):
    """A key and where it was found."""

    key: str
    source: str
    #: The id of the installation for which the key was stored, if known.
    installation_id: str | None = None
    #: Whether the key was stored for the local daemon, after the daemon had proved to be it.
    is_local: bool = False

    @property
    def masked(self) -> str:
        return f"{self.key[:7]}…{self.key[-4:]}" if len(self.key) > 16 else "…"


class ServiceAddress(NamedTuple):
    """The address of a service, and the facts that decide which key is sent there."""

    base_url: str
    #: The path of the local admin key; None unless the local daemon has proved that it listens at this address.
    admin_key: Path | None = None
    #: The certificate, in PEM form, if this is a local daemon that uses https.
    certificate: str | None = None
    #: Makes the local daemon prove on each new connection that it is at the other end.
    proof: "Callable[[HTTPConnection], None] | None" = None

    @property
    def origin(self) -> str:
        return origin_of(self.base_url)


def origin_of(base_url: str) -> str:
    """Return scheme, host and port in canonical form. Raises UsageError if it is not an http or https URL.

    User names and white space are refused: they can make an address look like that of another host. No error shows the
    password of an address.
    """
    if "@" in base_url or any(character.isspace() or not character.isprintable() for character in base_url):
        raise UsageError(
            "The address of a service has no user name, no password, no `@` and no white space in it.",
            hint="it looks like http://127.0.0.1:7820; keys are given by `svc auth login`.",
        )
    like = "it looks like http://127.0.0.1:7820."
    try:
        parts = urlsplit(base_url)
        port = parts.port
    except ValueError as error:
        raise UsageError(f"{base_url!r} has a malformed host or port.", hint=like) from error
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError(f"{base_url!r} is not an http address.", hint=like)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}:{port or (443 if parts.scheme == 'https' else 80)}"


def find_key(environ: Mapping[str, str], to: ServiceAddress, *, is_node: bool = False) -> Credential:
    """Return the key from the environment, the key file, `svc auth login` or the local admin key, in this order.

    `is_node` says that the service is a node of a cluster, most of which have no admin key. Raises NotAuthenticated
    if there is no key.
    """
    if environ.get("SVC_API_KEY"):
        return Credential(check_key(environ["SVC_API_KEY"], "SVC_API_KEY"), "environment SVC_API_KEY")
    if path := environ.get("SVC_API_KEY_FILE"):
        return Credential(read_key(Path(path).expanduser()), f"SVC_API_KEY_FILE {path}")
    stored = CredentialFile(environ).get(to.origin)
    if stored:
        return stored
    if to.admin_key:
        try:
            return Credential(read_key(to.admin_key), str(to.admin_key))
        except UsageError as error:
            if is_node and not to.admin_key.exists():
                message = "No key is on this node of a cluster: only its first node has the admin key."
                raise NotAuthenticated(message, hint=ADMIN_HINT, details={"on_node": True}) from error
            raise NotAuthenticated(f"The key of this installation is lost: {error.message}", hint=ADMIN_HINT) from error
    raise NotAuthenticated(f"No API key is known for {to.origin}.", hint=LOGIN_HINT)


class CredentialFile:
    """The file in which `svc auth login` stores keys; only this user can read it."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.path = paths.config_dir(environ) / "credentials.json"

    def get(self, origin: str) -> Credential | None:
        row = self._read().get(origin)
        if row is None:
            return None
        return Credential(row["key"], str(self.path), row.get("installation_id"), row.get("is_local") is True)

    def store(self, origin: str, key: str, installation_id: str, *, is_local: bool = False) -> None:
        row = {"key": key, "installation_id": installation_id, "is_local": is_local}
        replace(self.path, json.dumps({**self._read(), origin: row}, indent=2))

    def forget(self, origin: str) -> bool:
        """Remove the key of an origin; returns False if there was none."""
        keys = self._read()
        if keys.pop(origin, None) is None:
            return False
        replace(self.path, json.dumps(keys, indent=2))
        return True

    def _read(self) -> dict[str, dict[str, Any]]:
        return {origin: row for origin, row in read_rows(self.path).items() if "key" in row}


def check_key(text: str, source: str) -> str:
    """Return the key without surrounding white space. Raises UsageError if it can't be sent in a header."""
    key = text.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise UsageError(f"{source} holds no API key.", hint="a key is one line that starts with sk-.")
    return key


def read_key(path: Path) -> str:
    """Return the key in a file. Raises UsageError if the file can't be read, or holds no key."""
    try:
        return check_key(read_given(path, KEY_BYTES).decode("utf-8-sig"), str(path))
    except OSError as error:
        raise UsageError(f"The key file {path} can't be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"The key file {path} can't be read: it is not UTF-8 text.") from error
