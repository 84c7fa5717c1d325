"""How programs with access to the data directory trust the daemon's certificate.

The daemon writes its certificate to a file of its user. Programs that read the file accept only this certificate, and
check neither an authority nor a host name.
"""

import ssl

#: X509_V_FLAG_NO_CHECK_TIME of OpenSSL. A daemon with an expired certificate can still be managed.
_NO_CHECK_TIME = 0x20_0000


def pin(pem: str) -> ssl.SSLContext:
    """Return a client's TLS context that accepts only this certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | _NO_CHECK_TIME
    context.load_verify_locations(cadata=pem)
    return context
