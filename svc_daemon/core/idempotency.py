"""Idempotency: what a key must look like, what a request's fingerprint is, and what a stored key means for a new one.

    no row                                  new       do the work; row, effect and answer commit together
    row, same route, same fingerprint       replay    the stored answer, status 200, `Idempotent-Replayed: true`
    row, same route, keyed by key alone     replay    URL imports: their bodies are not compared
    row, other route or fingerprint         conflict  409, nothing is done

What is refused leaves no row, so its key can be used again at once.
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
    """What identifies a request: stored with its answer, compared with the next request of that key."""

    #: Method and route template, such as `POST /v1/buckets/{bucket}/files`.
    route: str
    #: SHA-256 of the request's meaning; None where the key alone decides.
    fingerprint: str | None
    #: As earlier releases made it of the same request: their answers are still there for some days after an upgrade.
    former_fingerprint: str | None = None


def is_key(text: str, max_characters: int) -> bool:
    """Visible ASCII, 0x21 to 0x7E, at least one character."""
    return 1 <= len(text) <= max_characters and all("!" <= character <= "~" for character in text)


def fingerprint(*parts: Any) -> str:
    """SHA-256, in hex, over the canonical JSON of the parts."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def judge(stored: Claim | None, claim: Claim) -> ReplayVerdict:
    """What to do with `claim`, given the row its key has."""
    if stored is None:
        return ReplayVerdict.NEW
    if stored.route != claim.route:
        return ReplayVerdict.CONFLICT
    known = {claim.fingerprint, claim.former_fingerprint or claim.fingerprint}
    if claim.fingerprint is None or stored.fingerprint in known:
        return ReplayVerdict.REPLAY
    return ReplayVerdict.CONFLICT
