"""Decides which TLS certificates `svc` accepts from a service at an https address."""

import os
import ssl
from functools import cache

from svc_cli.errors import UsageError
from svc_daemon.wire.certificates import pin


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
    context.set_alpn_protocols(["http/1.1"])
    return context
