"""Checks which service answers at an address, and its certificate, without sending it an API key.

Another user's program may listen on the daemon's port. So the local daemon must first prove that it knows the secret in
its data directory.
"""

import os
import re
import secrets
import socket
import ssl
import time
from dataclasses import dataclass
from functools import cache, partial
from hmac import compare_digest
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from ssl import SSLCertVerificationError, SSLError
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from svc_cli.credentials import Credential, origin_of
from svc_cli.errors import HINTS, DaemonUnreachable, Incompatible, NotAuthenticated, UsageError
from svc_cli.http_responses import LimitedResponse, OddResponse, parse_answer
from svc_daemon.wire.light.local_daemons import pin, prove, read_secret
from svc_daemon.wire.light.versions import API_NEWEST, API_OLDEST, API_RANGE, VERSION


def tls_context(certificate: str | None = None) -> ssl.SSLContext:
    """Return the TLS context for connections to a service.

    If `certificate` (in PEM form) is given, only this certificate is accepted. Otherwise, the authorities in
    SSL_CERT_FILE or SSL_CERT_DIR are trusted; if neither is set, those of the package certifi.
    Raises UsageError if the file can't be used.
    """
    if certificate is not None:
        return _pinned(certificate)
    return _trusting(os.environ.get("SSL_CERT_FILE") or None, os.environ.get("SSL_CERT_DIR") or None)


_pinned = cache(pin)


@cache
def _trusting(file: str | None, folder: str | None) -> ssl.SSLContext:
    import certifi

    try:
        context = ssl.create_default_context(cafile=file or (None if folder else certifi.where()), capath=folder)
    except OSError as error:
        # The `strerror` of an SSLError doesn't explain the problem.
        reason = "it has no certificates in PEM form" if isinstance(error, ssl.SSLError) else error.strerror
        raise UsageError(f"SSL_CERT_FILE names {file}, which can't be used: {reason}.") from error
    if folder and not os.path.isdir(folder):  # noqa: PTH112 - OpenSSL itself says nothing
        raise UsageError(f"SSL_CERT_DIR names {folder}, which is not a folder.")
    context.set_alpn_protocols(["http/1.1"])
    return context


#: Seconds to wait for the whole answer, long enough for a busy daemon.
PROBE_TIMEOUT_S = 5.0
#: Maximum size of the answer.
MOST_BYTES = 64 * 1024
#: Maximum length of a version.
MOST_CHARACTERS = 64
_INSTALLATION_ID = re.compile(r"ins_[0-9a-z]{1,64}")


class DaemonHealth(NamedTuple):
    """The answer of an svc daemon to `/healthz`."""

    installation_id: str
    version: str
    api: str
    #: The whole JSON object of the answer.
    answer: dict[str, Any]
    #: Whether the daemon has proved that it knows the secret in the data directory.
    is_proven: bool = False
    #: The connection on which it answered, if that was kept open.
    connection: HTTPConnection | None = None

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()

    @property
    def away(self) -> dict[str, str]:
        """What is wrong with each engine of a cluster that the daemon can't use, by the engine's name."""
        engines = self.answer.get("engines") or ()
        return {each["name"]: f"{each['message']} Since {each['since']}." for each in engines if each["message"]}


class Foreign(NamedTuple):
    """The result of `probe` if no svc daemon answered in time."""

    reason: str
    #: Whether nothing came in time; the daemon may hang.
    is_silent: bool = False
    #: The code of the error that says so.
    code: str = "svc_port_taken"
    #: What the user can do.
    hint: str | None = None


def probe(
    base_url: str,
    timeout_s: float = PROBE_TIMEOUT_S,
    secret: bytes | None = None,
    certificate: str | None = None,
    *,
    keep_open: bool = False,
) -> DaemonHealth | Foreign | None:
    """Request `/healthz`, and check that the daemon knows `secret`, if given. Returns None if nothing listens there.

    If `certificate` is given, an https server must have exactly this certificate. With `keep_open`, the connection to
    a daemon that answers is returned, too: for a service that is far away, to connect takes longer than to ask.
    """
    until_s = time.monotonic() + timeout_s
    connection = _connect(base_url, timeout_s, certificate)
    if not isinstance(connection, HTTPConnection):
        return connection
    is_kept = False
    try:
        seen = _ask(connection, urlsplit(base_url).path.rstrip("/"), secret, until_s)
        is_kept = keep_open and isinstance(seen, DaemonHealth)
        return seen._replace(connection=connection) if is_kept and isinstance(seen, DaemonHealth) else seen
    except TimeoutError:
        return Foreign("it does not answer", is_silent=True)
    except OddResponse as error:
        return Foreign(str(error))
    except (HTTPException, OSError) as error:
        hint = None if base_url.startswith("https:") else "if it serves HTTPS, its address begins with https://."
        return Foreign(f"it does not speak HTTP ({type(error).__name__})", hint=hint)
    finally:
        if not is_kept:
            connection.close()


@dataclass(frozen=True, slots=True)
class LocalProof:
    """Demands of each connection that the local daemon proves to be at its other end.

    The daemon may stop at any time, and another program may then listen on its port.
    """

    installation_id: str
    #: The file with the secret, which is read each time.
    secret: Path

    def __call__(self, connection: HTTPConnection) -> None:
        """Raise DaemonUnreachable if the other end is not the daemon, and HTTPException if the answer doesn't say."""
        secret = read_secret(self.secret)
        seen = _ask(connection, "", secret, time.monotonic() + PROBE_TIMEOUT_S)
        if isinstance(seen, Foreign):
            raise HTTPException(f"before anything was sent, {seen.reason}")
        if not seen.is_proven or seen.installation_id != self.installation_id:
            raise DaemonUnreachable(
                f"What answers at {connection.host}:{connection.port} now did not prove that it is the daemon of "
                f"{self.secret.parent}; nothing was sent.",
                code="svc_daemon_unproven",
                hint="`svc daemon status` shows whether the daemon is running, and where.",
            )


def get_health(
    base_url: str, secret: bytes | None, certificate: str | None = None, *, keep_open: bool = False
) -> DaemonHealth:
    """Return the health of the service at this address. Raises DaemonUnreachable if no svc service answers."""
    origin = origin_of(base_url)
    seen = probe(base_url.rstrip("/"), secret=secret, certificate=certificate, keep_open=keep_open)
    if isinstance(seen, DaemonHealth):
        return seen
    parts = urlsplit(base_url)
    if isinstance(seen, Foreign):
        start = _MESSAGES.get(seen.code, "What listens at {origin} is not svc").format(origin=origin)
        hint = seen.hint or "`svc config list --explain` shows where the address comes from."
        # The user may have given the address that OpenAI's clients take, which ends with /v1.
        if parts.path.rstrip("/").endswith("/v1") and seen.code == "svc_port_taken":
            hint = "leave out the /v1 at the end of the address: svc adds it."
        raise DaemonUnreachable(f"{start}: {seen.reason}.", code=seen.code, hint=hint, details={"address": origin})
    message = f"Nothing answers at {origin}."
    try:
        socket.getaddrinfo(parts.hostname, None)
    except (OSError, UnicodeError):
        message = f"Nothing answers at {origin}: the host name can't be resolved."
    raise DaemonUnreachable(
        message,
        hint="`svc config list --explain` shows where the address comes from; only a local daemon starts by itself.",
        details={"address": origin},
    )


def refuse_other_installation(credential: Credential, health: DaemonHealth, origin: str) -> None:
    """Raise NotAuthenticated if a stored key belongs to another installation than the one that answers.

    A remote service can't prove that it is the one. A local daemon that has proved it once has to do so again.
    """
    is_other = credential.installation_id not in {None, health.installation_id}
    if is_other or (credential.is_local and not health.is_proven):
        raise NotAuthenticated(
            f"The installation at {origin} is not the one that the stored key belongs to; the key was not sent.",
            code="svc_installation_changed",
            hint="if you expected this, `svc auth login` stores a key for the new installation.",
            details={"expected": credential.installation_id, "found": health.installation_id},
        )


def _ask(connection: HTTPConnection, path: str, secret: bytes | None, until_s: float) -> DaemonHealth | Foreign:
    """Request `/healthz` on an open connection, and read the answer until this time. Raises OSError and HTTPException.

    A server may send its answer byte by byte, or interim responses without end.
    """
    left_s = max(0.001, until_s - time.monotonic())
    connection.sock.settimeout(left_s)
    connection.response_class = partial(LimitedResponse, silence_s=left_s, until_s=until_s)  # type: ignore[assignment]
    nonce = secrets.token_hex(16)
    query = f"?nonce={nonce}" if secret else ""
    connection.request("GET", f"{path}/healthz{query}", headers={"Svc-Api": API_RANGE})
    response: LimitedResponse = connection.getresponse()  # type: ignore[assignment]
    seen = _read_health(response.status, response.read_whole(MOST_BYTES))
    if secret is None or isinstance(seen, Foreign):
        return seen
    proof, given = prove(secret, seen.installation_id, connection.port, nonce), seen.answer.get("proof")
    return seen._replace(is_proven=isinstance(given, str) and compare_digest(given.encode(), proof.encode()))


#: What the messages begin with, by their codes.
_MESSAGES = {
    "svc_certificate_refused": "The certificate of {origin} is not trusted",
    "host_not_allowed": "The service at {origin} can't be called by this name",
}
_AUTHORITY_HINT = "SSL_CERT_FILE may name a file with the certificate of a private authority."
#: What else helps if a certificate is refused, by OpenSSL's number of the reason.
_VERIFY_HINTS = {
    9: "the certificate is not valid yet: check the clock of this machine and of the service's.",
    10: "its operator has to renew it, then `svc daemon restart` there.",
    62: "use one of the names in the certificate; where the service runs, `svc daemon status` shows them.",
    64: "use one of the names in the certificate; where the service runs, `svc daemon status` shows them.",
}


def _connect(base_url: str, timeout_s: float, certificate: str | None) -> HTTPConnection | Foreign | None:
    parts = urlsplit(base_url)
    host, port = parts.hostname or "", parts.port
    try:
        if parts.scheme == "https":
            tls = tls_context(certificate)
            connection: HTTPConnection = HTTPSConnection(host, port, timeout=timeout_s, context=tls)
        else:
            connection = HTTPConnection(host, port, timeout=timeout_s)
        connection.connect()
    except TimeoutError:
        # A daemon that hangs leaves it to the system to accept connections, which then get no further.
        return Foreign("it accepts no connection", is_silent=True)
    except SSLCertVerificationError as error:
        # Another authority helps neither a certificate for other names nor one that has expired.
        hint = _VERIFY_HINTS.get(error.verify_code, _AUTHORITY_HINT)
        return Foreign(error.verify_message.rstrip("."), code="svc_certificate_refused", hint=hint)
    except SSLError as error:
        return Foreign(f"it does not speak TLS ({error.reason})", hint="if it serves no HTTPS, write http://.")
    except (OSError, UnicodeError):
        # UnicodeError: a part of the host name is empty or too long.
        return None
    return connection


def check_api(health: DaemonHealth, where: str) -> None:
    """Raise Incompatible if the daemon and this `svc` have no API version in common."""
    match = re.fullmatch(r"(\d+)-(\d+)", health.api)
    if match and int(match[1]) <= API_NEWEST and int(match[2]) >= API_OLDEST:
        return
    raise Incompatible(
        f"The daemon {health.version} at {where} speaks API {health.api}, this svc {VERSION} speaks {API_RANGE}.",
        hint="install the same release on both sides, then `svc daemon restart`.",
        details={"daemon_api": health.api, "client_api": API_RANGE, "daemon_version": health.version},
    )


def _read_health(status: int, body: bytearray) -> DaemonHealth | Foreign:
    try:
        answer = parse_answer(body)
    except ValueError:
        return Foreign(f"it answered {status} with something that is not JSON")
    error = answer.get("error") if isinstance(answer, dict) else None
    if isinstance(error, dict) and error.get("code") == "host_not_allowed":
        return Foreign("its settings don't allow it", code="host_not_allowed", hint=HINTS["host_not_allowed"])
    if not isinstance(answer, dict) or not _INSTALLATION_ID.fullmatch(str(answer.get("installation_id"))):
        return Foreign(f"it answered {status} without an installation id")
    version, api = str(answer.get("version")), str(answer.get("api"))
    if not all(len(each) <= MOST_CHARACTERS and each.isascii() and each.isprintable() for each in (version, api)):
        return Foreign(f"it answered {status} without a version")
    return DaemonHealth(answer["installation_id"], version, api, answer)
