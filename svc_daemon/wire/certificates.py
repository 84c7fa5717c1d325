"""How programs with access to the data directory trust the daemon's certificate.

The daemon writes its certificate to a file that only its user can read. A program that has read the file accepts only
this certificate, so it needs to check neither an authority nor a host name.
"""

import ssl

#: X509_V_FLAG_NO_CHECK_TIME of OpenSSL: an expired certificate is accepted, so that its daemon can still be managed.
_NO_CHECK_TIME = 0x20_0000


def pin(pem: str) -> ssl.SSLContext:
    """Return a TLS context for clients that accepts only this certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | _NO_CHECK_TIME
    context.load_verify_locations(cadata=pem)
    return context
