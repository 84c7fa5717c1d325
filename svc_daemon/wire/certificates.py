"""Lets clients on the daemon's machine accept the daemon's certificate, and no other certificate.

The daemon writes its certificate to `daemon.json`, where clients of the same user read it.
"""

import ssl

#: OpenSSL's X509_V_FLAG_NO_CHECK_TIME: accept an expired certificate, so that clients can still reach its daemon.
_NO_CHECK_TIME = 0x20_0000


def pin(pem: str) -> ssl.SSLContext:
    """Return a client's TLS context that accepts only this certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | _NO_CHECK_TIME
    context.load_verify_locations(cadata=pem)
    return context
