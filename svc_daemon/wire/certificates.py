"""How programs that can read the data directory trust the daemon's certificate.

The daemon writes its certificate to `daemon.json`, which only its user can read. Programs that read this file accept
only that certificate, and check neither a certificate authority nor a host name.
"""

import ssl

#: OpenSSL's X509_V_FLAG_NO_CHECK_TIME: accept an expired certificate too, so that its daemon can still be managed.
_NO_CHECK_TIME = 0x20_0000


def pin(pem: str) -> ssl.SSLContext:
    """Return a client's TLS context that accepts only this certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | _NO_CHECK_TIME
    context.load_verify_locations(cadata=pem)
    return context
