"""How programs with access to the data directory trust the daemon's certificate.

The daemon writes its certificate into a file that only its user can read. A program that has read it needs no authority
and no host name: the service at the other end must have the key of just this certificate.
"""

import ssl

#: X509_V_FLAG_NO_CHECK_TIME of OpenSSL. The daemon must remain manageable when its certificate has expired.
_NO_CHECK_TIME = 0x20_0000


def pin(pem: str) -> ssl.SSLContext:
    """Return a client's TLS context that accepts this certificate, and no other."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | _NO_CHECK_TIME
    context.load_verify_locations(cadata=pem)
    return context
