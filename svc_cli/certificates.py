"""Which certificates are accepted of services at https addresses."""

import os
import ssl
from functools import cache

from svc_cli.errors import UsageError
from svc_daemon.wire.certificates import pin


def tls_context(certificate: str | None = None) -> ssl.SSLContext:
    """Return the TLS context for connections to a service.

    With `certificate`, in PEM form, only that one is accepted: it comes from the data directory of the local daemon.
    Otherwise the authorities of SSL_CERT_FILE and SSL_CERT_DIR are trusted, as other programs do it; without these
    variables, those of certifi, which are the same on every system. Raises UsageError if the file can't be used.
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
        # An SSLError has no `strerror` that explains anything.
        reason = "it has no certificates in PEM form" if isinstance(error, ssl.SSLError) else error.strerror
        raise UsageError(f"SSL_CERT_FILE names {file}, which can't be used: {reason}.") from error
    context.set_alpn_protocols(["http/1.1"])
    return context
