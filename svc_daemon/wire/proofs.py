"""How a daemon proves to the command line that it is the one of a data directory.

Both read the installation's secret, a file that only its user can: the daemon answers a number that was never used
before with its MAC, so that a program that took a dead daemon's port can't. The port is part of it, so that no answer
of a daemon elsewhere can be passed on.
"""

import hashlib
import hmac

#: Random bytes in the secret.
SECRET_BYTES = 32
#: A nonce has so many characters.
NONCE_CHARACTERS = range(16, 129)


def parse_secret(text: str) -> bytes | None:
    """The secret in the text of its file, None where that is damaged."""
    try:
        secret = bytes.fromhex(text.strip())
    except ValueError:
        return None
    return secret if len(secret) == SECRET_BYTES else None


def prove(secret: bytes, installation_id: str, port: int | None, nonce: str) -> str:
    """The proof in hex, for the port that the daemon was reached at."""
    return hmac.new(secret, f"health:{installation_id}:{port}:{nonce}".encode(), hashlib.sha256).hexdigest()
