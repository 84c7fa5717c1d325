"""Idempotency keys: their format, and whether a request whose key was used before is a repetition or a conflict.

The state database has a row, with the response, for each key whose request was executed:

    no row                                  new       execute; the changes and the row are committed together
    row, same route, same fingerprint       replay    the stored response, status 200, `Idempotent-Replayed: true`
    row, same route, no fingerprint         replay    URL imports, whose bodies are not compared
    row, other route or fingerprint         conflict  409, nothing is done

The fingerprint is a hash of the request's content. A refused request leaves no row, so its key can be used again at
once.
"""

import hashlib
import json
from dataclasses import dataclass
from enum import Enum
from typing import Any


class ReplayVerdict(Enum):
    NEW = "new"
    REPLAY = "replay"
    CONFLICT = "conflict"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What identifies a request. It is stored with the response, and compared to a later request with the same key."""

    #: Method and route template, such as `POST /v1/buckets/{bucket}/files`.
    route: str
    #: SHA-256 of the request's normalized content; None if the idempotency key alone identifies the request.
    fingerprint: str | None
    #: The fingerprint that earlier releases computed for the same request. After an upgrade, rows with such
    #: fingerprints are still in the database for some days.
    former_fingerprint: str | None = None


def is_key(text: str, max_characters: int) -> bool:
    """Return whether the text is a valid key: at least one character, all visible ASCII (0x21 to 0x7E)."""
    return 1 <= len(text) <= max_characters and all("!" <= character <= "~" for character in text)


def fingerprint(*parts: Any) -> str:
    """Return a fingerprint: the SHA-256, in hex, of the canonical JSON of the parts."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def judge(stored: Claim | None, claim: Claim) -> ReplayVerdict:
    """Compare a request with the stored row of its idempotency key, if there is one."""
    if stored is None:
        return ReplayVerdict.NEW
    if stored.route != claim.route:
        return ReplayVerdict.CONFLICT
    known = {claim.fingerprint, claim.former_fingerprint or claim.fingerprint}
    if claim.fingerprint is None or stored.fingerprint in known:
        return ReplayVerdict.REPLAY
    return ReplayVerdict.CONFLICT
