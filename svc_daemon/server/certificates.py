"""Loads the daemon's certificate, and checks at startup that clients can accept it."""

import re
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from svc_daemon.core.times import to_text
from svc_daemon.settings.limits import SettingError
from svc_daemon.settings.servers import TlsFiles

_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ServerCertificate:
    """A certificate that is valid now, with its key."""

    context: ssl.SSLContext
    #: The certificate alone, without the authorities' certificates that follow it in the file.
    pem: str
    #: The host names and addresses for which it is valid.
    names: tuple[str, ...]
    expires_at: str


def load_certificate(files: TlsFiles) -> ServerCertificate:
    """Load certificate and key. Raises SettingError if they are unreadable, don't match, or are not valid now."""
    found = _CERTIFICATE.search(_read("SVC_TLS_CERT", files.certificate))
    if found is None:
        raise SettingError(f"SVC_TLS_CERT names {files.certificate}, which has no certificate in PEM form.")
    _read("SVC_TLS_KEY", files.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(["http/1.1"])
    # Clients could overload the daemon: a renegotiation costs the daemon far more processor time than the client.
    context.options |= ssl.OP_NO_RENEGOTIATION
    try:
        # Without a password, OpenSSL would ask for one on the terminal.
        context.load_cert_chain(files.certificate, files.key, password="")
    except (ssl.SSLError, ValueError) as error:
        reason = (getattr(error, "reason", None) or "").replace("_", " ").lower() or "it may need a passphrase"
        raise SettingError(
            f"SVC_TLS_KEY names {files.key}, which is not the private key of {files.certificate} ({reason})."
        ) from error
    try:
        seen = _shake_hands(context, found[0])
    except ssl.SSLError as error:
        reason = getattr(error, "verify_message", None) or error.reason or "the handshake fails"
        raise SettingError(
            f"SVC_TLS_CERT names {files.certificate}, which clients would not accept: {reason}."
        ) from error
    expires_s = ssl.cert_time_to_seconds(str(seen["notAfter"]))
    names = tuple(name for kind, name in seen.get("subjectAltName", ()) if kind in {"DNS", "IP Address"})
    return ServerCertificate(context, found[0], names, to_text(datetime.fromtimestamp(expires_s, UTC)))


def _read(variable: str, path: Path) -> str:
    try:
        return path.read_text("ascii")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not a PEM file"
        raise SettingError(f"{variable} names {path}, which can't be read: {reason}.") from error


def _shake_hands(context: ssl.SSLContext, pem: str) -> dict[str, Any]:
    """Return a certificate's fields. Raises SSLError if clients would refuse the certificate.

    The standard library reads the fields only during a TLS handshake, so this function makes a handshake in memory.
    """
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname = False
    trusting.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    trusting.load_verify_locations(cadata=pem)
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    client, server = trusting.wrap_bio(down, up), context.wrap_bio(up, down, server_side=True)
    waiting = [client, server]
    while waiting:
        side = waiting.pop(0)
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            waiting.append(side)
    seen: dict[str, Any] | None = client.getpeercert()
    if seen is None:
        raise ssl.SSLError("the server sent no certificate")
    return seen
