"""Idempotency keys: their format, and whether a request repeats an earlier request or conflicts with it.

The state database has a row, with the response, for each key whose request was executed:

    no row                                  new       execute; the changes and the row are committed together
    row, same route, same fingerprint       replay    the stored response, status 200, `Idempotent-Replayed: true`
    row, same route, no fingerprint         replay    URL imports, whose bodies are not compared
    row, other route or fingerprint         conflict  status 409, nothing is done

A fingerprint is a hash of the request's content. A refused request leaves no row.
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
    """What identifies a request. It is stored together with the response."""

    #: Method and route template, such as `POST /v1/buckets/{bucket}/files`.
    route: str
    #: SHA-256 of the request's content; None if the key alone identifies the request.
    fingerprint: str | None
    #: The fingerprint that earlier releases computed. For some days after an upgrade, stored rows may still have it.
    former_fingerprint: str | None = None


def is_key(text: str, max_characters: int) -> bool:
    """Return whether the text is a valid key: one or more visible ASCII characters."""
    return 1 <= len(text) <= max_characters and all("!" <= character <= "~" for character in text)


def fingerprint(*parts: Any) -> str:
    """Return the SHA-256, in hex, of the canonical JSON of the parts."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def judge(stored: Claim | None, claim: Claim) -> ReplayVerdict:
    """Compare a request with the stored row of its idempotency key."""
    if stored is None:
        return ReplayVerdict.NEW
    if stored.route != claim.route:
        return ReplayVerdict.CONFLICT
    known = {claim.fingerprint, claim.former_fingerprint or claim.fingerprint}
    if claim.fingerprint is None or stored.fingerprint in known:
        return ReplayVerdict.REPLAY
    return ReplayVerdict.CONFLICT
