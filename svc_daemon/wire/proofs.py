"""Lets a daemon prove to the command line that it serves a given data directory.

Both read a secret from a file that only its user can read. The command line sends a random text (nonce), and the daemon
answers with a MAC of it. So no other program on the port of a dead daemon can impersonate it. The MAC covers the port,
so that no answer from another port is accepted.
"""

import hashlib
import hmac

#: Number of random bytes in the secret.
SECRET_BYTES = 32
#: Allowed lengths of a nonce, in characters.
NONCE_CHARACTERS = range(16, 129)


def parse_secret(text: str) -> bytes | None:
    """Parse the file with the secret. Returns None if it is damaged."""
    try:
        secret = bytes.fromhex(text.strip())
    except ValueError:
        return None
    return secret if len(secret) == SECRET_BYTES else None


def prove(secret: bytes, installation_id: str, port: int | None, nonce: str) -> str:
    """Compute the daemon's answer to a nonce, for the port at which it was reached."""
    return hmac.new(secret, f"health:{installation_id}:{port}:{nonce}".encode(), hashlib.sha256).hexdigest()
