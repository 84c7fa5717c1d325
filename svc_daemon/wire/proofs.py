"""Lets a daemon prove to the command line that it serves a given data directory.

Both read the installation's secret from a file that only its user can read. The daemon answers a nonce with a MAC, so a
program that listens on the port of a dead daemon can't impersonate it. The MAC covers the port, so that the response of
another daemon can't be relayed.
"""

import hashlib
import hmac

#: Number of random bytes in the secret.
SECRET_BYTES = 32
#: Allowed lengths of a nonce, in characters.
NONCE_CHARACTERS = range(16, 129)


def parse_secret(text: str) -> bytes | None:
    """Parse the content of the secret's file. Returns None if it is damaged."""
    try:
        secret = bytes.fromhex(text.strip())
    except ValueError:
        return None
    return secret if len(secret) == SECRET_BYTES else None


def prove(secret: bytes, installation_id: str, port: int | None, nonce: str) -> str:
    """Return the proof in hex, for the port on which the daemon was reached."""
    return hmac.new(secret, f"health:{installation_id}:{port}:{nonce}".encode(), hashlib.sha256).hexdigest()
