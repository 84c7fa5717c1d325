"""Lets a daemon prove to the command line that it serves a given data directory.

The command line sends a random text (nonce), and the daemon answers with a MAC of the nonce. The MAC needs a
secret from the data directory, so a program of another user can't impersonate the daemon.
"""

import hashlib
import hmac

#: Number of random bytes in the secret.
SECRET_BYTES = 32
#: Allowed lengths of a nonce, in characters.
NONCE_CHARACTERS = range(16, 129)


def parse_secret(text: str) -> bytes | None:
    """Parse the content of the secret file. Returns None if the content is damaged."""
    try:
        secret = bytes.fromhex(text.strip())
    except ValueError:
        return None
    return secret if len(secret) == SECRET_BYTES else None


def prove(secret: bytes, installation_id: str, port: int | None, nonce: str) -> str:
    """Compute the daemon's answer to a nonce. `port` is the port to which the nonce was sent."""
    return hmac.new(secret, f"health:{installation_id}:{port}:{nonce}".encode(), hashlib.sha256).hexdigest()
