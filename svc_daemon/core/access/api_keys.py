"""API keys and the secrets that sign webhook calls: their formats, and what a key may do.

A key has the form `sk-<key id part><secret><checksum>`. The checksum detects typing errors. Of the secret, the
database has only the SHA-256.

A new key never permits more than its maker, the key that creates it:

    capabilities    listed, or given by a preset; the maker must have each capability
    buckets         by default the maker's; the maker must have access to each bucket
    models          by default the maker's; the maker must be allowed to use each model
    expires_at      by default the maker's; not later than the maker's

A key can list and revoke itself, and all keys that it could have created, whatever their expiry.

A console session begins with a code, which is used once: it becomes an ordinary key of 12 hours with what its maker
permits. The code and then the key are the secret of the same row, so that listing and revoking know only keys. A key of
the console ends with its maker.

A team's secret is derived from the installation's secret and a generation number, which grows whenever the team gets a
new secret. For some time after that, calls are also signed with the previous secret.
"""

import base64
import hashlib
import hmac
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from svc_daemon.core.access.model_ids import agent_of, is_allowed, is_model
from svc_daemon.core.ids import BUCKET, SHAPES
from svc_daemon.core.json_bodies import refusal
from svc_daemon.core.times import from_text, to_text
from svc_daemon.errors import ServiceError
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.light.names import find_fault_of_name

PREFIX = "sk-"
#: Begins the code that is exchanged for a key of the console.
CODE_PREFIX = "sc-"
#: How long such a code can be exchanged, and how long its key is valid.
CODE_LIFE, CONSOLE_LIFE = timedelta(seconds=60), timedelta(hours=12)
#: Lengths in characters of the id part (a ULID), the secret (32 bytes in base 32) and the checksum (CRC-32 in hex).
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
#: What the lists of a stored key can have. Anything else permits nothing, and counts as missing.
GRANTABLE: Mapping[str, Callable[[str], object]] = {
    "capabilities": CAPABILITIES.__contains__,
    "buckets": SHAPES[BUCKET].fullmatch,
    "models": is_model,
}
#: Each of these allows listing buckets: what a key may create, it may also list.
LIST_BUCKETS = (READ, FILE_CREATE, BUCKET_CREATE)
#: Each of these allows listing sources and events, and showing upload sessions and batches.
LIST_SOURCES = (READ, FILE_CREATE)
#: Each of these allows showing a bucket.
SHOW_BUCKET = (*LIST_BUCKETS, BUCKET_UPDATE, BUCKET_DELETE)
#: Each of these allows showing a source or task whose id is known.
SHOW_SOURCE = (*LIST_SOURCES, SOURCE_DELETE, BUCKET_DELETE, SEARCH)
PRESETS: dict[str, tuple[str, ...]] = {
    "admin": CAPABILITIES,
    "ingest": (FILE_CREATE, BUCKET_CREATE, SOURCE_DELETE),
    "read": (READ, SEARCH, AGENT_READ, ANSWER_CREATE),
}


@dataclass(frozen=True, slots=True)
class KeyParts:
    """The id and the secret of a well-formed key."""

    key_id: str
    secret: str

    @property
    def secret_hash(self) -> str:
        return hash_secret(self.secret)


def mint(key_id: str, secret: bytes, prefix: str = PREFIX) -> str:
    """Return the text of a new key, made from its id and 32 random bytes. The database never has this text.

    With `CODE_PREFIX`, it is the code of a console session.
    """
    if len(secret) != 32:
        raise ValueError("a key's secret has 32 bytes")
    body = key_id.removeprefix("key_") + base64.b32encode(secret).decode().rstrip("=").lower()
    return prefix + body + _checksum(body)


def parse(text: str, prefix: str = PREFIX) -> KeyParts | None:
    """Split a key, or with `CODE_PREFIX` a code, into its parts; None if it is malformed."""
    body, checksum = text.removeprefix(prefix)[:-CHECKSUM_LENGTH], text[-CHECKSUM_LENGTH:]
    if not text.startswith(prefix) or not text.isascii() or len(body) != ID_LENGTH + SECRET_LENGTH:
        return None
    if checksum != _checksum(body):
        return None
    # With its prefix, so that nobody can use the secret of a code as that of a key.
    secret = body[ID_LENGTH:] if prefix == PREFIX else prefix + body[ID_LENGTH:]
    return KeyParts(key_id=f"key_{body[:ID_LENGTH]}", secret=secret)


def hint(key_id: str) -> str:
    """Return the start of the key's text, without the secret, so that users recognize the key."""
    return f"{PREFIX}{key_id.removeprefix('key_')}…"


def hash_secret(secret: str) -> str:
    """Hash a secret with SHA-256; 256 random bits need no slower hash."""
    return hashlib.sha256(secret.encode()).hexdigest()


def matches(secret_hash: str, parts: KeyParts) -> bool:
    return hmac.compare_digest(secret_hash, parts.secret_hash)


def _checksum(body: str) -> str:
    return f"{zlib.crc32(body.encode()):08x}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a key permits."""

    capabilities: tuple[str, ...]
    #: Ids of the buckets that the key may use; None means all.
    buckets: tuple[str, ...] | None = None
    #: Model ids that the key may use, as the creating request spelled them; None means all.
    models: tuple[str, ...] | None = None
    #: When the key expires, in the stored format; None means never.
    expires_at: str | None = None


def check_name(name: str) -> None:
    """Raise `invalid_request` if the name of a key or team is blank or has characters that no name has."""
    if fault := find_fault_of_name(name):
        raise refusal("name", fault)


def choose_capabilities(preset: str | None, named: Sequence[str] | None) -> tuple[str, ...]:
    """Return the capabilities of the preset, or the named ones without duplicates.

    Raises `invalid_request` if both or none of the two are given, or if a given name is unknown.
    """
    if (preset is None) == (named is None):
        raise refusal("capabilities", f"send either these or a preset ({', '.join(PRESETS)}).")
    if preset is not None:
        if preset not in PRESETS:
            raise refusal("preset", f"must be one of {', '.join(PRESETS)}, not {preset!r}.")
        return PRESETS[preset]
    for capability in named or ():
        if capability not in CAPABILITIES:
            raise refusal("capabilities", f"there is no {capability!r}; there are {', '.join(CAPABILITIES)}.")
    return tuple(dict.fromkeys(named or ()))


def choose_expiry(text: str | None, now: datetime) -> str | None:
    """Convert an expiry time to its stored form. Raises `invalid_request` if it is in the past or has no time zone."""
    if text is None:
        return None
    try:
        moment = from_text(text)
        stored = to_text(moment)
    except (ValueError, OverflowError) as error:
        message = f"must be a time with a time zone, such as 2030-01-31T12:00:00Z, not {text!r}."
        raise refusal("expires_at", message) from error
    if moment <= now:
        raise refusal("expires_at", f"must be in the future; {text!r} is past.")
    return stored


def narrow(maker: Grant, asked: Grant) -> Grant:
    """Return what a new key may do, if it is created by a key with the grant `maker`.

    What `asked` leaves open comes from `maker`. Raises ServiceError if `asked` exceeds `maker`. The caller has checked
    the buckets.
    """
    for capability in asked.capabilities:
        if capability not in maker.capabilities:
            raise ServiceError(
                ErrorCode.FORBIDDEN_PROJECT_KEY,
                f"A key can't grant more than it has; this one lacks the capability {capability}.",
                required_capability=capability,
            )
    for model in asked.models or ():
        if not is_allowed(maker.models, agent_of(model)):
            raise ServiceError(
                ErrorCode.MODEL_NOT_ALLOWED,
                f"A key can't grant more than it has; it may not use {model!r}.",
                model=model,
            )
    if asked.expires_at and maker.expires_at and asked.expires_at > maker.expires_at:
        raise refusal("expires_at", f"must not be after the asking key's own, {maker.expires_at}.")
    return replace(
        asked,
        buckets=maker.buckets if asked.buckets is None else asked.buckets,
        models=maker.models if asked.models is None else asked.models,
        expires_at=asked.expires_at or maker.expires_at,
    )


def covers(maker: Grant, other: Grant) -> bool:
    """Return whether a key with the grant `maker` could create a key with the grant `other`. Ignores the expiry."""
    return (
        set(other.capabilities) <= set(maker.capabilities)
        and _is_within(other.buckets, maker.buckets)
        and _is_within(_agents(other.models), _agents(maker.models))
    )


def _is_within(inner: Sequence[str] | None, outer: Sequence[str] | None) -> bool:
    return outer is None or (inner is not None and set(inner) <= set(outer))


def _agents(models: Sequence[str] | None) -> list[str] | None:
    return None if models is None else [agent_of(model) for model in models]


#: Random bytes of a secret. Standard Webhooks allows 24 to 64.
SECRET_BYTES = 32
SECRET_PREFIX = "whsec_"  # noqa: S105  (the prefix, not a secret)


def secret_text(random: bytes) -> str:
    """Encode a secret as `whsec_…`, the form in which receivers use it."""
    if len(random) != SECRET_BYTES:
        raise ValueError(f"a webhook secret has {SECRET_BYTES} bytes, not {len(random)}")
    return SECRET_PREFIX + base64.b64encode(random).decode("ascii")


def team_secret(installation_secret: bytes, team_id: str, generation: int) -> str:
    """Derive a team's webhook secret. Each generation number gives another secret."""
    message = f"webhook:{team_id}:{generation}".encode()
    return secret_text(hmac.new(installation_secret, message, hashlib.sha256).digest())
