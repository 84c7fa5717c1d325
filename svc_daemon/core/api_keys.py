"""API keys: their form, what they may do, and which capability each preset holds.

A key reads `sk-<key id part><secret><checksum>`. The id part finds the row, the 256-bit secret is compared by its
SHA-256, and the checksum tells a mistyped key from a wrong one without asking the database.
"""

import base64
import hashlib
import hmac
import zlib
from dataclasses import dataclass

PREFIX = "sk-"
#: Characters of the id part (a ULID), the secret (32 bytes in base 32) and the checksum (CRC-32 in hex).
ID_LENGTH, SECRET_LENGTH, CHECKSUM_LENGTH = 26, 52, 8

FILE_CREATE = "knowledge:file:create"
BUCKET_CREATE = "knowledge:bucket:create"
READ = "knowledge:read"
BUCKET_UPDATE = "knowledge:bucket:update"
BUCKET_DELETE = "knowledge:bucket:delete"
SOURCE_DELETE = "knowledge:source:delete"
SEARCH = "knowledge:search"
AGENT_READ = "agent:read"
AGENT_MANAGE = "agent:manage"
ANSWER_CREATE = "answer:create"
WEBHOOK_MANAGE = "webhook:manage"
KEY_MANAGE = "key:manage"

CAPABILITIES = (
    FILE_CREATE,
    BUCKET_CREATE,
    READ,
    BUCKET_UPDATE,
    BUCKET_DELETE,
    SOURCE_DELETE,
    SEARCH,
    AGENT_READ,
    AGENT_MANAGE,
    ANSWER_CREATE,
    WEBHOOK_MANAGE,
    KEY_MANAGE,
)
PRESETS: dict[str, tuple[str, ...]] = {
    "admin": CAPABILITIES,
    "ingest": (FILE_CREATE, BUCKET_CREATE, SOURCE_DELETE),
    "read": (READ, SEARCH, AGENT_READ, ANSWER_CREATE),
}


@dataclass(frozen=True, slots=True)
class KeyParts:
    """A well-formed key, taken apart."""

    key_id: str
    secret: str

    @property
    def secret_hash(self) -> str:
        return hash_secret(self.secret)


def mint(key_id: str, secret: bytes) -> str:
    """The text of a key with 32 random bytes; the one time it exists in clear."""
    if len(secret) != 32:
        raise ValueError("a key's secret has 32 bytes")
    body = key_id.removeprefix("key_") + base64.b32encode(secret).decode().rstrip("=").lower()
    return PREFIX + body + _checksum(body)


def parse(text: str) -> KeyParts | None:
    """The parts of a well-formed key, else None."""
    body, checksum = text.removeprefix(PREFIX)[:-CHECKSUM_LENGTH], text[-CHECKSUM_LENGTH:]
    if not text.startswith(PREFIX) or not text.isascii() or len(body) != ID_LENGTH + SECRET_LENGTH:
        return None
    if checksum != _checksum(body):
        return None
    return KeyParts(key_id=f"key_{body[:ID_LENGTH]}", secret=body[ID_LENGTH:])


def hint(key_id: str) -> str:
    """How the key of this id begins, up to its secret: enough to find it by, nothing to use it with."""
    return f"{PREFIX}{key_id.removeprefix('key_')}…"


def hash_secret(secret: str) -> str:
    """SHA-256 is enough for 256 random bits: there is nothing to guess."""
    return hashlib.sha256(secret.encode()).hexdigest()


def matches(secret_hash: str, parts: KeyParts) -> bool:
    return hmac.compare_digest(secret_hash, parts.secret_hash)


def _checksum(body: str) -> str:
    return f"{zlib.crc32(body.encode()):08x}"
