"""How clients on the daemon's machine recognize it: by its certificate, and by a proof.

The daemon writes its certificate to `daemon.json`, where clients of the same user read it.

It also notes there with which settings it was started, as digests, since some are keys.

The command line sends a random text (nonce), and the daemon answers with a MAC of the nonce. The MAC needs a
secret from the data directory, so a program of another user can't impersonate the daemon.
"""

import hashlib
import hmac
import os
import ssl
import stat
from collections.abc import Mapping
from pathlib import Path

#: OpenSSL's X509_V_FLAG_NO_CHECK_TIME: accept an expired certificate, so that clients can still reach its daemon.
_NO_CHECK_TIME = 0x20_0000


def pin(pem: str) -> ssl.SSLContext:
    """Return a client's TLS context that accepts only this certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | _NO_CHECK_TIME
    context.load_verify_locations(cadata=pem)
    return context


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


def read_secret(path: Path) -> bytes | None:
    """Read the secret. Returns None if the file is missing or damaged, or if another user may have written it."""
    try:
        with path.open("rb") as file:
            facts, text = os.fstat(file.fileno()), file.read(4 * SECRET_BYTES)
        secret = parse_secret(text.decode("ascii"))
    except (OSError, UnicodeDecodeError):
        return None
    # The operator may act for the user that runs the daemon.
    is_own = os.geteuid() in {0, facts.st_uid} or facts.st_uid == 0
    return secret if is_own and not facts.st_mode & stat.S_IWOTH else None


def prove(secret: bytes, installation_id: str, port: int | None, nonce: str) -> str:
    """Compute the daemon's answer to a nonce. `port` is the port to which the nonce was sent."""
    return hmac.new(secret, f"health:{installation_id}:{port}:{nonce}".encode(), hashlib.sha256).hexdigest()


#: The reserve of free disk space, unless SVC_LIMIT_FREE_DISK_BYTES sets another.
FREE_DISK_BYTES = 256 * 1024**2


def least_free_bytes(reserve_bytes: int, total_bytes: int) -> int:
    """Return the free bytes of a disk below which uploads are refused; 0 if nothing is kept in reserve.

    The reserve is `reserve_bytes` or 2 % of the disk (at most 1 GB), whichever is larger.
    """
    return max(reserve_bytes, min(total_bytes // 50, 1024**3)) if reserve_bytes else 0


#: The daemon's settings, except for those with which it is found and its limits, which it tells itself.
SETTINGS = (
    *(f"SVC_{model}_{part}" for model in ("LLM", "EMBED") for part in ("BASE_URL", "MODEL", "API_KEY", "API_KEY_FILE")),
    *(f"SVC_{part}" for part in ("TLS_CERT", "TLS_KEY", "ALLOWED_HOSTS", "ALLOWED_ORIGINS", "FETCH_ALLOW")),
    *(f"SVC_{part}" for part in ("CONSOLE", "OCR", "REREAD", "TRACES", "LOG_LEVEL")),
    *(f"SVC_{part}" for part in ("STATE_URL", "BLOBS_URL", "INDEX_URL", "INDEX_TOKEN")),
)


def digest_settings(environ: Mapping[str, str], installation_id: str) -> dict[str, str]:
    """Map the daemon's settings that are set to digests of their values."""
    return {
        name: hashlib.sha256(f"{installation_id}:{name}={environ[name]}".encode(errors="replace")).hexdigest()
        for name in SETTINGS
        if environ.get(name)
    }
